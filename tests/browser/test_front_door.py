"""The page as it is first met, with the bundled models: its opening, the starts, the tour, and the
twelve questions that a class asks, each in at most three actions, in English or in French.

What stands on the page is compared with a run made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

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
MODELS = ("stories", "translate-en-fr")
MOST = 3  # actions a question takes
AGAIN = 20  # the second " B" in the opening's text
SHADES = """() => [...document.querySelectorAll("#tokens .text-tokens button.token")]
    .map(token => Number(token.style.getPropertyValue("--read")))"""
FILLED = """name => document.querySelector(`[data-picture=${name}]`).calcdata[0][0].z
    .map(row => [...row].filter(Number.isFinite).length)"""
# Both sides of the picture are at least so long, and nothing is wider than the window.
LARGE = """([width, least]) => {
    const { xaxis, yaxis } = document.querySelector(".large")._fullLayout;
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
    return model(name).generate(example.text, **example.settings)


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

    def start(self, words: str) -> None:
        """One of the buttons under the page's name; until the page shows what it leads to."""
        self.click(self.page.get_by_role("button", name=self.words(words)))
        self.page.wait_for_selector(".card:not([hidden])")
        self.visit.wait_for_link()

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
    the_text_is_played_token_by_token_with_what_each_reads(visitor)


def a_head_that_finishes_names_is_shown(visitor: Counted) -> None:
    run, page = opening("stories"), visitor.page
    assert run.labels[AGAIN : AGAIN + 2] == ("␣B", "r")
    weights = run.trace["decoder.5.self"].weights[0, 0, AGAIN]
    read = int(weights.argmax())
    assert run.labels[read - 1 : read + 1] == ("␣B", "r")  # what followed the last time
    assert visitor.visit.labels() == list(run.labels)
    assert visitor.sentence() == (
        "At ␣B the network is already choosing the next token, r. Head 5·0 reads r most "
        f"({float(weights[read]):.2f}), which followed ␣B last time."
    )
    assert page.evaluate(SHADES) == pytest.approx(
        shade(torch.nn.functional.pad(weights, (0, len(run.ids) - len(weights)))), abs=2e-3
    )
    assert not page.evaluate("location.hash")  # nothing was chosen: a clean address
    assert complaints(visitor.visit, "#top", "#tokens") == []


def a_token_pointed_at_or_walked_to_shades_the_text_on_every_tab(visitor: Counted) -> None:
    run, page = opening("stories"), visitor.page
    weights = run.trace["decoder.5.self"].weights[0, 0]
    visitor.visit.tokens.nth(13).hover()
    expect(page.locator(".token-says")).to_contain_text("At am the network is already choosing")
    assert page.evaluate(SHADES)[:14] == pytest.approx(shade(weights[13, :14]), abs=2e-3)
    page.mouse.move(700, 5)
    expect(page.locator(".token-says")).to_contain_text("At ␣B")  # the chosen one again
    visitor.visit.tab("Masks")
    visitor.visit.tokens.nth(AGAIN).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".token-says")).to_contain_text("At r the network")
    assert page.evaluate(SHADES)[: AGAIN + 2] == pytest.approx(
        shade(weights[AGAIN + 1, : AGAIN + 2]), abs=2e-3
    )
    page.keyboard.press("Escape")
    expect(page.locator(".token-says")).to_be_hidden()
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    assert visitor.visit.tokens.first.is_visible()
    box = visitor.visit.tokens.first.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 900


def the_text_is_played_token_by_token_with_what_each_reads(visitor: Counted) -> None:
    run, page = opening("stories"), visitor.page
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
    page.emulate_media(reduced_motion="reduce")
    assert page.get_by_role("button", name="Watch softmax").count() == 0
    page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("sizes", [[(1440, 900), (1280, 720), (1024, 768)], [(390, 844)]])
def test_the_picture_is_large_and_the_text_in_sight(
    visit: Open, address: str, sizes: list[tuple[int, int]]
) -> None:
    """In a window of the first size, which then takes the others."""
    page = visit(address, width=sizes[0][0], height=sizes[0][1])
    for width, height in sizes:
        page.page.set_viewport_size({"width": width, "height": height})
        page.page.evaluate("window.scrollTo(0, 0)")
        page.page.wait_for_function(LARGE, arg=[width, 480 if width >= 1024 else 160])
        labels = page.page.locator(".axis-labels .yaxis:not(.title)")
        if width >= 1024:  # all, and the chosen one
            expect(labels).to_have_count(len(opening("stories").labels) + 1)
        expect(page.page.locator(".axis-labels .chosen")).to_have_text(["␣B", "␣B"])
        page.wait_drawn(".worked")
        page.tokens.nth(AGAIN - 1).click()
        expect(page.page.locator(".token-says")).to_contain_text("At ␣and")
        says = page.page.locator(".token-says").bounding_box()
        assert says is not None
        assert 0 <= says["y"] < height - 20
        page.tokens.nth(AGAIN).click()


# --- the tour -------------------------------------------------------------------------------------


def test_the_tour_is_walked_by_keyboard_alone(visitor: Counted) -> None:
    page, every = visitor.page, cards(MODELS)
    assert 8 <= len(every) <= 10
    page.get_by_role("button", name="Tour").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".card-title")).to_be_focused()
    for place, card in enumerate(every):
        expect(page.locator(".card-title")).to_have_text(card["title"])
        page.wait_for_function("place => viz.snapshot().tour === place", arg=str(place + 1))
        visitor.visit.wait_for_link()
        shown = page.evaluate("viz.snapshot()")
        wanted = {k: v for k, v in card["state"].items() if (k, v) != ("tab", "attention")}
        assert {k: shown[k] for k in wanted if k in shown} == {
            k: v for k, v in wanted.items() if k in shown
        }
        assert page.locator(".problem:not([hidden])").count() == 0
        if place == 1:
            assert complaints(visitor.visit, ".card", "#top") == []
        page.keyboard.press("ArrowRight")
    assert page.locator(".card-next").is_hidden()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".card-title")).to_have_text(every[-2]["title"])
    page.keyboard.press("Escape")
    expect(page.locator(".card")).to_be_hidden()
    expect(page.get_by_role("button", name="Tour")).to_be_focused()
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
    weight = float(run.trace["decoder.2.cross"].weights[0, 2, 1, 2])
    says = asker.page.locator(".token-says")
    if asker.language == "en":
        expect(says).to_have_text(
            f"␣chat was chosen one token earlier, at Le. Head 2·2 reads ␣cat most ({weight:.2f})."
        )
    expect(says).to_contain_text(asker.number(weight, ".2f"))
    expect(says).to_contain_text("␣cat")
    shown = asker.page.locator(".top-key .value").first.inner_text()
    assert shown == asker.number(weight, ".3f")


def why_that_word_and_what_if_it_had_said_another(asker: Counted) -> None:
    """Two questions, one after the other; three actions for both."""
    run = opening("stories")
    step = 3
    asker.click(asker.visit.tokens.nth(run.n_prompt + step))
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
    settings = {**example_of(model("stories")).settings, "max_new_tokens": length}
    branch = model("stories").generate(run.request.text, forced_tokens=forced, **settings)
    assert asker.visit.labels() == list(branch.labels)


def what_is_added_for_position_7(asker: Counted) -> None:
    asker.click(asker.visit.tokens.nth(7))
    asker.tab("Positions", ".position-inputs")
    expect(asker.page.locator(".position-inputs")).to_have_attribute("data-place", "7")
    matrix = model("stories").network.embedding.positions.matrix
    shown = asker.page.evaluate(f"name => ({CELLS})(name)[7]", "matrix")
    assert shown == pytest.approx(matrix[7].tolist(), abs=1e-6)


def which_head_matters_most_here(asker: Counted) -> None:
    """The opening's chosen token has no forerunner to lose; "am" is chosen first."""
    run = opening("stories")
    place = AGAIN + 2
    asker.click(asker.visit.tokens.nth(place))
    asker.tab("What if?", ".silence")
    asker.click(asker.page.locator(".matter"))
    asker.page.wait_for_selector(f".silence[data-matter^='{place} ']")
    change = head_importance(model("stories"), run, place).change["decoder", "self"]
    assert divmod(int(change.argmin()), 8) == (5, 0)
    shown = torch.tensor(asker.page.evaluate(CELLS, "importance"))
    assert shown.flatten().tolist() == pytest.approx(change.flatten().tolist(), abs=1e-3)


def what_breaks_without_positions(asker: Counted) -> None:
    asker.start("Take away the word order")
    run = model("translate-en-fr").generate(
        "The man bit the dog.", max_new_tokens=64, interventions=[Break("no-positions")]
    )
    assert asker.visit.labels() == list(run.labels)
    assert asker.words("no positions") in asker.page.locator(".altered").inner_text()


def what_breaks_without_the_division(asker: Counted) -> None:
    asker.tab("What if?", ".breaks")
    asker.click(asker.page.get_by_role("button", name=asker.words("no scale"), exact=True))
    asker.page.wait_for_function("() => viz.run.interventions.length")
    facts: Any = asker.page.evaluate("viz.run.interventions")
    assert [one["is"] for one in facts] == [{"type": "break", "what": "no-scale"}]
    length = int(asker.page.evaluate("viz.run.link.length"))
    settings = {**example_of(model("stories")).settings, "max_new_tokens": length}
    run = model("stories").generate(
        opening("stories").request.text, interventions=[Break("no-scale")], **settings
    )
    assert asker.visit.labels() == list(run.labels)


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
    asker.start("Make the cat a dog")
    labels, sentence = asker.visit.labels(), asker.sentence()
    assert "".join(labels[1:4]).replace("␣", " ") == "Le chien noir"
    address = asker.visit.wait_for_address("tour=", "token=2")
    phone = asker.open(
        address, width=390, height=844, own={"has_touch": True, "locale": asker.language}
    )
    phone.wait_for_link()
    assert phone.labels() == labels
    expect(phone.page.locator(".token-says")).to_have_text(sentence)
    phone.tokens.nth(3).tap()  # what is tapped changes something in sight
    expect(phone.page.locator(".token-says")).to_contain_text("␣noir")
    # Text and bar stay in sight, and leave three quarters of the screen to what is looked at.
    phone.page.locator(".worked").scroll_into_view_if_needed()
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
    page = visit(address + "#model=stories&projector=1", width=1280, height=720)
    page.wait_for_link()
    size = "s => parseFloat(getComputedStyle(document.querySelector(s)).fontSize)"
    for part in ("#tokens .token:not(.special)", ".token-says", "#right [role=tab]"):
        assert page.page.evaluate(size, part) >= 24, part
    assert page.page.evaluate(size, ".axis-labels") >= 20
    assert not page.page.locator("#text").is_visible()
    assert page.page.evaluate("document.querySelector('.large')._fullLayout.xaxis._length") >= 480
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 1280
    picture = page.page.locator(".large").bounding_box()
    assert picture is not None
    assert picture["y"] <= 720 * 0.45  # most of it is seen without scrolling
    assert complaints(page, "#top", "#tokens", ".attention") == []
    with page.drawn(".attention"):
        page.page.get_by_role("button", name="Projector").click()
    assert page.page.locator("#text").is_visible()
