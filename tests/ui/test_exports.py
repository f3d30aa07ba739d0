"""Files made for the visitor: the right content, a safe name, a limit, and nothing on the disk."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import io
import re
import threading
from typing import Any

import loops
import pytest
from asking import asking

import transformer
from transformer import Model, Run, with_lens
from transformer.inference import deadline
from transformer.ui.fair_scheduler import Line, Resource
from transformer.ui.resources import in_thread
from transformer.ui.service import Service
from transformer.views import export as exports
from transformer.views.export import html


@pytest.fixture
def kept(tiny_model: Model) -> tuple[Service, str, Run]:
    """What answers for a kept run, the run's id, and the run with its lens."""
    service = Service([tiny_model])
    run = tiny_model.generate("The fox said: hello!", max_new_tokens=4)
    return service, service.store.pin(run), with_lens(tiny_model, run)


def ask(service: Service, **data: Any) -> dict[str, Any]:
    return asking(service, "export")(data)


def test_every_form_holds_the_run_and_none_touches_the_disk(
    kept: tuple[Service, str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, key, run = kept
    real = open

    def read_only(file: Any, mode: str = "r", *more: Any, **settings: Any) -> Any:
        if set(mode) & set("wax+"):
            raise OSError(28, "No space left on device")
        return real(file, mode, *more, **settings)

    monkeypatch.setattr("builtins.open", read_only)
    monkeypatch.setattr("io.open", read_only)
    found = {form: ask(service, run=key, form=form) for form in ("json", "npz", "html")}
    read = transformer.from_json(found["json"]["text"])
    assert (read.text, read.surprisal) == (run.text, run.surprisal)
    file = io.BytesIO(base64.b64decode(found["npz"]["base64"]))
    assert transformer.read_npz(file).ids == run.ids
    assert found["html"]["text"] == html.page(run)
    opened = ask(service, run=key, form="html", site="decoder.1.self", head=1)
    assert opened["text"] == html.page(run, "decoder.1.self", 1) != found["html"]["text"]
    head = ask(service, run=key, form="csv", site="decoder.1.self", head=1, stage="masked")
    assert head["text"] == "\ufeff" + run.attention_csv("decoder.1.self", 1, "masked")
    names = [one["name"] for one in [*found.values(), head]]
    start = "tiny-the-fox-said-hello"
    assert names == [f"{start}.json", f"{start}.npz", f"{start}.html",
                     f"{start}-decoder-1-self-head-1.csv"]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["../../etc/passwd", "a\x00b\r\nSet-Cookie: x", "." * 50, "x" * 5000, "نص عربي"]
)  # fmt: skip
def test_a_file_name_has_safe_characters_only(kept: tuple[Service, str, Run], text: str) -> None:
    _, _, run = kept
    odd = dataclasses.replace(run, model="../m", request=transformer.Request(text=text))
    for form, place in (("json", ""), ("csv", "-decoder-0-self-head-0")):
        name = exports.file_name(odd, form, place)
        assert re.fullmatch(rf"[a-z0-9][a-z0-9-]*\.{form}", name)
        assert len(name) <= exports.LONGEST_NAME + 30


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"form": "exe"}, "form must be one of ['json', 'npz', 'html', 'csv']; got 'exe'"),
        ({"form": "csv", "site": "../x"}, "a site is written STACK.LAYER.KIND"),
        ({"form": "csv", "site": "decoder.0.self", "head": 99}, "head must be a whole number"),
        ({"form": "csv", "site": "decoder.0.self", "stage": "x"}, "stage must be one of"),
        ({"form": "json", "run": "nobody"}, "the server no longer keeps this run"),
        ({"form": "json", "path": "/etc/passwd"}, "export takes ['form', 'head', 'site', 'stage']"),
    ],
)
def test_a_wrong_wish_gets_a_sentence(
    kept: tuple[Service, str, Run], data: dict[str, Any], sentence: str
) -> None:
    service, key, _ = kept
    assert sentence in ask(service, **{"run": key, **data})["error"]


def test_what_is_too_large_is_refused_before_it_is_made(
    kept: tuple[Service, str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, key, _ = kept
    monkeypatch.setattr(exports, "MAX_EXPORT_BYTES", 1000)
    monkeypatch.setattr(Run, "to_json", None)
    for form, what in (("json", "arrays"), ("npz", "arrays"), ("html", "page")):
        said = ask(service, run=key, form=form)["error"]
        assert said.startswith(f"this run's {what} would be")
        assert "python -m transformer" in said
    assert "error" not in ask(service, run=key, form="csv", site="decoder.0.self")


def test_who_waits_for_a_file_holds_no_thread_and_too_many_are_refused() -> None:
    go_on, gone, served = threading.Event(), threading.Event(), []

    def work(place: int) -> None:
        go_on.wait(30)
        served.append(place)

    async def asked() -> list[Any]:
        shares = {"files": Line(Resource(1, waiting=3))}

        def answer(place: int) -> asyncio.Future[Any]:
            return asyncio.ensure_future(in_thread(shares, "files", lambda: work(place)))

        waiting = [answer(place) for place in range(3)]
        with deadline.until(deadline.Deadline(60, gone)):
            waiting.append(answer(3))
        while sum(shares["files"].counts().values()) < 4:
            await asyncio.sleep(0)
        gone.set()
        with pytest.raises(ValueError, match="busy"):
            await answer(4)
        go_on.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    *made, left = loops.run(asked())
    assert made == [None] * 3
    assert "nobody waits" in str(left)
    assert served == [0, 1, 2]
