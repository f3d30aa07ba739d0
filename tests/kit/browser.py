"""A visitor's actions and what they see. Waits for draws, never for time."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import APIResponse, Error, Locator, Page, Route, TimeoutError, expect

from transformer.views.declaration import tab_name

PAGE_MODULES = Path(__file__).parent / "page_modules.js"  # gives pages `viz`
WAIT_MS = 60_000  # a busy machine may take long; who passes does not wait
# Where on the page a place of a picture's own axes is.
PLACE = """(box, [x, y]) => {
    const { xaxis, yaxis } = box._fullLayout;
    const corner = box.getBoundingClientRect();
    return [corner.left + xaxis._offset + xaxis.l2p(x), corner.top + yaxis._offset + yaxis.l2p(y)];
}"""
NUMBERS = """([name, trace]) => document.querySelector(`[data-picture=${name}]`)._fullData[trace].z
    .map(row => [...row].map(value => value ?? NaN))"""
POINTED = """([r, c]) => { const d = document.querySelector(".attention")?.dataset ?? {};
    return d.row === String(r) && d.column === String(c); }"""
# The page has opened: nothing covers it, and the journey is drawn, or a link has led to a tab that
# hides it, where it need not ever have been drawn.
OPEN = """() => { const box = window.viz && document.querySelector("gradio-app .journey");
    return box && getComputedStyle(box).visibility === "visible" && (box.dataset.rev
        || (!viz.isOpening() && viz.run && !box.getClientRects().length)); }"""
# The tokens are of the shown run, and so is the attention, unless another tab is open.
SHOWN = """() => {
    const { run } = viz.run, tokens = document.querySelector("#tokens [data-state]");
    const box = document.querySelector(".attention");
    const isOther = box && box.getClientRects().length && box.dataset.run !== run;
    return tokens?.dataset.run === run && !isOther; }"""
# Resolved at the hashchange: before it nothing is being opened. The address may still be of a state
# before, and then be the same.
GO = """hash => new Promise(done => {
    addEventListener("hashchange", () => done(), { once: true });
    if (location.hash === hash) dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = hash; })"""
SEEN = """selector => { const box = document.querySelector(selector);
    if (!box) return false;
    const { top, bottom } = box.getBoundingClientRect();
    if (bottom < 0 || top > window.innerHeight) box.scrollIntoView();
    const part = box.dataset.rev || box.ariaBusy ? box : box.querySelector("[data-rev]");
    return part?.dataset.rev && !part.ariaBusy; }"""
PARTS = {  # of each tab: the one that it opens on, and others, each with its section's name
    "Journey": {".journey": ""},
    "Attention": {
        ".attention": "", ".attention-math": "attention_math", ".ranking": "head_metrics",
    },
    "Masks": {".masks": "", ".mask-scores": "scores", ".removal": "removal"},
    "Positions": {
        ".positions": "", ".position-inputs": "inputs", ".position-curves": "curves",
        ".position-shift": "shift",
    },
    "Prediction": {".prediction": "", ".surprisal-box": "surprisal", ".lens-box": "lens"},
    "What if?": {
        ".breaks": "", ".ablation": "ablation", ".maskedit": "edit_mask",
        ".branches": "branches", ".patching": "patching",
    },
    "Learn": {".learn": ""},
    "Model": {".architecture": "", ".equations": "equations"},
}  # fmt: skip
SECTIONS = {part: name for parts in PARTS.values() for part, name in parts.items() if name} | {
    "#view-corpus .panel": "corpus", ".compare": "compare", ".targets": "targets",
}  # fmt: skip
COLOURS = ("color-contrast", "link-in-text-block")  # axe-core's rules about colours


def every(found: Locator) -> list[Locator]:
    """All elements, once there is one; they are drawn together."""
    found.first.wait_for(state="attached")
    return found.all()


def held_back(page: Page, name: str) -> Callable[[], None]:
    """The next response to a request of this name is held back, until the returned function is
    called.
    """
    held: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        url = urlsplit(route.request.url)  # the browser alone may know the host's name
        here = url._replace(netloc=f"127.0.0.1:{url.port}").geturl()
        headers = {**route.request.headers, "host": url.netloc}
        held.append((route, route.fetch(url=here, headers=headers)))

    def let_through() -> None:
        while not held:
            page.wait_for_timeout(10)
        ((route, response),) = held
        with page.expect_event("requestfinished"):
            route.fulfill(response=response)
        page.evaluate("new Promise(requestAnimationFrame)")

    page.route(re.compile(re.escape(name)), hold, times=1)
    return let_through


# Mark one of all texts that look alike: the same kind of element with the same colours on and
# behind it, size and weight; below what axe-core may look at.
LOOK = """parts => {
    document.querySelectorAll("[data-contrast]").forEach(one => delete one.dataset.contrast);
    const behind = new Map([[null, ""]]), seen = new Set();
    const kind = one => `${one.localName} ${one.getAttribute("class")} ${
        one.disabled || one.ariaDisabled}`;
    const under = one => {
        if (!behind.has(one)) {
            const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(one);
            const own = `${backgroundColor} ${backgroundImage} ${opacity} ${filter}`;
            behind.set(one, `${under(one.parentElement)}|${own}`);
        }
        return behind.get(one);
    };
    for (const part of document.querySelectorAll(parts))
        for (const one of [part, ...part.querySelectorAll("*")]) {
            const written = one.matches("input, textarea, select")
                || [...one.childNodes].some(node => node.nodeType === 3 && /\\S/.test(node.data));
            if (!written || !one.checkVisibility()) continue;
            const { color, fill, fontSize, fontWeight, textShadow } = getComputedStyle(one);
            const looks = [kind(one), kind(one.parentElement), under(one), color, fill, fontSize,
                fontWeight, textShadow].join();
            if (!seen.has(looks)) one.dataset.contrast = "";
            seen.add(looks);
        }
}"""
AXE = """([include, options]) => {
    axe.configure({ rules: [{ id: "color-contrast", selector: "[data-contrast]" }] });
    return axe.run({ include }, options).then(found => found.violations.flatMap(
        ({ id, nodes }) => nodes.map(node => `${id}: ${node.html.slice(0, 120)}`)));
}"""


def complaints(page: Page, *parts: str, rules: Sequence[str] = ()) -> list[str]:
    """What axe-core finds wrong in these parts, as sentences. rules: by name; none = all. The rule
    of contrast, by far the slowest, checks one of all texts that look alike."""
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(Axe().axe_script)
    page.evaluate(LOOK, ",".join(parts))
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found: list[str] = page.evaluate(AXE, [[[part] for part in parts], options])
    return found


class Visit:
    """One visitor's page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.large = page.locator(".attention")
        self.tokens = page.locator("#tokens .text-tokens button.token")
        self.sources = page.locator("#tokens .source-tokens button.token")
        page.wait_for_function(OPEN)

    def section(self, name: str) -> Locator:
        """Open a section of the open tab, unless it is open."""
        section = self.page.locator(f"[data-section={name}]")
        if section.get_attribute("open") is None:
            section.locator("summary").first.click()
        return section

    def wait_drawn(self, selector: str) -> None:
        """Until this part of the open tab is painted as it should be now; opens its section,
        scrolls there, and again where what grows above pushes it away, since what is far away is
        not drawn."""
        if selector in SECTIONS:
            self.section(SECTIONS[selector])
        self.page.wait_for_function(SEEN, arg=selector, polling=100)

    @contextmanager
    def drawn(self, selector: str) -> Iterator[None]:
        """What is done inside leads to a new draw of `selector`; waits until it is painted, and
        before, until none is on its way that it could be taken for (in a hidden tab none is)."""
        self.page.wait_for_function(
            """s => { const box = document.querySelector(s);
               return !box?.ariaBusy || !box.getClientRects().length; }""",
            arg=selector,
        )
        count = "s => Number(document.querySelector(s)?.dataset.rev ?? 0)"
        before = self.page.evaluate(count, selector)
        yield
        self.page.wait_for_function(
            """([s, n]) => { const box = document.querySelector(s);
               return Number(box?.dataset.rev ?? 0) > n && !box.ariaBusy; }""",
            arg=[selector, before],
        )

    def press(self, button: Locator, draws: str) -> None:
        """Click something that leads to a new draw of a part."""
        with self.drawn(draws):
            button.click()

    def shown_run(self) -> str:
        """The run that the tokens are of."""
        return str(self.page.locator("#tokens [data-state]").get_attribute("data-run"))

    def generate(self, text: str) -> None:
        """Type, press Enter, wait for the finished run and its picture."""
        old = self.shown_run()
        with self.drawn(".attention"):
            self.enter(text)
            self.page.wait_for_function(
                """old => { const d = document.querySelector("#tokens [data-state=done]")?.dataset;
                   return d && d.run && d.run !== old; }""",
                arg=old,
            )
        self.page.wait_for_function(
            """() => document.querySelector(".attention")
                && document.querySelector(".attention").dataset.run
                  === document.querySelector("#tokens [data-state]")?.dataset.run"""
        )

    def enter(self, text: str) -> None:
        """Type and press Enter."""
        box = self.text_box()
        box.fill(text)
        box.press("Enter")

    def text_box(self) -> Locator:
        """The box for the visitor's text, opened."""
        box = self.page.locator("#text textarea")
        if not box.is_visible():
            self.page.locator(".own-text").click()
        return box

    def show_masks(self, *lines: str) -> None:
        """Of these texts, on the tab Masks."""
        self.page.locator("#lines textarea").fill("\n".join(lines))
        self.press(self.page.locator("#show-masks"), draws=".masks")

    def set_length(self, count: int) -> None:
        """Ask for so many new tokens."""
        box = self.page.locator("#max_new_tokens input")
        if not box.is_visible():
            self.page.get_by_role("button", name="Settings").click()
            box.wait_for()
            self.page.evaluate("viz.nextPaint()")  # what is shown first takes its old value again
        box.fill(str(count))
        box.blur()
        expect(box).to_have_value(str(count))

    def head(self, layer: int, head: int) -> Locator:
        """The button of a head, counted from 0 as on the page."""
        name = re.compile(rf"^Layer {layer}, head {head}(:|$)")
        return self.page.get_by_role("button", name=name)

    def choose_model(self, name: str) -> None:
        """Pick another model; wait for its stored example, or for the visitor's text read by it."""
        choice = self.page.locator(f".does [data-model={name}]")
        if not choice.count():
            self.page.locator("#model input").click()
            choice = self.page.get_by_role("option", name=name, exact=True)
        with self.drawn(".attention"):
            choice.click()
            self.page.wait_for_function(
                """name => viz.run.model === name && !viz.isOpening() && viz.run.run
                    === document.querySelector("#tokens [data-state=done]")?.dataset.run""",
                arg=name,
            )
        self.wait_for_link()

    def attention(self, name: str) -> None:
        """Choose a kind of attention, "decoder cross" for one, unless it is shown."""
        if self.page.get_by_role("radio", name=name, exact=True, checked=True).count():
            return
        with self.drawn(".attention"):
            self.page.get_by_role("radio", name=name, exact=True).click()

    def show_more(self) -> None:
        """Open "More" unless it is open."""
        button = self.page.locator(".more-button")
        if button.get_attribute("aria-expanded") == "false":
            button.click()

    def switch(self, group: str, value: str) -> None:
        """Choose one of the switches above the large picture of attention."""
        self.show_more()
        self.press(self.page.locator(f".{group} input[value='{value}']"), draws=".attention")

    def menu(self) -> None:
        """Open the page's menu: link, code, projector, language."""
        self.page.locator(".menu-button").click()

    def go(self, state: str) -> None:
        """Follow a link within the page, which is not loaded again: what the link does not name is
        as at first."""
        self.page.evaluate(GO, f"#{state}")
        self.wait_for_link()

    def reload(self) -> None:
        """Load the page again, until it shows what its address says."""
        self.page.reload()
        self.page.wait_for_function(OPEN)
        self.wait_for_link()

    def tab(self, name: str) -> None:
        """Open a tab, by its English name."""
        tab = self.page.locator(f"#right [role=tab][data-tab-id={tab_name(name)}]")
        if not tab.is_visible():
            self.page.locator(".all-tools").click()
        tab.click()
        # Gradio tells the page a little later; the journey has no tabs in sight.
        is_first = "isFirst => document.body.matches('.first') === isFirst"
        self.page.wait_for_function(is_first, arg=name == "Journey")

    def cell(self, row: int, column: int, large: str = "#attention .large") -> tuple[float, float]:
        """Where on the page a cell of a large heatmap is: x, y of its middle."""
        x, y = self.page.evaluate(
            """([r, c, large]) => {
                const box = document.querySelector(large);
                const at = viz.cellBox(box, c, c, r, r);
                const place = box.getBoundingClientRect();
                return [place.left + at.left + at.width / 2, place.top + at.top + at.height / 2];
            }""",
            [row, column, large],
        )
        return float(x), float(y)

    def numbers(self, picture: str, trace: int = 0) -> np.ndarray:
        """The cells of a heatmap; NaN where it has none."""
        return np.array(self.page.evaluate(NUMBERS, [picture, trace]), dtype=float)

    def filled(self, picture: str) -> list[int]:
        """How many cells of each row have a number."""
        return np.isfinite(self.numbers(picture)).sum(axis=1).tolist()

    def place_in(self, picture: str, x: float, y: float) -> tuple[float, float]:
        """Where on the page a place of a picture's own axes is."""
        drawn = self.page.locator(f"[data-picture={picture}]")
        drawn.scroll_into_view_if_needed()
        left, top = drawn.evaluate(PLACE, [x, y])
        return float(left), float(top)

    def point_at(self, row: int, column: int) -> None:
        """Move the pointer onto a cell and wait for the read-out to follow; again where the page
        was still being laid out, so that the cell had moved by the time the pointer was there."""
        give_up = time.monotonic() + WAIT_MS / 1000
        while True:
            self.page.mouse.move(5, 5)
            self.page.mouse.move(*self.cell(row, column), steps=3)
            try:
                self.page.wait_for_function(POINTED, arg=[row, column], timeout=3000)
            except TimeoutError:
                if time.monotonic() > give_up:
                    raise
            else:
                return

    def wait_worked(self, site: str, head: int, query: int) -> None:
        """Wait until the arithmetic of a row is shown and agrees with the network."""
        self.wait_drawn(".attention-math")
        of = f"[data-site='{site}'][data-head='{head}'][data-query='{query}'][data-agrees=true]"
        self.page.wait_for_selector(f".attention-math{of}")

    def wait_for_link(self) -> None:
        """Until the page shows what the link says that it was opened with."""
        self.page.wait_for_function("() => window.viz?.isOpening && !viz.isOpening()")
        self.page.wait_for_function(SHOWN)

    def wait_for_address(self, *parts: str) -> str:
        """The page's address once it has all of these in it."""
        for part in parts:
            self.page.wait_for_function("part => location.hash.includes(part)", arg=part)
        return self.page.url

    def read(self, field: str) -> str:
        """A number or token of the read-out."""
        return self.page.locator(f"[data-field={field}]").inner_text()

    def wait_for_alert(self) -> str:
        """The sentence that a mistake was answered with."""
        self.page.wait_for_selector("#status .problem:not([hidden])")
        return self.page.get_by_role("alert").inner_text()

    def state_for_report(self) -> str:
        """What was pressed last, and what is chosen, scrolled and said now."""
        try:
            return str(self.page.evaluate("stateForReport()"))
        except Error as error:  # there is no page any more
            return str(error)

    def labels(self) -> list[str]:
        """The tokens as shown."""
        return self.tokens.all_inner_texts()


Open = Callable[..., Visit]  # the fixture `visit`
