"""The page without a server, with `stories`, in real Chromium: from a plain web server and from a
disk, as it is and as a phone of the middle class would have it (see `page.py`; a worker is not
slowed down by Chromium, so that the network's own times are a desk's in both).

    python -m benchmarks.in_browser [--rounds 3] [--port 7899]

Times are from the page's request by its own clock, the rest by the page's questions to the network:
a token while it writes, the bars without a head (each layer's first), a head that was not looked at
before; the median and the longest. Memory is what the page's process has to itself, without an
empty page's.
"""

from __future__ import annotations

import functools
import statistics
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, Page

from benchmarks import command_line
from benchmarks.page import DESK, DRAWN, PHONE, chromium, opened
from transformer import load
from transformer.server.static_page import Page as StaticPage

# When the network is there: the bar of its loading is gone again.
LOADED = """const look = () => {
    const bar = document.querySelector("progress.loading");
    if (bar && !bar.hidden) window.isLoading = true;
    if (bar?.hidden && window.isLoading) window.loadedMs ??= performance.now();
    else requestAnimationFrame(look);
};
requestAnimationFrame(look);"""
# Milliseconds of questions about the shown run, one after the other: [name, parameters] each.
ASKED = """async (questions) => {
    const { modules } = await import("page");
    const { run } = modules["web/store.js"].page.run;
    const times = [];
    for (const [name, data] of questions) {
        const began = performance.now();
        await modules["web/ask.js"].ask(name, { run, ...data });
        times.push(performance.now() - began);
    }
    return times;
}"""
# Milliseconds from one token that is written to the next.
WRITTEN = """() => new Promise(async (done) => {
    const { modules } = await import("page");
    const { page } = modules["web/store.js"];
    const times = [];
    const end = modules["web/preact.js"].effect(() => {
        if (page.writing) times.push(performance.now());
        else if (times.length > 9) done(times.slice(1).map((time, at) => time - times[at]));
    });
    document.querySelector("#generate").click();
})"""
FIRST = """performance.getEntriesByType("resource").filter(({ name, startTime }) =>
    startTime < 1000 * %f && !/models[/]|plotly|later[.]js/.test(name))
    .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)"""


class Quiet(SimpleHTTPRequestHandler):
    """A plain web server's answers, without its lines."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def main() -> None:
    """Print the figures."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--port", type=int, default=7899, help="default 7899")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder, file = Path(name) / "folder", Path(name) / "page.html"
        page = StaticPage([load("stories")])
        sizes = {"folder": page.write_folder(folder), "file": page.write_file(file)}
        print({of: f"{size / 1e6:.1f} MB" for of, size in sizes.items()})
        with _served(folder, options.port) as url:
            for _ in range(options.rounds):
                for door, address in (("folder", url), ("file", file.as_uri())):
                    for device, settings in (("desk", DESK), ("phone", PHONE)):
                        figures = _measured(browser, settings, address)
                        words = ", ".join(f"{of} {value}" for of, value in figures.items())
                        print(f"{door}, {device}: {words}", flush=True)


@contextmanager
def _served(folder: Path, port: int) -> Iterator[str]:
    answering = functools.partial(Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", port), answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{port}/"
    server.shutdown()


def _measured(browser: Browser, settings: dict[str, Any], address: str) -> Mapping[str, str]:
    with opened(browser, settings) as page:
        page.goto("about:blank")
        before = _memory()
        page.add_init_script(LOADED)
        page.goto(address, wait_until="commit")
        page.wait_for_selector(DRAWN, state="attached")
        first = float(page.locator(DRAWN).get_attribute("data-first-ms") or "nan") / 1000
        page.wait_for_function("() => window.loadedMs")
        loaded = float(page.evaluate("loadedMs / 1000"))
        tokens = page.evaluate(WRITTEN)
        last = {"position": 40}
        off = [
            ["without_head", last | {"site": f"decoder.{layer}.self", "head": 0}]
            for layer in range(6)
        ]
        seen = [
            ["heatmap", {"site": f"decoder.{layer}.self", "head": 5, "numbers": True}]
            for layer in range(6)
        ]
        return {
            "first picture": f"{first:.2f} s",
            "text can be written": f"{loaded:.2f} s",
            "a token": _times(tokens),
            "without a head": _times(page.evaluate(ASKED, off)),
            "a head": _times(page.evaluate(ASKED, seen)),
            "before the weights": f"{_bytes(page, first) / 1e6:.2f} MB",
            "memory": f"{(_memory() - before) / 1e6:.0f} MB",
        }


def _times(found: list[float]) -> str:
    return f"{statistics.median(found):.1f} ({max(found):.1f}) ms"


def _bytes(page: Page, first_s: float) -> float:
    return float(page.evaluate(FIRST % first_s))


def _memory() -> int:
    """Bytes that the largest of the browser's pages has to itself."""
    largest = 0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended
            if "--type=renderer" in process.cmdline():
                largest = max(largest, process.memory_full_info().uss)
    return largest


if __name__ == "__main__":
    main()
