"""Files made for the visitor: a safe name, a limit, and nothing on the disk."""

import asyncio
import dataclasses
import re
import threading
from contextlib import ExitStack
from typing import Any

import pytest
from kit import aio
from kit.client import asking

import transformer
from transformer import Model, Run, with_lens
from transformer.inference import deadline
from transformer.server.http import limits
from transformer.server.http.errors import Busy
from transformer.server.http.requests import in_thread, shares
from transformer.server.http.slots import Caller, Slots
from transformer.server.kept.service import Service
from transformer.server.page import static_page
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


def test_a_file_is_made_where_the_disk_is_full(kept, monkeypatch):
    service, key, run = kept
    real = open

    def read_only(file: Any, mode: str = "r", *more: Any, **settings: Any) -> Any:
        if set(mode) & set("wax+"):
            raise OSError(28, "No space left on device")
        return real(file, mode, *more, **settings)

    monkeypatch.setattr("builtins.open", read_only)
    monkeypatch.setattr("io.open", read_only)
    for form in ("json", "npz", "html"):
        assert ask(service, run=key, form=form)["name"] == f"tiny-the-fox-said-hello.{form}"
    opened = ask(service, run=key, form="html", site="decoder.1.self", head=1)
    assert opened["text"] == html.page(run, "decoder.1.self", 1)
    head = ask(service, run=key, form="csv", site="decoder.1.self", head=1, stage="masked")
    assert head["text"] == "\ufeff" + run.attention_csv("decoder.1.self", 1, stage="masked")


def test_a_file_name_has_safe_characters_only(kept):
    _, _, run = kept
    for text in ("../../etc/passwd", "a\x00b\r\nSet-Cookie: x", "." * 50, "x" * 5000, "نص عربي"):
        odd = dataclasses.replace(run, model="../m", request=transformer.Request(text=text))
        name = exports.file_name(odd, "csv", "-decoder-0-self-head-0")
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]*\.csv", name)
        assert len(name) <= exports.LONGEST_NAME + 30


def test_a_too_large_export_is_refused_before_it_is_made(kept, monkeypatch):
    service, key, _ = kept
    monkeypatch.setattr(exports, "MAX_EXPORT_BYTES", 1000)
    monkeypatch.setattr(Run, "to_json", None)
    for form, what in (("json", "arrays"), ("npz", "arrays"), ("html", "page")):
        said = ask(service, run=key, form=form)["error"]
        assert said.startswith(f"this run's {what} would be")
        assert "python -m transformer" in said
    assert "error" not in ask(service, run=key, form="csv", site="decoder.0.self")


def test_a_page_with_the_network_is_refused_of_a_large_one(kept, monkeypatch):
    service, key, _ = kept
    monkeypatch.setattr(static_page, "MAX_EXPORT_BYTES", 1000)
    monkeypatch.setattr(static_page, "Page", None)
    with pytest.raises(ValueError, match="MB of weights; the page sends at most"):
        static_page.page_maker(service)({"run": key})


def test_a_file_waits_for_its_turn_and_then_is_asked_for_again(monkeypatch):
    monkeypatch.setattr(limits, "PATIENCE_S", 0.05)
    here = shares()

    async def asked() -> None:
        with ExitStack() as stack:
            for place in range(limits.LONG_AT_ONCE):
                stack.callback(here["files"].join(Caller(f"{place}")).leave)
            with pytest.raises(Busy) as busy:
                await in_thread(here, "files", lambda: None)
            assert busy.value.headers["retry-after"]
        assert await in_thread(here, "files", lambda: "made") == "made"
        assert here["files"].counts() == {"running": 0, "waiting": 0}

    aio.run(asked())


def test_a_file_is_not_made_once_its_visitor_has_left():
    gone, made = threading.Event(), list[str]()

    async def asked() -> None:
        shares = {"files": Slots(1)}
        before = shares["files"].join(Caller("another"))
        with deadline.until(deadline.Deadline(60, gone)):
            waiting = asyncio.ensure_future(in_thread(shares, "files", lambda: made.append("x")))
        while not shares["files"].counts()["waiting"]:
            await asyncio.sleep(0)
        gone.set()
        before.leave()
        with pytest.raises(ValueError, match="nobody waits"):
            await waiting

    aio.run(asked())
    assert made == []
