"""Large attention through the real page: bytes, clicks and nodes, in real Chromium.

    python -m benchmarks.scale [--clicks 7] [--port 7898] [--shapes 12x12x128 32x32/8x256]

Each shape (layers x heads x tokens) is a GPT with random weights, or a Llama where heads share keys
(/ how many heads of keys), each head of 64 features, and a tokenizer that knows bytes alone, served
by app.py; a text of that many bytes is typed into the page and one token generated. Bytes are those
of the server's answers that hold the small pictures of all heads and the first large one. A
click is timed by the page, from the click's handler until after the next paint; each head for the
first time.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Request

from benchmarks import command_line, results, served
from benchmarks.page import chromium, clicked
from benchmarks.report import scale_table
from transformer import Model, Tokenizer, build_transformer
from transformer.checkpoint import save
from transformer.model.config import preset

SHAPES = ("12x12x128", "12x12x512", "24x16x1024", "32x32/8x256", "30x9/3x1024")
HEAD_SIZE = 64  # as in the models that people use: queries and keys may be sent
WAIT_MS = 300_000
REST_MS = 4_000  # until what is drawn below the heads has come too
TEXT = "The quick brown fox jumps over the lazy dog, and the cat sleeps. "


def main() -> None:
    """Print the figures as a table, one row a shape, and keep them."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--clicks", type=int, default=7, help="default 7")
    parser.add_argument("--port", type=int, default=7898, help="default 7898")
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help=f"default {' '.join(SHAPES)}")
    results.add_json_option(parser)
    options = parser.parse_args()
    found = [_shape(shape, options.clicks, options.port) for shape in options.shapes]
    part = {"clicks": options.clicks, "shapes": found}
    print(scale_table(part))
    results.add("scale", part, options.json)


def _shape(shape: str, n_clicks: int, port: int) -> dict[str, Any]:
    n_layers, heads, n_tokens = shape.split("x")
    n_heads, _, n_key_heads = heads.partition("/")
    sizes = int(n_layers), int(n_heads), int(n_tokens), int(n_key_heads or n_heads)
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder) / "large", *sizes)
        large = str(Path(folder) / "large")
        with served(port, "--checkpoints", large), chromium() as browser:
            url = f"http://127.0.0.1:{port}/"
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            size, clicks, nodes = measure(page, url, sizes[2], n_clicks)
    return {
        "shape": shape,
        "bytes": size,
        "click_ms": statistics.median(clicks),
        "longest_click_ms": max(clicks),
        "nodes": nodes,
    }


def write_model(folder: Path, n_layers: int, n_heads: int, n_tokens: int, n_key_heads: int) -> None:
    """A checkpoint with random weights."""
    tokenizer = Tokenizer.train(["a"], 259)
    grouped = n_key_heads < n_heads
    config = preset(
        "llama" if grouped else "gpt", vocab_size=tokenizer.vocab_size, d_model=8 * n_heads,
        n_heads=n_heads, n_key_heads=n_key_heads if grouped else None, n_layers=n_layers,
        head_size=HEAD_SIZE, d_ff=8 * n_heads, max_len=n_tokens, padding_id=tokenizer.padding_id,
    )  # fmt: skip
    network = build_transformer(config).eval()
    model = Model(name="large", config=config, tokenizer=tokenizer, network=network)
    save(folder, network, config, model.tokenizer)


def measure(page: Page, url: str, n_tokens: int, n_clicks: int) -> tuple[int, list[float], int]:
    """(bytes of the answer with all small pictures, ms of each click, DOM nodes at the end)."""
    page.set_default_timeout(WAIT_MS)
    sizes: list[int] = []

    def listen(request: Request) -> None:
        if "/resources/" in request.url:
            sizes.append(request.sizes()["responseBodySize"])

    page.on("requestfinished", listen)
    page.goto(url)
    page.wait_for_selector(".journey[data-rev]")
    page.locator(".all-tools").click()  # at first the tabs of a story alone are there
    page.get_by_role("tab", name="Attention").click()
    page.wait_for_selector(".attention[data-rev]")
    sizes.clear()
    page.get_by_role("button", name="Settings").click()
    page.locator("#max_new_tokens input").fill("1")
    old = page.locator("#tokens [data-state]").get_attribute("data-run")
    grid = int(page.locator(".head-grid").get_attribute("data-rev") or 0)
    page.get_by_role("button", name="Type your own text").click()
    box = page.locator("#text textarea")
    box.fill((TEXT * (n_tokens // len(TEXT) + 1))[: n_tokens - 2])
    box.press("Enter")
    page.wait_for_function(
        """old => { const d = document.querySelector("#tokens [data-state=done]")?.dataset;
           return d?.run && d.run !== old
             && document.querySelector(".attention").dataset.run === d.run; }""",
        arg=old,
    )
    page.wait_for_function(
        """([run, grid]) => document.querySelector(".attention").dataset.run !== run
           && Number(document.querySelector(".head-grid").dataset.rev) > grid""",
        arg=[old, grid],
    )
    page.wait_for_timeout(REST_MS)
    page.remove_listener("requestfinished", listen)  # reading answers along would slow the clicks
    before = sum(sizes)
    clicks = clicked(page, ".head-grid button", ".attention", n_clicks)
    nodes = int(page.evaluate("document.querySelectorAll('*').length"))
    return before, clicks, nodes


if __name__ == "__main__":
    main()
