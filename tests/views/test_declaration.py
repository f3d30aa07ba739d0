"""A view declares itself once; requests, links and exported pages follow from that."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, cast

import plotly.graph_objects as go
import pytest
from kit import own_view as written
from kit.client import asking

from transformer import messages, views
from transformer.runs.batch import Batch
from transformer.runs.run import Run
from transformer.server.http.process import place_of
from transformer.server.kept.store import RunStore
from transformer.server.page.resources import answer
from transformer.views.declaration import picture, view
from transformer.views.export.recorded import stored_answers
from transformer.views.parameters import (
    SITE,
    Bool,
    Choice,
    HeadOrMean,
    Int,
    IntList,
    Number,
    Range,
    Text,
)
from transformer.views.registry import PICTURES, VIEWS, add_views, find_views


@pytest.mark.parametrize(
    ("parameter", "written", "good", "bad", "sentence"),
    [
        (Choice(name="n", options={"a": "A"}), "a", "a", "b", r"one of \['a'\]; got 'b'"),
        (Choice(name="n", options={"a": "A"}), "a", "a", ["a"], "one of"),
        (Int(name="n", least=2, most=5), "5", 5, 6, "a whole number from 2 to 5; got 6"),
        (Int(name="n"), "0", 0, True, "a whole number from 0; got True"),
        (Number(name="n"), "0.25", 0.25, float("nan"), "a number from 0 to 1; got nan"),
        (Bool(name="n"), "yes", True, 1, "true or false; got 1"),
        (Bool(name="n"), "no", False, 0, "true or false; got 0"),
        (Text(name="n"), "x", "x", "x" * 2001, "a text of at most 2,000 characters"),
        (IntList(name="n", count=2), "3, 4", [3, 4], [1, 2, 3], "a list of at most 2 whole"),
        (HeadOrMean(name="n"), "mean", "mean", "median", "a whole number or 'mean'"),
        (HeadOrMean(name="n"), "7", 7, None, "a whole number or 'mean'"),
    ],
)
def test_a_parameter_accepts_exactly_the_documented_values(parameter, written, good, bad, sentence):
    assert parameter.check(parameter.read(written)) == good
    assert type(parameter.read(written)) is type(good)
    for wrong in (bad, None):
        with pytest.raises(ValueError, match=f"n must be {sentence if wrong is bad else ''}"):
            parameter.check(wrong)


@pytest.mark.parametrize(
    ("parameter", "last", "beyond"),
    [
        (Int(name="n", least=2, most=5), [2, 5], [1, 6]),
        (Int(name="n", least=3), [3, 2**31 - 1], [2, 2**31]),
        (Int(name="n"), [0], [-1]),
        (Number(name="n"), [0.0, 1.0], [-1e-9, 1 + 1e-9]),
        (Number(name="n", least=-2, most=0.5), [-2.0, 0.5], [-2.1, 0.6]),
        (Text(name="n"), ["", "x" * 2000], ["x" * 2001]),
        (IntList(name="n", count=2), [[], [1, 2]], [[1, 2, 3]]),
        (IntList(name="n"), [[1] * 64], [[1] * 65]),
    ],
)
def test_a_parameters_range_has_ends_that_are_allowed(parameter, last, beyond):
    assert [parameter.check(value) for value in last] == last
    for value in beyond:
        with pytest.raises(ValueError, match="n must be"):
            parameter.check(value)
    assert replace(parameter, optional=True).check(None) is None


def test_each_picture_and_each_field_of_a_link_belongs_to_one_view():
    names = [picture.name for view in VIEWS.values() for picture in view.pictures]
    fields = [field for view in VIEWS.values() for field in view.controls()]
    assert sorted(names) == sorted(set(names)) == sorted(PICTURES)
    assert len(fields) == len(set(fields))


@pytest.fixture
def own_view(tmp_path: Path) -> Iterator[None]:
    """The document's two views, added during a test."""
    add_views([written.write(tmp_path)])
    yield
    views.__path__.remove(str(tmp_path))
    for name in ("own_lengths", "own_letters"):
        del VIEWS[name], PICTURES[name], sys.modules[f"transformer.views.{name}"]
    messages._MORE.remove(tmp_path / "own_letters")
    messages.catalogue.cache_clear()


def test_a_new_view_answers_requests_and_is_exported(own_view, run):
    store = RunStore()
    ask, key = asking(store, "own_lengths"), store.put(run)
    assert '"type":"bar"' in ask({"run": key, "least": 2, "unit": "bytes"})["figure"]
    assert "from 0 to 20; got 21" in ask({"run": key, "least": 21})["error"]
    assert "takes ['least', 'unit']; got 'most'" in ask({"run": key, "most": 1})["error"]
    saved = [name for name, _, _ in stored_answers(run)]
    assert saved[-2:] == ["own_lengths", "own_letters"]


def test_a_signature_and_a_docstring_declare_a_view():
    @view(tab="Prediction", order=3)
    def lengths(
        batch: Batch,
        least: Annotated[int, "Longer than", Range(1, 20)],
        share: Annotated[float, Range(0.5, 2)] = 1.0,
        unit: Annotated[str, "Counted in", {"b": "bytes"}] = "b",
        note: Annotated[str, "Note"] = "",
        *,
        all_: Annotated[bool, "All"] = False,
        limit: int = 10,
        site: Annotated[str, SITE] = "",
    ) -> go.Figure:
        """Length of labels.

        How long
        they are.
        """
        return go.Figure()

    declared = cast(Any, lengths).view
    (shown,) = declared.pictures
    assert (declared.name, declared.tab, declared.order) == ("lengths", "Prediction", 3)
    assert (declared.title, declared.help) == ("Length of labels", "How long they are.")
    assert (shown.figure, shown.subject, shown.title) == (lengths, "batch", declared.title)
    assert shown.parameters == (
        Int(name="least", title="Longer than", least=1, most=20),
        Number(name="share", default=1.0, least=0.5, most=2),
        Choice(name="unit", title="Counted in", options={"b": "bytes"}, default="b"),
        Text(name="note", title="Note"),
        Bool(name="all_", title="All"),
        replace(SITE, name="site", default=""),
    )


def test_a_view_without_a_run_or_with_a_bare_parameter_is_refused():
    def lengths(run: Run, least: int) -> go.Figure:
        return go.Figure()

    def nothing() -> go.Figure:
        return go.Figure()

    for function in (lengths, nothing):
        with pytest.raises(
            ValueError, match=f"{function.__name__} must take one run, .* Annotated"
        ):
            picture(function)


def test_a_figure_that_fails_is_drawn_as_its_traceback_if_asked(own_view, run, monkeypatch):
    def failing(*_: Any, **__: Any) -> Any:
        raise NameError("<b>shown</b> only here")

    monkeypatch.setitem(PICTURES, "own_lengths", replace(PICTURES["own_lengths"], figure=failing))
    store = RunStore()
    service = SimpleNamespace(store=store, queries=None, debug=True)
    figure = answer(service, PICTURES["own_lengths"], {"run": store.put(run)})["figure"]
    assert "NameError: &lt;b&gt;shown" in figure.layout.annotations[0].text
    assert "in failing" in figure.layout.annotations[0].text
    service.debug = False
    with pytest.raises(NameError) as raised:
        answer(service, PICTURES["own_lengths"], {"run": store.put(run)})
    place = place_of(raised.value)
    assert re.fullmatch(r"NameError in views/test_declaration\.py, failing, line \d+", place)


def test_a_folder_without_a_view_is_reported(tmp_path, monkeypatch):
    (tmp_path / "odd_view").mkdir()
    (tmp_path / "odd_view" / "__init__.py").write_text("VIEW = 3\n", encoding="utf-8")
    monkeypatch.setattr(views, "__path__", [*views.__path__, str(tmp_path)])
    with pytest.raises(ValueError, match="VIEW of odd_view must be a View"):
        find_views([str(tmp_path)])
