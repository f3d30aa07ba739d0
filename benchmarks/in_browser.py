"""The page without a server, with `stories`, in real Chromium: from a plain web server and from a
disk, as it is and as a phone of the middle class would have it: a processor 4 times as slow and,
from the web server, 10 Mbit/s, 40 ms away (a worker is not slowed down by Chromium, so that the
network's own times are a desk's in both).

    python -m benchmarks.in_browser [--rounds 3] [--port 7899]
    python -m benchmarks.in_browser --shape G --rounds 1             # GPT-2's size, drawn weights

Times are from the page's request by its own clock, the rest by the page's questions to the network:
a token while it writes, the bars without a head (each layer's first), a head that was not looked at
before; the median and the longest. Memory is what the page's process has to itself, without an
empty page's. Nothing records the pages: while Chromium's tools watch the network it keeps a copy of
every file in the page's process, which doubled the first picture's time and a third of the memory.
"""

from __future__ import annotations

import functools
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser

from benchmarks import command_line
from benchmarks.networks import SHAPES, write
from benchmarks.page import BYTES_A_S, DELAY_MS, DESK, DRAWN, PHONE, SLOWER, chromium
from transformer import load
from transformer.server.page.static_page import Page as StaticPage

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
FIRST_MS = f"""Number(document.querySelector("{DRAWN}")?.dataset.firstMs ?? NaN)"""
FIRST = """performance.getEntriesByType("resource").filter(({ name, startTime }) =>
    startTime < %f && !/models[/]|plotly|later[.]js/.test(name))
    .reduce((sum, { encodedBodySize }) => sum + encodedBodySize,
        performance.getEntriesByType("navigation")[0].encodedBodySize)"""
LINE = 2**13  # bytes that are sent at a time
LIMIT_S = 120  # of waiting for a page


class Files(SimpleHTTPRequestHandler):
    """A plain web server's answers, without its lines. a_s: bytes, all answers together; latest:
    when the line is free again."""

    protocol_version = "HTTP/1.1"
    a_s, delay_s = float("inf"), 0.0
    lock, latest = threading.Lock(), 0.0

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file as fast as the line is."""
        time.sleep(self.delay_s)
        with suppress(ConnectionError):  # the page was closed
            while part := source.read(LINE):
                with Files.lock:
                    Files.latest = max(Files.latest, time.monotonic()) + len(part) / self.a_s
                    until = Files.latest
                time.sleep(max(0.0, until - time.monotonic()))
                outputfile.write(part)


class Visit:
    """A new visitor's page that nothing records; where `settings` are a phone's, as slow as one."""

    def __init__(self, browser: Browser, settings: Mapping[str, Any]) -> None:
        self._tools = browser.new_browser_cdp_session()
        self._answers: dict[int, dict[str, Any]] = {}
        self._tools.on("Target.receivedMessageFromTarget", self._take)
        send = self._tools.send
        self._context = send("Target.createBrowserContext")["browserContextId"]
        where = {"url": "about:blank", "browserContextId": self._context}
        target = send("Target.createTarget", where)["targetId"]
        attached = send("Target.attachToTarget", {"targetId": target, "flatten": False})
        self._session = attached["sessionId"]
        is_phone = settings is PHONE
        screen = settings["viewport"] | {"mobile": is_phone}
        screen["deviceScaleFactor"] = settings.get("device_scale_factor", 1)
        self.call("Emulation.setDeviceMetricsOverride", **screen)
        if is_phone:
            self.call("Emulation.setCPUThrottlingRate", rate=SLOWER)
        Files.a_s, Files.delay_s = (BYTES_A_S, DELAY_MS / 1000) if is_phone else (float("inf"), 0.0)

    def _take(self, event: Mapping[str, Any]) -> None:
        message = json.loads(event["message"])
        self._answers[message.get("id", 0)] = message

    def call(self, method: str, **parameters: Any) -> Any:
        """A call of Chromium's protocol. Raises RuntimeError if it fails."""
        number = len(self._answers) + 1
        message = json.dumps({"id": number, "method": method, "params": parameters})
        told = {"sessionId": self._session, "message": message}
        self._tools.send("Target.sendMessageToTarget", told)
        while number not in self._answers:
            self._tools.send("Target.getTargets")  # takes what has come meanwhile
            time.sleep(0.01)
        answer = self._answers[number]
        if "error" in answer or "exceptionDetails" in answer["result"]:
            raise RuntimeError(f"{method}: {answer}")
        return answer["result"]

    def value(self, script: str) -> Any:
        """What a script gives, or what its promise does."""
        given = {"expression": script, "awaitPromise": True, "returnByValue": True}
        return self.call("Runtime.evaluate", **given)["result"].get("value")

    def wait(self, script: str) -> Any:
        """A script's value, once it has one. Raises RuntimeError after LIMIT_S."""
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            if value := self.value(script):
                return value
            time.sleep(0.05)
        raise RuntimeError(f"no {script} in {LIMIT_S} s")

    def close(self) -> None:
        """Close the page."""
        self._tools.send("Target.disposeBrowserContext", {"browserContextId": self._context})
        self._tools.detach()


def main() -> None:
    """Print the figures."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--port", type=int, default=7899, help="default 7899")
    parser.add_argument("--shape", choices=SHAPES, help="in place of stories; see networks.py")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder, file = Path(name) / "folder", Path(name) / "page.html"
        checkpoint: str | Path = "stories"
        if options.shape:
            checkpoint = Path(name) / "drawn"
            write(checkpoint, SHAPES[options.shape])
        page = StaticPage([load(checkpoint)])
        sizes = {"folder": page.write_folder(folder), "file": page.write_file(file)}
        print({of: f"{size / 1e6:.1f} MB" for of, size in sizes.items()})
        with served_files(folder, options.port) as url:
            for _ in range(options.rounds):
                for door, address in (("folder", url), ("file", file.as_uri())):
                    for device, settings in (("desk", DESK), ("phone", PHONE)):
                        figures = measured(browser, settings, address)
                        words = ", ".join(f"{of} {value}" for of, value in figures.items())
                        print(f"{door}, {device}: {words}", flush=True)


@contextmanager
def served_files(folder: Path, port: int) -> Iterator[str]:
    """A plain web server of a folder; its address."""
    answering = functools.partial(Files, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", port), answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{port}/"
    server.shutdown()


def measured(browser: Browser, settings: Mapping[str, Any], address: str) -> dict[str, str]:
    """The figures of a new visit, by what they are of."""
    visit = Visit(browser, settings)
    before = _memory()
    visit.call("Page.enable")
    visit.call("Page.addScriptToEvaluateOnNewDocument", source=LOADED)
    visit.call("Page.navigate", url=address)
    first = float(visit.wait(FIRST_MS))
    loaded = float(visit.wait("globalThis.loadedMs"))
    tokens = visit.value(f"({WRITTEN})()")
    off = [
        ["without_head", {"position": 40, "site": f"decoder.{layer}.self", "head": 0}]
        for layer in range(6)
    ]
    seen = [
        ["heatmap", {"site": f"decoder.{layer}.self", "head": 5, "numbers": True}]
        for layer in range(6)
    ]
    without, heads = (visit.value(f"({ASKED})({json.dumps(asked)})") for asked in (off, seen))
    figures = {
        "first picture": f"{first / 1000:.2f} s",
        "text can be written": f"{loaded / 1000:.2f} s",
        "a token": _times(tokens),
        "without a head": _times(without),
        "a head": _times(heads),
        "before the weights": f"{visit.value(FIRST % first) / 1e6:.2f} MB",
        "memory": f"{(_memory() - before) / 1e6:.0f} MB",
    }
    visit.close()
    return figures


def _times(found: list[float]) -> str:
    return f"{statistics.median(found):.1f} ({max(found):.1f}) ms"


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
