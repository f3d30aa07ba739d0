"""How many scripts a press of *Generate* and a click on a head run through, as
`tests/server/test_way_of_a_press.py` counts Python's files.

A higher number is a new layer on the way, to be judged and not only to be entered here.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kit.browser import WAIT_MS, Visit
from playwright.sync_api import CDPSession, expect

PRESS, CLICK = 43, 34  # scripts of ours, without the libraries
MODULE = re.compile(r"const module(\d+) = \(\(\) => \{")  # as views/export/bundle.py writes it
NAMED = re.compile(r'"([\w/.-]+\.js)": module(\d+)')


@contextmanager
def noted(tools: CDPSession) -> Iterator[set[str]]:
    """Our scripts of which a named function is called meanwhile."""
    files = set[str]()
    tools.send("Profiler.takePreciseCoverage")  # from here on
    yield files
    for script in tools.send("Profiler.takePreciseCoverage")["result"]:
        text = source_of(tools, script["scriptId"])
        names = {number: name for name, number in NAMED.findall(text)}
        starts = [(found.start(), names.get(found[1], "")) for found in MODULE.finditer(text)]
        for function in script["functions"]:
            (called, *_) = function["ranges"]
            inside = [name for start, name in starts if start < called["startOffset"]]
            if (
                called["count"]
                and function["functionName"]
                and inside
                and "vendor" not in inside[-1]
            ):
                files.add(inside[-1])


def source_of(tools: CDPSession, script: str) -> str:
    return str(tools.send("Debugger.getScriptSource", {"scriptId": script})["scriptSource"])


def test_a_press_and_a_click_on_a_head_run_through_few_scripts(page: Visit) -> None:
    tools = page.page.context.new_cdp_session(page.page)
    for domain in ("Debugger", "Profiler"):
        tools.send(f"{domain}.enable")
    counts: dict[str, Any] = {"callCount": True, "detailed": False}
    tools.send("Profiler.startPreciseCoverage", counts)
    page.generate("The fox said")  # both are the second of their kind: the first loads things
    page.press(page.head(1, 1), ".attention")
    page.page.wait_for_function("() => !viz.isLeading")  # the link has led down to its tab
    with noted(tools) as press:
        page.generate("The dog said")
        expect(page.page.locator("#stop")).to_be_disabled()  # Gradio has heard of the end
        page.page.evaluate("new Promise(requestIdleCallback)")
    with noted(tools) as click:
        page.press(page.head(0, 2), ".attention")
    tools.detach()
    assert "web/store.js" in press & click
    assert len(press) <= PRESS, sorted(press)
    assert len(click) <= CLICK, sorted(click)


# Whether no script asks for a frame during three of them.
RESTS = """async () => {
    const { requestAnimationFrame } = window;
    let isAsked = false;
    window.requestAnimationFrame = (frame) => {
        isAsked = true;
        return requestAnimationFrame(frame);
    };
    for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame);
    window.requestAnimationFrame = requestAnimationFrame;
    return !isAsked; }"""
# What is pressed is held as long as the page is open, however slow the machine is.
HOLD_LONG = """() => {
    const { setTimeout } = window;
    window.setTimeout = (work, ms, ...values) =>
        ms === 15_000 ? 0 : setTimeout(work, ms, ...values);
}"""
GROW = """async () => {
    document.body.prepend(Object.assign(document.createElement("p"), { style: "height: 300px" }));
    for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame);
}"""


def test_a_page_that_rests_asks_for_no_frames_and_still_holds(page: Visit) -> None:
    page.page.evaluate(HOLD_LONG)
    page.tab("Masks")
    give_up = time.monotonic() + WAIT_MS / 1000
    while not page.page.evaluate(RESTS):
        assert time.monotonic() < give_up
    pressed = page.page.locator("#right [role=tab][aria-selected=true]")
    before = pressed.bounding_box()
    page.page.evaluate(GROW)
    assert pressed.bounding_box() == pytest.approx(before, abs=1)
    page.reload()
