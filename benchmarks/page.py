"""The page: start-up, first pictures, and a click on a head, in real Chromium, as it is and as a
phone of the middle class would have it: a processor 4 times as slow, 10 Mbit/s, 40 ms away.
The page is usable once its card says what the chosen head does and the next-token bars are drawn;
Gradio's controls come after that. A page of Gradio's with a text box and a button is loaded in turn
with it.

    python -m benchmarks.page [--rounds 3] [--port 7899]

Start-up is compared with `import torch, gradio` alone, in turn. Pictures are timed from the page's
request, by its own clock. A click is timed in the page, from the click's handler until after the
next paint; each head is clicked for the first time.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import command_line, environment, results, served, wait
from benchmarks.report import page_table
from tools.chromium import ARGUMENTS, LAYOUT_SHIFT, find

CLICKS = 7  # the phone shows one layer at a time, the first head is chosen
DESK: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
PROJECTOR: dict[str, Any] = {"viewport": {"width": 1280, "height": 720}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 3, "is_mobile": True, "has_touch": True,
}  # fmt: skip
SLOWER, BYTES_A_S, DELAY_MS = 4, 10e6 / 8, 40
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
DRAWN = ".journey[data-rev]"
SETTLED = ":is(.journey, .attention)[data-rev]:visible"
SETTLED_MS = 1500  # until nothing moves any more
# Looked for in every frame: the card's sentences and the bars; and the button of Gradio's.
USABLE = """const look = () => {
    const [sentence, bar, button] = [".head-card li", ".next-words li", "#generate"]
      .map((one) => document.querySelector(one));
    if (sentence && bar) window.usableMs ??= performance.now();
    const isShown = button?.checkVisibility({ visibilityProperty: true });
    if (isShown) window.controlsMs ??= performance.now();
    if (!window.usableMs || !window.controlsMs) requestAnimationFrame(look);
};
requestAnimationFrame(look);"""

BARE = """import sys, gradio as gr
with gr.Blocks() as page:
    gr.Textbox(label="Text")
    gr.Button("Generate", elem_id="generate")
page.launch(server_port=int(sys.argv[1]), quiet=True)"""


def main() -> None:
    """Print the figures as a table and keep them."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--port", type=int, default=7899, help="default 7899")
    results.add_json_option(parser)
    options = parser.parse_args()
    imports, starts = [], []
    for _ in range(options.rounds):
        imports.append(_import_s())
        with served(options.port) as (_, start_s):
            starts.append(start_s)
    url = f"http://127.0.0.1:{options.port}/"
    bare_url = f"http://127.0.0.1:{options.port + 1}/"
    with served(options.port), _bare(options.port + 1), chromium() as browser:
        seen = {}
        for name, settings in (("desk", DESK), ("phone", PHONE)):
            loads = [
                {"bare_s": _bare_s(browser, settings, bare_url)}
                | _first_pictures(browser, settings, url)
                for _ in range(options.rounds)
            ]
            seen[name] = {
                part: statistics.median(load[part] for load in loads) for part in loads[0]
            }
            seen[name]["click_ms"] = statistics.median(_clicks(browser, settings, url))
        loads = [
            _layout_shift(browser, PROJECTOR, f"{url}#projector=1") for _ in range(options.rounds)
        ]
        seen["projector"] = {"shift": statistics.median(loads)}
    part = {
        "rounds": options.rounds,
        "clicks": CLICKS,
        "imports_s": statistics.median(imports),
        "start_s": statistics.median(starts),
        **seen,
    }
    print(page_table(part))
    results.add("page", part, options.json)


@contextmanager
def _bare(port: int) -> Iterator[None]:
    """A page of Gradio's with nothing of ours."""
    process = subprocess.Popen([sys.executable, "-c", BARE, str(port)], env=environment())
    try:
        wait(port, process)
        yield
    finally:
        process.terminate()
        process.wait()


def _import_s() -> float:
    """Seconds until a new process has imported both, set up as app.py sets them up."""
    started = time.perf_counter()
    command = [sys.executable, "-c", "import torch, gradio; print('done', flush=True)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        if process.stdout.readline().strip() != b"done":
            raise SystemExit("torch and gradio could not be imported")
        return time.perf_counter() - started


@contextmanager
def opened(browser: Browser, settings: dict[str, Any]) -> Iterator[Page]:
    """A new visitor's page; where `settings` are a phone's, as slow as one."""
    context = browser.new_context(**settings)
    page = context.new_page()
    if settings is PHONE:
        tools = context.new_cdp_session(page)
        tools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        line = {"downloadThroughput": BYTES_A_S, "uploadThroughput": BYTES_A_S}
        line |= {"offline": False, "latency": DELAY_MS}
        tools.send("Network.emulateNetworkConditions", line)
    yield page
    context.close()


def _bare_s(browser: Browser, settings: dict[str, Any], url: str) -> float:
    """Seconds from the request until the controls of a page of Gradio's alone can be used."""
    with opened(browser, settings) as page:
        page.add_init_script(USABLE)
        page.goto(url, wait_until="commit")
        page.wait_for_function("window.controlsMs")
        return float(page.evaluate("controlsMs / 1000"))


def _first_pictures(browser: Browser, settings: dict[str, Any], url: str) -> dict[str, float]:
    """Seconds from the request to the first paint, until the page is of use, until Gradio's
    controls are, and until the journey is painted; and how far what is seen moves meanwhile."""
    with opened(browser, settings) as page:
        page.add_init_script(USABLE + LAYOUT_SHIFT)
        page.goto(url, wait_until="commit")
        page.wait_for_selector(DRAWN, state="attached")
        page.wait_for_function("window.controlsMs && window.usableMs")
        large = float(page.locator(DRAWN).get_attribute("data-first-ms") or "nan")
        page.wait_for_timeout(SETTLED_MS)
        return {
            "picture_s": page.evaluate(PAINTED),
            "usable_s": page.evaluate("usableMs / 1000"),
            "controls_s": page.evaluate("controlsMs / 1000"),
            "head_s": large / 1000,
            "shift": page.evaluate("layoutShift"),
        }


def _layout_shift(browser: Browser, settings: dict[str, Any], url: str) -> float:
    """The page's cumulative layout shift."""
    with opened(browser, settings) as page:
        page.add_init_script(LAYOUT_SHIFT)
        page.goto(url)
        page.wait_for_selector(SETTLED)
        page.wait_for_timeout(SETTLED_MS)
        return float(page.evaluate("layoutShift"))


def _clicks(browser: Browser, settings: dict[str, Any], url: str) -> list[float]:
    """Milliseconds of clicks on CLICKS different heads."""
    with opened(browser, settings) as page:
        page.goto(url)
        page.wait_for_selector(DRAWN, state="attached")
        return clicked(page, ".journey button.head", ".journey", CLICKS)


def clicked(page: Page, heads: str, drawn: str, count: int) -> list[float]:
    """Milliseconds of clicks on so many heads, as the element of `drawn` tells them; not on the
    first head, which is chosen."""
    picture, found = page.locator(drawn), []
    for place in range(1, count + 1):
        before = picture.get_attribute("data-rev")
        page.locator(heads).nth(place).click()
        page.wait_for_function(
            "([at, n]) => document.querySelector(at).dataset.rev !== n", arg=[drawn, before]
        )
        found.append(float(picture.get_attribute("data-click-ms") or "nan"))
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, with its window as a visitor has it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(whole=True), args=ARGUMENTS)
        yield browser
        browser.close()


if __name__ == "__main__":
    main()
