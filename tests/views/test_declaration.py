"""A view declares itself once; requests, links, files and the command line follow from that."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import own_view as written
import plotly.graph_objects as go
import pytest
from asking import asking

from transformer import views
from transformer.messages import catalogues
from transformer.ui.store import RunStore
from transformer.views import saving
from transformer.views.declaration import find_views
from transformer.views.export.gallery import gallery
from transformer.views.parameters import Bool, Choice, HeadOrMean, Int, IntList, Number, Text
from transformer.views.saving import as_csv, rows_of


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
        (IntList(name="n", most=2), "3, 4", [3, 4], [1, 2, 3], "a list of at most 2 whole"),
        (HeadOrMean(name="n"), "mean", "mean", "median", "a whole number or 'mean'"),
        (HeadOrMean(name="n"), "7", 7, None, "a whole number or 'mean'"),
    ],
)
def test_a_parameter_takes_what_it_says_and_refuses_the_rest(
    parameter, written, good, bad, sentence
):
    assert parameter.check(parameter.read(written)) == good
    assert type(parameter.read(written)) is type(good)
    for wrong in (bad, None):
        with pytest.raises(ValueError, match=f"n must be {sentence if wrong is bad else ''}"):
            parameter.check(wrong)


def test_each_picture_and_each_field_of_a_link_belongs_to_one_view():
    names = [picture.name for view in views.VIEWS.values() for picture in view.pictures]
    fields = [field for view in views.VIEWS.values() for field in view.controls()]
    assert sorted(names) == sorted(set(names)) == sorted(views.PICTURES)
    assert len(fields) == len(set(fields))


@pytest.fixture
def own_view(tmp_path: Path) -> Iterator[None]:
    """Two views of somebody's own, taken in for the time of a test."""
    views.add_views([written.write(tmp_path)])
    yield
    views.__path__.remove(str(tmp_path))
    for name in ("own_lengths", "own_letters"):
        del views.VIEWS[name], views.PICTURES[name], sys.modules[f"transformer.views.{name}"]
    catalogues._OTHERS.remove(tmp_path / "own_letters")
    catalogues.catalogue.cache_clear()


def test_a_new_view_is_asked_exported_and_written_by_the_command_line(own_view, run, tmp_path):
    store = RunStore()
    ask, key = asking(store, "own_lengths"), store.put(run)
    assert '"type":"bar"' in ask({"run": key, "least": 2, "unit": "bytes"})["figure"]
    assert "from 0 to 20; got 21" in ask({"run": key, "least": 21})["error"]
    assert "takes ['least', 'unit']; got 'most'" in ask({"run": key, "most": 1})["error"]
    drawn = [picture.view for picture in gallery(run)]
    assert drawn[-2:] == ["own_lengths", "own_letters"]

    assert "own_lengths: How many characters" in saving.listing()
    path = tmp_path / "lengths.csv"
    values = saving.check("own_lengths", ["least=2"], path)
    saving.save(run, "own_lengths", values, path)
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    lengths = [(at, len(label)) for at, label in enumerate(run.labels)]
    expected = [["", str(at), str(length)] for at, length in lengths if length >= 2]
    assert rows == [["trace", "token", "characters"], *expected]


@pytest.mark.parametrize(
    ("name", "given", "file", "sentence"),
    [
        ("nothing", [], "x.csv", "the picture must be one of"),
        ("lens", ["last=2"], "x.csv", "lens takes NAME=VALUE"),
        ("lens", ["first=two"], "x.csv", "first must be a whole number"),
        ("lens", [], "x.pdf", "must end in one of"),
    ],
)
def test_the_command_line_refuses_a_picture_in_one_sentence(name, given, file, sentence):
    with pytest.raises(ValueError, match=sentence):
        saving.check(name, given, Path(file))


def test_a_folder_that_declares_no_view_is_told(tmp_path, monkeypatch):
    (tmp_path / "odd_view").mkdir()
    (tmp_path / "odd_view" / "__init__.py").write_text("VIEW = 3\n", encoding="utf-8")
    monkeypatch.setattr(views, "__path__", [*views.__path__, str(tmp_path)])
    with pytest.raises(ValueError, match="VIEW of odd_view must be a View"):
        list(find_views(views.__name__, [str(tmp_path)]))


def test_a_heatmap_is_a_table_under_its_labels_and_points_are_rows_of_their_trace():
    labels = {"tickvals": [0, 1], "ticktext": ["<b>a &lt;b&gt;</b>", "c"]}
    figure = go.Figure(
        [go.Heatmap(z=[[1, np.nan], [0.5, 2]])],
        {"xaxis": labels, "yaxis": {"tickvals": [1], "ticktext": ["\u2068q\u2069"]}},
    )
    assert list(rows_of(figure)) == [["", "a <b>", "c"], [0, 1, ""], ["q", 0.5, 2]]
    assert as_csv(figure).splitlines()[0] == ",a <b>,c"
    figure = go.Figure(
        [go.Bar(name="one", x=[1, 2], y=[3, 4]), go.Scatter(name="two", y=[5])],
        {"xaxis": {"title": {"text": "place"}}, "yaxis": {"title": {"text": "bits"}}},
    )
    head = ["trace", "place", "bits"]
    assert list(rows_of(figure)) == [head, ["one", 1, 3], ["one", 2, 4], [], head, ["two", 0, 5]]
