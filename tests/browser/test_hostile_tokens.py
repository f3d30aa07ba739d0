"""Every view of a run whose tokens look like markup and scripts: all of it stays text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from serving import MARKUP, Server
from visit import Visit

from transformer import Run, with_lens

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]

TEXT = "".join(MARKUP) + "<s><b>x</b><s>"  # some of them again
SENTENCES = ("".join(MARKUP), "<s></script><b>x</b>")
SETTINGS = {"max_new_tokens": 6, "temperature": 0.7, "top_k": 40, "seed": 3}
SEARCH = {"max_new_tokens": 6, "beams": 4}

# What a page that took a token for more than text would hold; b elements of the page's own are
# numbers and titles.
STRAY = """() => [
    ...document.querySelectorAll("s, img[src=x], script:not([src])"),
    ...[...document.querySelectorAll("b, tspan")].filter(one => one.textContent === "x"),
].map(one => one.outerHTML.slice(0, 80))"""
TEXTS = """selector => [...document.querySelectorAll(selector)]
    .filter(one => one.getClientRects().length).map(one => one.textContent)"""
# Headings and sentences that run out of their place.
CUT_OFF = """() => [...document.querySelectorAll(".html-container :is(h3, h4, p)")]
    .filter(one => one.scrollWidth > one.clientWidth + 1 && !one.matches(".unseen, .for-keys"))
    .map(one => one.className)"""
REMOVED = "document.querySelector('.removal')?.dataset.batch === viz.batch.batch"
HOVERED = """([name, text]) => document.querySelector(`[data-picture=${name}] .hoverlayer`)
    .textContent.replaceAll(/[\u2068\u2069]/g, "").includes(text)"""


class Hostile:
    """A page that shows a run of hostile tokens, and what of it can be read there."""

    def __init__(self, visit: Visit, run: Run) -> None:
        self.visit, self.page, self.run = visit, visit.page, run
        self.before = self.page.evaluate(STRAY)
        visit.choose_model(run.model)
        visit.set_length(run.request.max_new_tokens)
        visit.generate(TEXT)

    def texts(self, selector: str) -> list[str]:
        """The texts of what can be seen, without direction marks and spaces of a number's width."""
        found = self.page.evaluate(TEXTS, selector)
        return [re.sub("[\u2068\u2069\u2007\u2008]", "", text).strip() for text in found]

    def shows(self, selector: str, labels: Sequence[str], *, all_of_them: bool = True) -> None:
        """What stands there are these labels, whole or shortened; all of them, or some."""
        shown = [text.removeprefix("▶ ") for text in self.texts(selector)]
        assert shown, selector
        foreign = [text for text in shown if not any(is_label(text, label) for label in labels)]
        missing = [label for label in labels if not any(is_label(text, label) for text in shown)]
        assert (foreign, missing if all_of_them else []) == ([], []), selector
        self.is_clean()

    def is_clean(self) -> None:
        """Nothing but text was made of a token, and nothing is wider than the window."""
        assert self.page.evaluate(STRAY) == self.before
        width = self.page.evaluate("document.documentElement.scrollWidth")
        assert width <= (self.page.viewport_size or {})["width"]
        assert self.page.evaluate(CUT_OFF) == []

    def see(self, selector: str) -> None:
        """Scroll there and wait until it is drawn."""
        self.visit.wait_drawn(selector)

    def table(self, selector: str) -> list[list[str]]:
        """The rows of the table behind a picture, opened, heads first."""
        behind = self.page.locator(f"{selector} .as-table").first
        behind.locator("summary").click()
        behind.locator("tr").first.wait_for(state="attached")  # it is filled when it opens
        rows = behind.locator("tr").all()
        self.is_clean()
        return [row.locator("th, td").all_text_contents() for row in rows]

    def switch(self, value: str) -> None:
        """Choose another picture of attention."""
        self.visit.show_more()
        with self.visit.drawn(".attention"):
            self.page.locator(f".pictures input[value='{value}']").check()

    def hover(self, picture: str, column: float, row: float, label: str) -> None:
        """Point at a cell or a bar, and wait until Plotly tells of this token."""
        self.page.mouse.move(*self.visit.place_in(picture, column, row), steps=3)
        self.page.wait_for_function(HOVERED, arg=[picture, label])
        self.is_clean()


def is_label(text: str, label: str) -> bool:
    """Whether a text is a label, or its beginning and an ellipsis."""
    return text == label or (len(text) > 3 and text[-1] == "…" and label.startswith(text[:-1]))


def story(server: Server) -> Run:
    """The same generation as on the page."""
    return with_lens(server.hostile, server.hostile.generate(TEXT, **SETTINGS))


def translation(server: Server) -> Run:
    """The same translation as on the page."""
    return with_lens(server.hostile_translator, server.hostile_translator.generate(TEXT, **SEARCH))


def distinct(labels: Sequence[str]) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(labels))


# --- one look at every view -----------------------------------------------------------------------


def test_the_tokens_are_whole_and_hostile(server: Server) -> None:
    """What follows says something only of a run with such tokens, given and generated."""
    for run, read in ((story(server), story(server).labels), (translation(server), None)):
        assert set(MARKUP) <= set(read or run.source_labels)
        assert set(run.labels[run.n_prompt :]) & set(MARKUP)
    assert {"<s>", "<b>x</b>", "</script>", "{{value}}", "w" * 300, "שלום"} <= set(MARKUP)


def test_every_view_of_a_text(visit: Open, server: Server) -> None:
    page = Hostile(visit(), story(server))
    attention_pictures_readout_and_tables(page)
    page.switch("heatmap")
    a_row_worked_out_and_the_ranking(page)
    masks_of_hostile_sentences(page, server)
    positions_prediction_and_model(page)


def attention_pictures_readout_and_tables(page: Hostile) -> None:
    labels = page.run.labels
    assert page.texts("#tokens .text-tokens button.token") == list(labels)
    for picture in ("mean", "rollout", "joint", "heatmap"):
        page.switch(picture)
        for axis in ("xaxis", "yaxis"):
            page.shows(f".axis-labels .{axis}:not(.title)", distinct(labels))
    long, last = labels.index("w" * 300), len(labels) - 1
    page.visit.point_at(last, long)
    assert page.texts("[data-field=key]") == [f"{labels[long]} at {long}"]
    assert page.texts("[data-field=query]") == [f"{labels[last]} at {last}"]
    page.shows(".top-key bdi", labels, all_of_them=False)
    page.page.locator(".large").press("Home")
    assert f"reads key 0 “{labels[0]}”" in page.page.locator(".said").inner_text()
    names = [f"{place} {label}" for place, label in enumerate(labels)]
    head, *rows = page.table(".large-side")
    assert (head[1:], [row[0] for row in rows]) == (names[:12], names)
    page.switch("lines")
    page.shows(".lines .textpoint text", distinct(["query", "weight, key", *labels]))
    for _, query, key, _ in page.table(".large-side > div:last-child")[1:]:
        assert query in names
        assert key in names


def a_row_worked_out_and_the_ranking(page: Hostile) -> None:
    labels = page.run.labels
    page.see(".attention-math")
    long = labels.index("w" * 300)
    with page.visit.drawn(".attention-math"):
        page.visit.tokens.nth(long).click()
        page.see(".attention-math")
    assert page.texts("[data-section=attention_math] > summary bdi") == ["w" * 300]
    assert page.texts(".row-table th button") == list(labels)
    page.page.locator(f".row-table tr[data-key='{labels.index('<b>x</b>')}'] button").click()
    assert page.texts(".steps-title bdi") == ["<b>x</b>"]
    page.shows("[data-picture=attention_math] .ytick text", distinct(labels))
    rows = page.table(".attention-math")
    assert [row[0] for row in rows[2:-1]] == [f"key {n} {label}" for n, label in enumerate(labels)]
    page.see(".ranking")
    page.is_clean()


def masks_of_hostile_sentences(page: Hostile, server: Server) -> None:
    batch = server.hostile.trace(SENTENCES)
    labels = [label for row in batch.labels for label in row]
    page.visit.tab("Masks")
    page.visit.wait_drawn(".masks")
    page.page.locator("#lines textarea").fill("\n".join(SENTENCES))
    with page.visit.drawn(".masks"):
        page.page.locator("#show-masks").click()
    assert page.texts(".sentence bdi") == list(SENTENCES)
    page.shows("[data-picture=padded] .heatmap-label text", distinct(labels), all_of_them=False)
    for names in (("padding", "causal", "combined"), ("scores", "masked", "weights")):
        if "scores" in names:
            page.see(".mask-scores")
        for name in names:
            page.shows(f"[data-picture={name}] .xtick text", labels, all_of_them=False)
            page.shows(f"[data-picture={name}] .ytick text", labels, all_of_them=False)
    page.see(".removal")
    page.page.wait_for_function(REMOVED)
    for name in ("without", "changes"):
        page.shows(f"[data-picture={name}] .ytick text", labels, all_of_them=False)


def positions_prediction_and_model(page: Hostile) -> None:
    """The long token is chosen."""
    run = page.run
    page.visit.tab("Positions")
    for part in (".positions", ".position-formula", ".position-shift", ".position-inputs"):
        page.see(part)
    page.shows("[data-picture=strips] .ytick text", distinct(run.labels))
    assert page.texts(".input-title bdi") == ["w" * 300]
    page.visit.tokens.nth(run.n_prompt - 1).click()
    page.visit.tab("Prediction")
    page.visit.wait_drawn(".prediction")
    known = list(run.candidate_labels.values())
    page.shows("[data-picture=candidates] .ytick text", known, all_of_them=False)
    assert page.texts(".step-title bdi") == [run.labels[run.n_prompt]]
    assert page.texts(".step-text bdi") == list(run.labels[: run.n_prompt + 1])
    page.see(".surprisal-box")
    page.shows("[data-picture=surprisal] .xtick text", distinct(run.labels))
    script = run.labels.index("</script>")
    page.hover("surprisal", script, 0.5 * (run.surprisal[script] or 0), "</script>")
    page.see(".lens-box")
    page.shows("[data-picture=lens] .xtick text", distinct(run.labels))
    page.shows("[data-picture=lens] .textpoint text", known, all_of_them=False)
    page.hover("lens", run.labels.index("<b>x</b>"), 1, "<b>x</b>")
    best = run.candidate_labels[int(run.lens.ids[0, 0, 0])]
    assert page.table(".lens-box")[1][1].startswith(f"{best} 0.")
    page.visit.tab("Model")
    page.visit.wait_drawn(".architecture")
    page.is_clean()


def test_a_translations_own_views(visit: Open, server: Server) -> None:
    page = Hostile(visit(), translation(server))
    run = page.run
    assert page.texts("#tokens .source-tokens button.token") == list(run.source_labels)
    page.see(".ranking")
    page.shows(".ranking .label bdi", run.source_labels, all_of_them=False)  # "reads one token: …"
    page.page.locator(".attention").scroll_into_view_if_needed()
    page.visit.attention("decoder cross")
    page.switch("alignment")
    tokens = (*run.queries("decoder"), *run.source_labels)
    page.shows(".lines .textpoint text", distinct([*tokens, "source", "target"]))
    names = [f"{place} {label}" for place, label in enumerate(run.source_labels)]
    assert all(row[2] in names for row in page.table(".large-side > div:last-child")[1:])
    page.visit.tab("Prediction")
    page.see(".tree-box")
    known = ["start", *run.candidate_labels.values()]
    page.shows(".tree .textpoint text", known, all_of_them=False)


def test_nothing_is_wider_than_a_phone(visit: Open, server: Server) -> None:
    page = Hostile(visit(width=390, height=2400), translation(server))
    page.visit.tokens.nth(page.run.n_prompt).click()
    page.visit.attention("decoder self")
    for picture in ("mean", "rollout", "joint", "lines"):
        page.switch(picture)
        page.is_clean()
    page.visit.attention("decoder cross")
    page.switch("alignment")
    parts = {
        "Attention": (".ranking", ".attention-math"),
        "Masks": (".masks", ".removal"),
        "Positions": (".positions", ".position-inputs", ".position-formula", ".position-shift"),
        "Prediction": (".prediction", ".surprisal-box", ".lens-box", ".tree-box"),
        "Model": (".architecture",),
    }
    for tab, shown in parts.items():
        page.visit.tab(tab)
        for part in shown:
            page.see(part)
            page.is_clean()
    assert page.page.locator(".architecture-drawing").is_visible()
    assert page.page.locator(".part").first.is_visible()
