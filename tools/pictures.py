"""Makes the documents' pictures of the page again, each in a headless Chromium.

    python -m tools.pictures                    # all of them
    python -m tools.pictures docs/screenshot.png

Each is a part of the page in a state that a link names, as a PNG of at most 128 colours.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from benchmarks import served
from tools.chromium import ARGUMENTS, find

ROOT = Path(__file__).resolve().parent.parent
COLOURS = 128
WIDTH, HEIGHT = 1280, 800
# A part in sight is painted as it should be: its own box, or the first in it that paints.
PAINTED = """selector => {
    const box = [...document.querySelectorAll(selector)].find(box => box.getClientRects().length);
    if (!box) return false;
    box.scrollIntoView({ block: "center" });
    const part = box.dataset.rev || box.ariaBusy ? box : box.querySelector("[data-rev]");
    const isWaiting = [...box.querySelectorAll("p")].some(line => line.textContent === "…");
    return part?.dataset.rev && !part.ariaBusy && !isWaiting; }"""


class Picture(NamedTuple):
    """state: what follows the `#` of the address. part: a selector, or "" for what is in sight."""

    state: str
    part: str = ""


ALIGNED = "model=translate-en-fr&tab=attention&picture=alignment&site=decoder.2.cross&head=2"
PICTURES = {
    "docs/screenshot.png": Picture(""),
    "docs/page/journey.png": Picture("tab=journey", ".journey"),
    "docs/page/attention.png": Picture("tab=attention&site=decoder.5.self&head=0", ".attention"),
    "docs/page/masks.png": Picture("tab=masks", ".masks"),
    "docs/page/positions.png": Picture("tab=positions&more=curves", ".position-curves"),
    "docs/page/prediction.png": Picture("tab=prediction", ".prediction"),
    "docs/page/translation.png": Picture(ALIGNED, ".attention"),
    "docs/page/what-if.png": Picture("tab=what-if", ".breaks"),
    "docs/page/learn.png": Picture("tab=learn&learn.at=400", ".learn"),
    "docs/page/model.png": Picture("tab=model", ".architecture"),
}


def take(page: Page, url: str, picture: Picture) -> bytes:
    """A picture of the page as PNG."""
    page.goto("about:blank")
    page.goto(f"{url}#{picture.state}" if picture.state else url)
    part = picture.part or ".journey, .attention"
    page.wait_for_function(PAINTED, arg=part, timeout=120_000)
    page.wait_for_timeout(1_000)  # what is drawn by and by, such as Plotly's axes
    if not picture.part:
        page.evaluate("scrollTo(0, 0)")
        return page.screenshot()
    return page.locator(part).filter(visible=True).first.screenshot()


def small(png: bytes) -> bytes:
    """The same with few colours."""
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    """Take the pictures that the command line names, or all."""
    parser = argparse.ArgumentParser("python -m tools.pictures", description=__doc__)
    parser.add_argument("picture", nargs="*", metavar="FILE", help="default: all")
    parser.add_argument("--port", type=int, default=7897, help="default: %(default)s")
    options = parser.parse_args()
    if unknown := set(options.picture) - PICTURES.keys():
        parser.error(f"no picture is named {min(unknown)}; there are {', '.join(PICTURES)}")
    with served(options.port), sync_playwright() as playwright:
        url = f"http://127.0.0.1:{options.port}/"
        browser = playwright.chromium.launch(executable_path=find(), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for name in options.picture or PICTURES:
            content = small(take(page, url, PICTURES[name]))
            (ROOT / name).write_bytes(content)
            print(f"{name}: {len(content):,} bytes", flush=True)


if __name__ == "__main__":
    main()
