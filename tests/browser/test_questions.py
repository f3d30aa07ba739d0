"""The questions that a class asks: each from the opened page, in at most three actions, and
what is then seen there is what a run made here says."""

import re
import struct
from collections.abc import Iterator

import numpy as np
import pytest
from kit import serving
from kit.browser import Visit
from kit.visitors import MOST, Counted, continued, model, opening
from playwright.sync_api import Locator, Page, expect

from transformer import Ablate, Break, with_lens
from transformer.analysis.atlas import reading_weights
from transformer.analysis.mask_removal import without_mask
from transformer.server.kept.page_models import example_of

LAST = 31  # the L at which the opening's text ends
IT = "Lily loved the dog because it"  # one of the texts that the page suggests


@pytest.fixture(scope="module")
def address() -> str:
    """As visitors open it: the network is in their browser."""
    return serving.bundled().url


@pytest.fixture
def asker(door: Visit) -> Iterator[Counted]:
    """At the page as it opens; settings alone outlive a link."""
    door.page.mouse.move(5, 5)
    door.go("model=stories&tab=journey")
    asker = Counted(door)
    yield asker
    assert 1 <= asker.actions <= MOST


def in_view(part: Locator) -> None:
    part.scroll_into_view_if_needed()
    expect(part).to_be_in_viewport()


def open_translator(asker: Counted) -> None:
    asker.click(asker.page.get_by_role("button", name="translates", exact=True))
    asker.page.wait_for_selector("#tokens .source-tokens button.token")
    asker.visit.wait_for_link()


def tops(page: Page) -> list[float]:
    """The widths of the drawn bars of what comes next, in per cent."""
    widths: list[float] = page.evaluate(
        """() => [...document.querySelectorAll(".next-word .drawn")]
            .map(bar => parseFloat(bar.style.width))"""
    )
    return widths


def test_how_two_prompts_differ(asker):
    """The first: before it only the opening has been shown. To type and to send is one action."""
    asker.actions += 1
    box = asker.visit.text_box()
    box.fill(opening("stories").request.text.replace("Loki", "Tom"))
    old = asker.visit.shown_run()
    asker.press(box, "Enter")
    asker.page.wait_for_function("old => viz.run.run !== old", arg=old)
    asker.click(asker.page.get_by_role("button", name="Compare with another run"))
    asker.visit.wait_drawn(".compare")
    asker.page.wait_for_selector(".side-a .pair")
    asker.visit.wait_for_link()
    for side, labels in (("a", asker.visit.labels()), ("b", opening("stories").labels)):
        expect(asker.page.locator(f".side-{side} .pair")).to_have_text(list(labels))
    in_view(asker.page.locator(".side-a .replaced, .side-a .only-a").first)
    expect(asker.page.locator(".compare-a")).to_contain_text("named Tom.")
    expect(asker.page.locator(".compare-b option:checked")).to_contain_text("named Loki.")
    # beyond the answer: the opening was only read, and one press lets it write on as well
    says = "B was only read: “Write B on” shows what it would write."
    expect(asker.page.locator(".compare-says")).to_have_text(says)
    asker.page.get_by_role("button", name="Write B on").click()
    asker.page.wait_for_function("() => viz.run.text.includes('Loki') && viz.run.n_prompt")
    asker.visit.wait_drawn(".compare-outcomes")
    asker.page.wait_for_selector("[data-picture=outcomes] .barlayer .point")  # both wrote


def test_which_word_does_it_read(asker):
    old = asker.visit.shown_run()
    asker.click(asker.page.get_by_role("button", name="Which word does it read?"))
    asker.page.wait_for_function("old => viz.run.run !== old && viz.run.n_prompt", arg=old)
    run = model("stories").generate(IT, **example_of(model("stories")).settings)
    it, dog = run.labels.index("␣it"), run.labels.index("␣dog")
    expect(asker.visit.tokens).to_have_text(list(run.labels))
    expect(asker.visit.tokens.nth(it)).to_have_attribute("aria-pressed", "true")
    asker.click(asker.page.get_by_role("button", name="Who reads what?"))
    asker.click(asker.visit.tokens.nth(dog))
    weights = reading_weights(run, "decoder", "self", it, dog)
    layer, head = divmod(int(weights.argmax()), weights.shape[1])
    first = asker.page.locator(".reader").first
    expect(first).to_contain_text(f"Layer {layer}, head {head}")
    expect(first.locator(".value")).to_have_text(f"{float(weights.max()):.2f}")
    in_view(first)
    expect(asker.page.locator(".journey .head.weighed")).to_have_count(weights.numel())


def test_what_padding_is_and_what_without_its_mask(asker):
    asker.click(asker.page.get_by_role("button", name="Why not the future?"))
    asker.visit.wait_drawn(".masks")
    batch = model("stories").trace(list(example_of(model("stories")).batch))
    lengths = batch.padding.sum(dim=1).tolist()
    assert asker.visit.filled("padded") == lengths
    asker.open("removal", ".removal")
    with asker.visit.drawn(".removal"):
        asker.click(asker.page.locator("[name=mask-removed][value=padding]"))
    says = asker.page.locator(".removal-says")
    in_view(says)
    share = without_mask(batch, 0, "decoder.5.self", 0, "padding").mean_freed_weight
    assert share == 0  # which is no finding, so the reason is said
    expect(says).to_contain_text("where the causal mask hides it already")
    expect(asker.page.locator("[data-picture=without]")).to_be_visible()


def test_what_without_positions(asker):
    asker.click(asker.page.get_by_role("button", name="Without positions?"))
    asker.visit.wait_drawn(".order")
    asker.click(asker.page.get_by_role("button", name="Take the positions away"))
    asker.page.wait_for_function("() => viz.run.interventions.length")
    example = example_of(model("stories"))
    broken = model("stories").generate(
        example.text, **example.settings, interventions=[Break("no-positions")]
    )
    expect(asker.visit.tokens).to_have_text(list(broken.labels))
    texts = (("before", continued()), ("after", broken))
    for which, run in texts:
        line = asker.page.locator(f"[data-text={which}]")
        expect(line).to_contain_text("".join(run.labels[LAST + 1 :][:6]).replace("␣", " "))
        expect(line).to_be_in_viewport()


def test_which_word_fills_the_gap(asker):
    asker.click(asker.page.get_by_role("button", name="fills gaps", exact=True))
    network = model("fill-in")
    ((word, *_),) = network.fill(example_of(network).text).guesses
    gap = asker.page.locator("#tokens .token.gap")
    expect(gap).to_have_text(word.label)
    expect(gap).to_be_in_viewport()
    expect(asker.page.locator(".head-card li").first).to_contain_text(f"At {word.text.strip()} it")


def test_which_head_finishes_the_name_and_what_without_it(asker):
    expect(asker.page.locator(".head-card h3")).to_contain_text("Layer 5, head 0")
    says = asker.page.locator(".head-card li")
    expect(says.nth(0)).to_contain_text("At L it reads the o that followed L before: 62 % + 32 %")
    expect(says.nth(2)).to_have_text(
        "With it the network writes “Loki!”, without it “Little bird!”."
    )
    expect(asker.page.locator(".arcs text")).to_have_text(["62 %", "32 %"])
    expect(asker.page.locator(".ghost")).to_have_text("oki!")
    asker.generate()
    expect(asker.visit.tokens.nth(LAST + 3)).to_be_visible()
    name = "".join(asker.visit.labels()[LAST : LAST + 4])
    assert name == "␣Loki"
    asker.click(asker.page.get_by_role("button", name="Switch off layer 5, head 0", exact=True))
    after = asker.page.locator("[data-text=after]")
    expect(asker.page.locator("[data-text=before]")).to_contain_text("oki!")
    run = continued()
    off = model("stories").generate(
        run.request.text, max_new_tokens=run.request.max_new_tokens,
        interventions=[Ablate("decoder", 5, [0])],
    )  # fmt: skip
    expect(after).to_contain_text("".join(off.labels[off.n_prompt :][:5]).replace("␣", " "))
    expect(after).to_be_in_viewport()


def test_what_a_beam_search_keeps(asker):
    open_translator(asker)
    asker.click(asker.page.locator("#hypotheses").get_by_role("button", name="Prediction"))
    asker.visit.wait_drawn(".tree-box")
    run = opening("translate-en-fr")
    assert run.search is not None
    rows = asker.page.locator(".hypotheses tbody tr")
    expect(rows).to_contain_text([f"{one.score:.3f}" for one in run.search.hypotheses])
    tree = asker.page.locator(".tree-box .js-plotly-plot")
    in_view(tree)
    nodes = tree.evaluate("box => box.layout.meta.nodes.filter(one => one.best).length")
    assert nodes == len(run.search.hypotheses[0].ids)


def test_the_layer_from_which_the_prediction_is_final(asker):
    asker.click(asker.page.get_by_role("button", name="Why this word, and not another?"))
    finding = asker.page.locator("[data-section=lens] .section-finding")
    expect(finding).to_have_text("Lo from layer 4 on")
    asker.open("lens", ".lens-box")
    lens = with_lens(model("stories"), opening("stories")).lens
    assert lens is not None
    shown = asker.visit.numbers("lens")
    np.testing.assert_allclose(shown, lens.probabilities[:, : shown.shape[1], 0], atol=1e-5)
    expect(asker.page.locator(".lens-box .band")).to_be_visible()  # of the L
    expect(asker.page.locator(".candidate bdi").first).to_have_text("Lo")


def test_what_softmax_and_temperature_do(asker):
    asker.visit.wait_drawn(".next-words")
    slider = asker.page.get_by_role("slider", name="Temperature")
    values = asker.page.locator(".next-word .value").first
    expect(values).to_have_text(re.compile("^86 %6.1 %$"))  # with the chosen head, and without
    expect(slider).to_have_value("0")  # greedy
    sharp = tops(asker.page)
    requests: list[str] = []  # the weights of a network shown before may still be coming
    asker.page.on(
        "request",
        lambda request: requests.append(request.url) if "/weights/" not in request.url else None,
    )
    asker.press(slider, "End")
    asker.page.wait_for_function(
        "most => parseFloat(document.querySelector('.next-word .drawn').style.width) < most",
        arg=sharp[0],
    )
    bars = asker.page.locator(".next-words")
    expect(bars).to_be_in_viewport()
    expect(asker.page.locator(".drawn-says")).to_contain_text("tokens could be drawn")
    # The network's own share stays the first number, as on every other part of the page.
    expect(values).to_have_text(re.compile(r"^86 % → \d\d %"))
    assert requests == []
    slider.press("Home")
    asker.click(asker.page.get_by_role("button", name="Settings"))
    expect(asker.page.get_by_label("greedy: always the likeliest")).to_be_checked()
    expect(values).to_have_text(re.compile("^86 %6.1 %$"))


def test_what_temperature_and_filters_make_of_the_probabilities(asker):
    asker.click(asker.page.get_by_role("button", name="Why this word, and not another?"))
    asker.visit.wait_drawn(".prediction")
    slider = asker.page.locator(".candidates").get_by_role("slider", name="Temperature")
    asker.press(slider, "End")
    expect(asker.page.locator("#temperature input[type=range]")).to_have_value("2")
    widths = """() => [...document.querySelectorAll(".candidate")].map(row =>
        [...row.querySelectorAll(".drawn")].map(bar => parseFloat(bar.style.width)))"""
    network, warm, drawn = np.array(asker.page.evaluate(widths)).T
    ratios = np.sqrt(network / network[0])  # softmax(x / 2) against softmax(x)
    np.testing.assert_allclose(warm / warm[0], ratios, atol=2e-2)
    np.testing.assert_allclose(drawn / drawn[0], ratios, atol=2e-2)
    assert drawn[0] > warm[0]  # what top-k cut went to the others
    bars = sorted(tops(asker.page), reverse=True)  # the word without the head is second there
    assert drawn[:3].tolist() == pytest.approx(bars[:3], abs=0.01)


@pytest.mark.parametrize(("name", "shows"), [
    ("forget", ("#left .altered", "Little bird!")),
    ("learn", (".learn-finding", "% of the held-out questions right")),
    ("it", (".head-card", "layer 2, head 7")),
])  # fmt: skip
def test_a_short_link_has_a_title_a_picture_and_opens_its_state(visit, address, name, shows):
    page = visit(f"{address}{name}", tab="Journey").page
    told = page.request.get(f"{address}{name}").text()
    assert 'property="og:title" content="' in told
    picture = told.partition('og:image" content="')[2].partition('"')[0]
    png = page.request.get(picture).body()
    assert struct.unpack(">II", png[16:24]) == (1200, 630)
    selector, words = shows
    expect(page.locator(selector)).to_contain_text(re.compile(words, re.IGNORECASE))
