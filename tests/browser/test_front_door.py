"""The page as it is first met, with the bundled models: its opening, its cards, and the twelve
questions that a class asks, each in at most three actions, in English or in French.

What stands on the page is compared with a run made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import urlencode

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from serving import free_port, started, stop
from visit import Visit, complaints

import transformer
from transformer import Break, Model, Run, with_lens
from transformer.analysis.ablation import head_importance
from transformer.messages import numeral, say, speaking
from transformer.ui.examples import example_of
from transformer.ui.tour import cards

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
MODELS = ("stories", "translate-en-fr", "fill-in")
MOST = 3  # actions a question takes
LAST = 31  # the L at which the opening's text ends
MOST_CONTROLS = 40  # with words, in the first screen, that are no tokens, tabs or tabs' contents
SHADES = """() => [...document.querySelectorAll("#tokens .text-tokens button.token")]
    .map(token => Number(token.style.getPropertyValue("--read")))"""
FILLED = """name => document.querySelector(`[data-picture=${name}]`).calcdata[0][0].z
    .map(row => [...row].filter(Number.isFinite).length)"""
# Both sides of the picture are at least so long, and nothing is wider than the window.
LARGE = """([width, least]) => {
    const { xaxis, yaxis } = document.querySelector(".attention .large")._fullLayout;
    return innerWidth === width && document.documentElement.scrollWidth <= width
        && Math.min(xaxis._length, yaxis._length) >= least; }"""
CELLS = "name => document.querySelector(`[data-picture=${name}]`).calcdata[0][0].z.map(r => [...r])"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A page that offers the bundled models, as app.py does."""
    port = free_port()
    process = started(port, MODELS, tmp_path_factory.mktemp("door") / "log")
    yield f"http://127.0.0.1:{port}/"
    stop(process)


@cache
def model(name: str) -> Model:
    return transformer.load(name)


@cache
def opening(name: str) -> Run:
    """The model's own example, as the page shows it first."""
    example = example_of(model(name))
    if example.only_read:
        return model(name).trace(example.text)
    return model(name).generate(example.text, **example.settings)


@cache
def continued() -> Run:
    """What Generate makes of the opening of stories."""
    example = example_of(model("stories"))
    return model("stories").generate(example.text, **example.settings)


class Counted:
    """A visitor whose actions are counted: each click, each key."""

    def __init__(self, open_page: Open, address: str, language: str = "en") -> None:
        self.open = open_page
        self.visit = visit = open_page(address, language=language)
        self.page: Page = visit.page
        self.language = language
        self.actions = 0

    def words(self, sentence: str) -> str:
        """As the page says it."""
        with speaking(self.language):
            return say(sentence)

    def number(self, value: float, form: str) -> str:
        """As the page writes it."""
        with speaking(self.language):
            return numeral(value, form)

    def click(self, what: Locator) -> None:
        self.actions += 1
        what.click()

    def tab(self, name: str, drawn: str) -> None:
        self.click(self.page.get_by_role("tab", name=self.words(name), exact=True))
        self.visit.wait_drawn(drawn)

    def generate(self) -> None:
        """Press it, and wait for the whole text."""
        self.click(self.page.locator("#generate"))
        self.page.wait_for_function("() => viz.run.probabilities.length")

    def sentence(self) -> str:
        """What is said of the chosen token."""
        return self.page.locator(".token-says").inner_text()


@pytest.fixture
def visitor(visit: Open, address: str) -> Counted:
    return Counted(visit, address)


def shade(weights: torch.Tensor) -> list[float]:
    return [float(weight) ** (2 / 3) for weight in weights]


# --- the opening ----------------------------------------------------------------------------------


def test_the_page_opens_and_its_text_is_read_pointed_at_and_played(visitor: Counted) -> None:
    a_head_that_finishes_names_is_shown(visitor)
    softmax_is_watched_from_scores_to_weights(visitor)
    a_token_pointed_at_or_walked_to_shades_the_text_on_every_tab(visitor)
    generate_completes_the_name_and_keeps_what_is_chosen(visitor)
    the_head_switched_off_loses_it_in_words_beside_the_text(visitor)
    the_text_is_played_token_by_token_with_what_each_reads(visitor)


def a_head_that_finishes_names_is_shown(visitor: Counted) -> None:
    run, page = opening("stories"), visitor.page
    weights = run.trace["decoder.5.self"].pattern[0, 0, LAST]
    read = int(weights.argmax())
    assert run.labels[read - 1 : read + 1] == ("␣L", "o")  # what followed the last time
    assert visitor.visit.labels() == list(run.labels)
    assert visitor.sentence().startswith(
        "At ␣L the network chooses what comes next. Layer 5, head 0 reads o most "
        f"({float(weights[read]):.2f}), which followed ␣L last time."
    )
    assert page.evaluate(SHADES) == pytest.approx(shade(weights), abs=2e-3)
    assert complaints(visitor.visit, "#top", "#tokens") == []


def a_token_pointed_at_or_walked_to_shades_the_text_on_every_tab(visitor: Counted) -> None:
    run, page = opening("stories"), visitor.page
    weights = run.trace["decoder.5.self"].pattern[0, 0]
    visitor.visit.tokens.nth(13).hover()
    expect(page.locator(".token-says")).to_contain_text("At k the network is already choosing")
    assert page.evaluate(SHADES)[:14] == pytest.approx(shade(weights[13, :14]), abs=2e-3)
    page.mouse.move(700, 5)
    expect(page.locator(".token-says")).to_contain_text("At ␣L")  # the chosen one again
    visitor.visit.tab("Masks")
    visitor.visit.tokens.nth(23).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".token-says")).to_contain_text("At o the network")
    assert page.evaluate(SHADES)[:25] == pytest.approx(shade(weights[24, :25]), abs=2e-3)
    page.keyboard.press("Escape")
    expect(page.locator(".token-says")).to_be_hidden()
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    assert visitor.visit.tokens.first.is_visible()
    box = visitor.visit.tokens.first.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 900


def generate_completes_the_name_and_keeps_what_is_chosen(visitor: Counted) -> None:
    run, page = continued(), visitor.page
    visitor.visit.tab("Attention")
    visitor.visit.tokens.nth(LAST).click()
    visitor.generate()
    assert run.labels[LAST : LAST + 4] == ("␣L", "o", "k", "i")
    assert visitor.visit.labels() == list(run.labels)
    assert page.evaluate("[viz.query.index, viz.siteName(viz.head), viz.head.head]") == [
        LAST, "decoder.5.self", 0,
    ]  # fmt: skip
    expect(page.locator(".head-finding")).to_contain_text("Layer 5, head 0 goes on as last time")


def the_head_switched_off_loses_it_in_words_beside_the_text(visitor: Counted) -> None:
    page = visitor.page
    page.locator(".ablate-head").click()
    expect(page.locator(".altered li bdi")).to_have_text("layer 5, head 0 switched off")
    for which, text in (
        ("before", "oki! I am so big"),
        ("after", "ittle bird! I am a very hungry"),
    ):
        line = page.locator(f"[data-text={which}]")
        expect(line).to_contain_text(text.replace(" ", "␣"))
        expect(line).to_be_in_viewport()
    assert page.evaluate("viz.query.index") == LAST
    page.locator(".intact").click()
    page.wait_for_function("() => !viz.run.interventions.length")
    assert visitor.visit.labels() == list(continued().labels)


def the_text_is_played_token_by_token_with_what_each_reads(visitor: Counted) -> None:
    run, page = continued(), visitor.page
    page.keyboard.press("Escape")
    page.get_by_role("button", name="One token on").click()  # from the last given token
    unwritten = page.locator("#tokens .unwritten")
    assert unwritten.count() == len(run.steps)
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("start => viz.query.index > start", arg=run.n_prompt)
    page.get_by_role("button", name="Pause").click()
    here = page.evaluate("viz.query.index")
    assert unwritten.count() == len(run.ids) - 1 - here
    assert run.labels[here + 1] in visitor.sentence()
    page.get_by_role("button", name="One token back").click()
    assert page.evaluate("viz.query.index") == here - 1
    page.keyboard.press("Escape")
    assert unwritten.count() == 0


def softmax_is_watched_from_scores_to_weights(visitor: Counted) -> None:
    page = visitor.page
    page.evaluate("""() => { window.stages = []; const box = document.querySelector(".attention");
        new MutationObserver(() => stages.push(box.dataset.stage))
            .observe(box, { attributeFilter: ["data-stage"] }); }""")
    page.get_by_role("button", name="Watch softmax").click()
    page.wait_for_function("new Set(stages).size === 3 && stages.at(-1) === 'weights'")
    page.emulate_media(reduced_motion="reduce")  # then it steps
    for stage in ("scores", "masked", "weights"):
        page.get_by_role("button", name="Watch softmax").click()
        expect(page.locator(".attention")).to_have_attribute("data-stage", stage)
    page.emulate_media(reduced_motion="no-preference")


def test_the_first_screen_has_few_controls_and_its_header_one_line(
    visit: Open, address: str
) -> None:
    page = visit(address, language="de", tab="Journey").page
    assert not page.evaluate("location.hash")  # nothing was chosen: a clean address
    counted = page.evaluate("""() => [...document.querySelectorAll(
        "button, a[href], input, select, textarea, summary, [role=button]")]
        .filter(one => one.checkVisibility({ visibilityProperty: true }) && !one.matches(".token")
            && !one.closest(".tabitem, [role=tablist], .visually-hidden"))
        .filter(one => { const { top, width } = one.getBoundingClientRect();
            return width > 1 && top < innerHeight; })
        .map(one => one.textContent.trim() || one.ariaLabel || one.id)""")
    assert 5 < len(counted) <= MOST_CONTROLS, counted
    top = page.locator("#top").bounding_box()
    assert top is not None
    assert top["height"] < 60


@pytest.mark.parametrize("sizes", [[(1440, 900), (1280, 720), (1024, 768)], [(390, 844)]])
def test_the_picture_is_large_and_the_text_in_sight(
    visit: Open, address: str, sizes: list[tuple[int, int]]
) -> None:
    """In a window of the first size, which then takes the others."""
    page = visit(address, width=sizes[0][0], height=sizes[0][1])
    page.tab("Attention")
    page.wait_drawn(".attention")
    for width, height in sizes:
        page.page.set_viewport_size({"width": width, "height": height})
        page.page.evaluate("window.scrollTo(0, 0)")
        page.page.wait_for_function(LARGE, arg=[width, 480 if width >= 1024 else 160])
        labels = page.page.locator(".attention .axis-labels .yaxis:not(.title)")
        page.page.mouse.move(0, 0)  # on the phone the tab's content has come under it
        if width >= 1024:  # at least every second, one of them the chosen one
            assert labels.count() >= len(opening("stories").labels) / 2
        expect(page.page.locator(".attention .axis-labels .chosen")).to_have_text(["␣L", "␣L"])
        page.wait_drawn(".worked")
        page.tokens.nth(LAST - 2).click()
        expect(page.page.locator(".token-says")).to_contain_text("At Hello")
        says = page.page.locator(".token-says").bounding_box()
        assert says is not None
        assert 0 <= says["y"] < height - 20
        page.tokens.nth(LAST).click()


# --- the cards ------------------------------------------------------------------------------------


def test_the_cards_are_walked_by_keyboard_alone(visitor: Counted) -> None:
    page, every = visitor.page, cards(MODELS)
    assert 8 <= len(every) <= 11
    page.get_by_role("button", name="Start here").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".card-title")).to_be_focused()
    for place, card in enumerate(every):
        expect(page.locator(".card-title")).to_have_text(card["title"])
        page.wait_for_function("place => viz.snapshot().tour === place", arg=str(place + 1))
        visitor.visit.wait_for_link()
        shown = page.evaluate("viz.snapshot()")
        wanted = {k: v for k, v in card["state"].items() if (k, v) != ("tab", "journey")}
        assert {k: shown[k] for k in wanted if k in shown} == {
            k: v for k, v in wanted.items() if k in shown
        }
        assert page.locator(".problem:not([hidden])").count() == 0
        if place == 1:
            assert complaints(visitor.visit, ".card", "#top") == []
        page.keyboard.press("ArrowRight")
    expect(page.locator(".card-next")).to_have_text("Lessons ›")  # what comes after
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".card-title")).to_have_text(every[-2]["title"])
    page.keyboard.press("Escape")
    expect(page.locator(".card")).to_be_hidden()
    expect(page.get_by_role("button", name="Start here")).to_be_focused()
    visitor.visit.wait_for_link()
    assert "tour" not in page.evaluate("viz.snapshot()")


# --- the twelve questions -------------------------------------------------------------------------


def which_head_looks_one_token_back(asker: Counted) -> None:
    asker.visit.wait_drawn(".ranking")
    asker.click(asker.page.locator(".ranking-table [data-by=previous]"))
    best = asker.page.locator(".ranking-table .rows tr").first
    metrics = transformer.views.head_metrics(opening("stories"), "decoder", "self")
    wanted = max(metrics.heads, key=lambda head: head.values["previous"])
    assert best.get_attribute("data-layer") == str(wanted.layer)
    assert best.get_attribute("data-head") == str(wanted.head)


def masks_what_the_causal_one_forbids_and_whose_padding_is_seen(asker: Counted) -> None:
    """Two questions: what the causal mask forbids, and whether padding is read."""
    asker.tab("Masks", ".masks")
    batch = model("stories").trace(list(example_of(model("stories")).batch))
    width, lengths = batch.ids.shape[1], batch.padding.sum(dim=1).tolist()
    assert asker.page.evaluate(FILLED, "causal") == list(range(1, width + 1))
    assert asker.page.evaluate(FILLED, "padded") == lengths
    with asker.visit.drawn(".masks"):
        asker.click(asker.page.locator(".sentence").nth(2))
    assert asker.page.evaluate(FILLED, "padding") == [lengths[2]] * width


def what_chat_read_in_the_english(asker: Counted) -> None:
    asker.click(asker.page.locator("#model input"))
    with asker.visit.drawn(".attention"):
        asker.click(asker.page.get_by_role("option", name="translate-en-fr", exact=True))
        asker.page.wait_for_selector("#tokens .source-tokens button.token")
    run = opening("translate-en-fr")
    asker.visit.wait_for_link()
    asker.click(asker.visit.tokens.nth(run.labels.index("␣chat")))
    weight = float(run.trace["decoder.2.cross"].pattern[0, 2, 1, 2])
    says = asker.page.locator(".token-says")
    if asker.language == "en":
        expect(says).to_contain_text(
            "␣chat was chosen one token earlier, at Le. Layer 2, head 2 reads ␣cat most "
            f"({weight:.2f})."
        )
    expect(says).to_contain_text(asker.number(weight, ".2f"))
    expect(says).to_contain_text("␣cat")
    shown = asker.page.locator(".top-key .value").first.inner_text()
    assert shown == asker.number(weight, ".3f")


def why_that_word_and_what_if_it_had_said_another(asker: Counted) -> None:
    """Two questions, one after the other; three actions for both."""
    run = continued()
    step = 0  # what follows the L, which stays chosen
    asker.generate()
    asker.tab("Prediction", ".prediction")
    expect(asker.page.locator(".prediction")).to_have_attribute("data-step", str(step))
    chosen = run.steps[step].chosen
    assert asker.number(chosen.probability, ".3f") in asker.page.locator(".step-title").inner_text()
    other = next(one for one in run.steps[step].candidates if one.id != chosen.id)
    bars = "document.querySelector('[data-picture=candidates]').layout.meta.ids"
    place = asker.page.evaluate(bars).index(other.id)
    asker.actions += 1
    bar = asker.visit.place_in("candidates", other.probability / 3, place - 0.2)
    asker.page.mouse.move(*bar, steps=3)
    asker.page.mouse.click(*bar)
    asker.page.wait_for_function("() => viz.run.forced_tokens.length")
    forced = [*run.ids[run.n_prompt : run.n_prompt + step], other.id]
    length = int(asker.page.evaluate("viz.run.link.length"))
    branch = model("stories").generate(
        run.request.text, forced_tokens=forced, max_new_tokens=length
    )
    assert asker.visit.labels() == list(branch.labels)


def what_is_added_for_position_7(asker: Counted) -> None:
    asker.click(asker.visit.tokens.nth(7))
    asker.tab("Positions", ".position-inputs")
    expect(asker.page.locator(".position-inputs")).to_have_attribute("data-place", "7")
    matrix = model("stories").network.embedding.positions.matrix
    shown = asker.page.evaluate(f"name => ({CELLS})(name)[7]", "matrix")
    assert shown == pytest.approx(matrix[7].tolist(), abs=1e-6)


def which_head_matters_most_here(asker: Counted) -> None:
    """For the o of the second name."""
    run = opening("stories")
    place = 24
    asker.click(asker.visit.tokens.nth(place - 1))  # the token before it
    asker.tab("What if?", ".ablation")
    asker.click(asker.page.locator(".matter"))
    asker.page.wait_for_selector(f".ablation[data-matter^='{place} ']")
    change = head_importance(model("stories"), run, place).change["decoder", "self"]
    assert divmod(int(change.argmin()), 8) == (5, 0)
    shown = torch.tensor(asker.page.evaluate(CELLS, "importance"))
    assert shown.flatten().tolist() == pytest.approx(change.flatten().tolist(), abs=1e-3)


def what_breaks_without_positions(asker: Counted) -> None:
    breaks_an_idea(asker, "translate-en-fr", "no-positions")


def breaks_an_idea(asker: Counted, name: str, idea: str) -> None:
    asker.tab("What if?", ".breaks")
    words = asker.words(idea.replace("-", " "))
    asker.click(asker.page.get_by_role("button", name=words, exact=True))
    asker.page.wait_for_function("() => viz.run.interventions.length")
    facts: Any = asker.page.evaluate("viz.run.interventions")
    assert [one["is"] for one in facts] == [{"type": "break", "what": idea}]
    length = int(asker.page.evaluate("viz.run.link.length"))
    text = opening(name).request.text
    run = model(name).generate(text, max_new_tokens=length, interventions=[Break(idea)])
    assert asker.visit.labels() == list(run.labels)
    assert words in asker.page.locator(".altered").inner_text()


def what_breaks_without_the_division(asker: Counted) -> None:
    breaks_an_idea(asker, "stories", "no-scale")


def how_layer_2_already_knew(asker: Counted) -> None:
    asker.tab("Prediction", ".lens-box")
    lens = with_lens(model("stories"), opening("stories")).lens
    assert lens is not None
    shown = asker.page.evaluate(CELLS, "lens")
    rows = asker.page.locator(".lens-rows span").all_inner_texts()
    row = next(place for place, name in enumerate(rows) if "2" in name)
    assert shown[row] == pytest.approx(
        lens.probabilities[3, : len(shown[row]), 0].tolist(), abs=1e-5
    )


def the_same_on_a_phone(asker: Counted) -> None:
    place, card = next(
        (place, card) for place, card in enumerate(cards(MODELS), 1)
        if card["title"] == "Make the cat a dog"
    )  # fmt: skip
    asker.page.goto(f"{asker.page.url.split('#')[0]}#{urlencode(card['state'])}&tour={place}")
    asker.visit.wait_for_link()
    asker.page.wait_for_function("() => viz.run.interventions.length")
    labels, sentence = asker.visit.labels(), asker.sentence()
    assert "".join(labels[1:4]).replace("␣", " ") == "Le chien noir"
    address = asker.visit.wait_for_address("tour=", "read=2")
    phone = asker.open(
        address, width=390, height=844, own={"has_touch": True, "locale": asker.language}
    )
    phone.wait_for_link()
    assert phone.labels() == labels
    expect(phone.page.locator(".token-says")).to_have_text(sentence)
    phone.tokens.nth(3).tap()  # what is tapped changes something in sight
    expect(phone.page.locator(".token-says")).to_contain_text("␣noir")
    # Text and bar stay in sight, and leave three quarters of the screen to what is looked at.
    phone.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    shown = """() => ["#tokens", "#altered"].map(name => {
        const { top, bottom } = document.querySelector(name).getBoundingClientRect();
        return Math.min(bottom, innerHeight) - Math.max(top, 0); })"""
    text, bar = phone.page.evaluate(shown)
    assert text > 60
    assert bar > 40
    assert text + bar <= 844 / 4


# Each series begins at the opening and goes on from where the question before has led.
SERIES: list[tuple[str, list[Callable[[Counted], None]]]] = [
    (
        "fr",
        [
            which_head_looks_one_token_back,
            masks_what_the_causal_one_forbids_and_whose_padding_is_seen,
            what_is_added_for_position_7,
            how_layer_2_already_knew,
            which_head_matters_most_here,
            why_that_word_and_what_if_it_had_said_another,
        ],
    ),
    ("en", [what_chat_read_in_the_english, what_breaks_without_positions]),
    ("en", [what_breaks_without_the_division, the_same_on_a_phone]),
]


@pytest.mark.parametrize(("language", "questions"), SERIES, ids=["six", "translated", "changed"])
def test_each_question_takes_three_actions_at_most(
    visit: Open, address: str, language: str, questions: list[Callable[[Counted], None]]
) -> None:
    """Some are asked in English, some by a visitor whose browser speaks French."""
    asker = Counted(visit, address, language)
    for question in questions:
        asker.actions = 0
        asker.page.evaluate("window.scrollTo(0, 0)")
        question(asker)
        assert asker.actions <= MOST, question.__name__


# --- the projector --------------------------------------------------------------------------------


def test_projected_the_type_is_large_and_the_settings_are_away(visit: Open, address: str) -> None:
    page = visit(address + "#model=stories&projector=1&tab=attention", width=1280, height=720)
    page.wait_for_link()
    size = "s => parseFloat(getComputedStyle(document.querySelector(s)).fontSize)"
    for part in ("#tokens .token:not(.special)", ".token-says", "#right [role=tab]"):
        assert page.page.evaluate(size, part) >= 24, part
    assert page.page.evaluate(size, ".axis-labels") >= 20
    assert not page.page.locator("#text").is_visible()
    page.page.wait_for_function(LARGE, arg=[1280, 480])
    picture = page.page.locator(".attention .large").bounding_box()
    assert picture is not None
    assert picture["y"] <= 720 * 0.45  # most of it is seen without scrolling
    assert complaints(page, "#top", "#tokens", ".attention") == []
    with page.drawn(".attention"):
        page.menu()
        page.page.get_by_role("button", name="Projector").click()
    assert page.page.locator("#text").is_visible()


HEIGHT = """() => [...document.querySelectorAll("#right .tabitem")]
    .reduce((most, tab) => Math.max(most, tab.getBoundingClientRect().height), 0)"""
FIRST = {
    "Attention": ".attention", "Masks": ".masks", "Positions": ".positions",
    "Prediction": ".prediction", "What if?": "#whatif-introduction", "Learn": ".learn",
    "Model": ".architecture",
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_tab_opens_at_most_1200_px_tall_with_its_sections_closed(
    visit: Open, address: str, name: str
) -> None:
    page = visit(f"{address}#model={name}", width=1440, height=900)
    page.wait_for_link()
    for tab, part in FIRST.items():
        page.tab(tab)
        if part.startswith("."):
            page.wait_drawn(part)
        assert page.page.evaluate(HEIGHT) <= 1200, tab
        assert page.page.locator(".section[open]").count() == 0
        assert page.page.locator(".section-body > *").count() == 0  # nothing asked, nothing drawn


# --- what is typed --------------------------------------------------------------------------------


def test_a_reload_keeps_what_is_typed_and_a_foreign_text_is_told(visit: Open, address: str) -> None:
    page = visit(address, tab="Journey")
    page.page.locator("#text textarea").fill("Der Hund schläft")
    page.page.reload()
    expect(page.page.locator("#text textarea")).to_have_value("Der Hund schläft")
    page.wait_for_link()
    page.page.locator("#generate").click()
    says = page.page.locator("#status .status")
    expect(says).to_contain_text("this model learned simple English stories alone")
    page.wait_for_address("text=Der")
    page.page.reload()  # what was generated is in the address
    page.wait_for_link()
    expect(page.page.locator("#text textarea")).to_have_value("Der Hund schläft")


def test_what_is_hidden_from_an_encoder_is_said_large_and_a_press_hides_more(
    visit: Open, address: str
) -> None:
    visitor = visit(address + "#model=fill-in", tab="Journey")
    visitor.wait_for_link()
    page = visitor.page
    visitor.enter("The [MASK] ran up the [MASK].")
    best = page.locator(".hidden-best")
    expect(best).to_have_count(2)
    found = model("fill-in").fill("The [MASK] ran up the [MASK].").guesses
    for place, (first, *_) in enumerate(found):
        said = f"{first.text.strip()} {100 * first.probability:.1f} %"
        expect(best.nth(place)).to_have_text(said)
    visitor.enter("The dog ran up the hill.")
    expect(best).to_have_count(0)
    expect(page.locator(".hidden-hint")).to_be_in_viewport()
    page.locator("#tokens .token").nth(2).click()
    expect(page.locator(".hidden-word")).to_contain_text("If ␣dog were hidden:")
