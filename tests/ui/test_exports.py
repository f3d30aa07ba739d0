"""Files made for the visitor: the right content, a safe name, a limit, and nothing on the disk."""

from __future__ import annotations

import base64
import dataclasses
import io
import re
import threading
from typing import Any

import numpy as np
import pytest

import transformer
from transformer import Model, Run
from transformer.figures import html
from transformer.ui import views
from transformer.ui.store import RunStore
from transformer.ui.views import exports


@pytest.fixture
def kept(tiny_model: Model) -> tuple[RunStore, str, Run]:
    """A store with a run in it, the run's id, and the run."""
    store = RunStore()
    run = tiny_model.generate("The fox said: hello!", max_new_tokens=4)
    return store, store.pin(run), run


def ask(store: RunStore, **data: Any) -> dict[str, Any]:
    return views.server_function(store, views.export)(data)


def test_every_form_holds_the_run(kept: tuple[RunStore, str, Run]) -> None:
    store, key, run = kept
    found = {form: ask(store, run=key, form=form) for form in ("json", "npz", "html")}
    assert transformer.from_json(found["json"]["text"]).text == run.text
    file = io.BytesIO(base64.b64decode(found["npz"]["base64"]))
    assert transformer.read_npz(file).ids == run.ids
    assert found["html"]["text"] == html.page(run)
    head = ask(store, run=key, form="csv", site="decoder.1.self", head=1, stage="masked")
    assert head["text"] == "\ufeff" + run.attention_csv("decoder.1.self", 1, "masked")
    names = [one["name"] for one in [*found.values(), head]]
    start = "tiny-the-fox-said-hello"
    assert names == [f"{start}.json", f"{start}.npz", f"{start}.html",
                     f"{start}-decoder-1-self-head-1.csv"]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "../../etc/passwd", "a\x00b\r\nSet-Cookie: x", "é🦊 ß“”", "CON", "." * 50, "x" * 5000,
        "<script>alert(1)</script>", "‮txt.exe", "C:\\Windows\\x", "نص عربي",
    ],
)  # fmt: skip
def test_a_file_name_has_safe_characters_only(kept: tuple[RunStore, str, Run], text: str) -> None:
    _, _, run = kept
    odd = dataclasses.replace(run, model="../m", request=transformer.Request(text=text))
    for form in ("json", "csv"):
        name = exports.file_name(exports.Asked(odd, "decoder.0.self", 0, "weights"), form)
        assert re.fullmatch(rf"[a-z0-9][a-z0-9-]*\.{form}", name)
        assert len(name) <= exports.LONGEST_NAME + 30


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"form": "exe"}, "form must be one of ['json', 'npz', 'html', 'csv']; got 'exe'"),
        ({"form": ["json"]}, "form must be one of"),
        ({"form": "csv", "site": "../x"}, "a site is written STACK.LAYER.KIND"),
        ({"form": "csv", "site": "decoder.0.self", "head": 99}, "head must be a whole number"),
        ({"form": "csv", "site": "decoder.0.self", "stage": "x"}, "stage must be one of"),
        ({"form": "json", "run": "nobody"}, "the server no longer keeps this run"),
        ({"form": "json", "path": "/etc/passwd"}, "unexpected keyword argument 'path'"),
    ],
)
def test_a_wrong_wish_gets_a_sentence(
    kept: tuple[RunStore, str, Run], data: dict[str, Any], sentence: str
) -> None:
    store, key, _ = kept
    assert sentence in ask(store, **{"run": key, **data})["error"]


def test_what_is_too_large_is_refused_before_it_is_made(
    kept: tuple[RunStore, str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, key, _ = kept
    monkeypatch.setattr(exports, "MAX_EXPORT_BYTES", 1000)
    monkeypatch.setattr(Run, "to_json", None)
    for form, what in (("json", "arrays"), ("npz", "arrays"), ("html", "page")):
        said = ask(store, run=key, form=form)["error"]
        assert said.startswith(f"this run's {what} would be")
        assert "python -m transformer" in said
    assert "error" not in ask(store, run=key, form="csv", site="decoder.0.self")


def test_a_file_waits_for_those_of_others_and_says_so_in_the_end(
    kept: tuple[RunStore, str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, key, _ = kept
    monkeypatch.setattr(exports, "_places", threading.BoundedSemaphore(1))
    monkeypatch.setattr(exports, "WAIT_S", 0.05)
    with exports._places:
        assert "busy" in ask(store, run=key, form="csv", site="decoder.0.self")["error"]
    assert "error" not in ask(store, run=key, form="csv", site="decoder.0.self")


def test_a_disk_that_cannot_be_written_does_not_matter(
    kept: tuple[RunStore, str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, key, run = kept
    real = open

    def read_only(file: Any, mode: str = "r", *more: Any, **settings: Any) -> Any:
        if set(mode) & set("wax+"):
            raise OSError(28, "No space left on device")
        return real(file, mode, *more, **settings)

    monkeypatch.setattr("builtins.open", read_only)
    monkeypatch.setattr("io.open", read_only)
    for form in ("json", "npz", "html", "csv"):
        assert "error" not in ask(store, run=key, form=form, site="decoder.0.self")
    weights = run.trace["decoder.0.self"].weights
    assert np.isfinite(weights.numpy()).all()
