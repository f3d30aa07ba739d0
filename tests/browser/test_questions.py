"""The twelve questions that a class asks: each from the opened page, in at most three actions, and
what is then seen there is what a run made here says."""

from __future__ import annotations

import re

import pytest
import torch
from bundled import Counted, Open, continued, model, opening
from playwright.sync_api import Locator, Page, expect

from transformer import Ablate, Break, with_lens
from transformer.analysis.journey import reading_weights
from transformer.ui.examples import example_of

pytestmark = pytest.mark.browser
LAST = 31  # the L at which the opening's text ends
DOG = "The dog saw a cat because it"
CELLS = "name => document.querySelector(`[data-picture=${name}]`).calcdata[0][0].z.map(r => [...r])"
FILLED = """name => document.querySelector(`[data-picture=${name}]`).calcdata[0][0].z
    .map(row => [...row].filter(Number.isFinite).length)"""


def percent(said: str) -> list[float]:
    return [float(number) for number in re.findall(r"([\d.]+) ?%", said)]


def in_view(part: Locator) -> None:
    part.scroll_into_view_if_needed()
    expect(part).to_be_in_viewport()


def tops(page: Page) -> list[float]:
    """The widths of the drawn bars of what comes next, in per cent."""
    widths: list[float] = page.evaluate(
        """() => [...document.querySelectorAll(".next-word .drawn")]
            .map(bar => parseFloat(bar.style.width))"""
    )
    return widths


def test_which_word_does_it_read(visit: Open, address: str) -> None:
    text = DOG.replace(" ", "+")
    with Counted(
        visit, f"{address}#model=stories&text={text}&method=greedy&length=1&tab=journey"
    ) as caller:
        caller.visit.wait_for_link()
        labels = caller.visit.labels()
        it, dog = labels.index("␣it"), labels.index("␣dog")
        caller.click(caller.visit.tokens.nth(it))
        caller.click(caller.page.get_by_role("button", name="Who reads what?"))
        caller.click(caller.visit.tokens.nth(dog))
        run = model("stories").generate(DOG, max_new_tokens=1)
        weights = reading_weights(run, "decoder", "self", it, dog)
        layer, head = divmod(int(weights.argmax()), weights.shape[1])
        first = caller.page.locator(".reader").first
        expect(first).to_contain_text(f"Layer {layer}, head {head}")
        expect(first.locator(".value")).to_have_text(f"{float(weights.max()):.2f}")
        in_view(first)
        assert caller.page.locator(".journey .head.weighed").count() == weights.numel()


def test_why_not_the_future(visit: Open, address: str) -> None:
    with Counted(visit, address) as caller:
        caller.tab("Masks", ".masks")
        why = caller.page.get_by_text("would only copy it")
        in_view(why)
        n_tokens = len(caller.page.evaluate(FILLED, "causal"))
        assert caller.page.evaluate(FILLED, "causal") == list(range(1, n_tokens + 1))


def test_what_padding_is_and_what_without_its_mask(visit: Open, address: str) -> None:
    with Counted(visit, address) as caller:
        caller.tab("Masks", ".masks")
        batch = model("stories").trace(list(example_of(model("stories")).batch))
        lengths = batch.padding.sum(dim=1).tolist()
        assert caller.page.evaluate(FILLED, "padded") == lengths
        caller.open("removal", ".removal")
        with caller.visit.drawn(".removal"):
            caller.click(caller.page.locator("[name=mask-removed][value=padding]"))
        says = caller.page.locator(".removal-says")
        in_view(says)
        assert "padding" in says.inner_text()
        assert caller.page.locator("[data-picture=without]").is_visible()


def test_what_without_positions(visit: Open, address: str) -> None:
    with Counted(
        visit, f"{address}#model=translate-en-fr&text=The+man+bit+the+dog.&method=greedy"
    ) as caller:
        caller.visit.wait_for_link()
        caller.click(caller.page.get_by_role("tab", name="What if?", exact=True))
        caller.open("breaks", ".breaks")
        caller.click(caller.page.get_by_role("button", name="no positions", exact=True))
        caller.page.wait_for_function("() => viz.run.interventions.length")
        length = int(caller.page.evaluate("viz.run.link.length"))
        broken = model("translate-en-fr").generate(
            "The man bit the dog.", max_new_tokens=length, interventions=[Break("no-positions")]
        )
        assert caller.visit.labels() == list(broken.labels)
        before, after = (
            caller.page.locator(f"[data-text={which}]") for which in ("before", "after")
        )
        expect(before).to_contain_text("homme␣a␣mordu")
        expect(after).to_contain_text("chien␣a␣mordu")
        expect(after).to_be_in_viewport()


def test_what_softmax_and_temperature_do(visit: Open, address: str) -> None:
    with Counted(visit, address) as caller:
        caller.visit.wait_drawn(".next-words")
        caller.click(caller.page.get_by_role("button", name="Settings"))
        caller.click(caller.page.get_by_label("sample", exact=True))
        sharp = tops(caller.page)
        caller.press(caller.page.get_by_role("slider", name="Temperature"), "End")
        caller.page.wait_for_function(
            "most => parseFloat(document.querySelector('.next-word .drawn').style.width) < most",
            arg=sharp[0],
        )
        bars = caller.page.locator(".next-words")
        expect(bars.locator("h2")).to_contain_text("␣L")
        expect(bars).to_be_in_viewport()
        assert "tokens could be drawn" in caller.page.locator(".drawn-says").inner_text()


def test_where_a_weight_comes_from(visit: Open, address: str) -> None:
    with Counted(visit, address) as caller:
        caller.visit.wait_drawn(".journey")
        caller.click(caller.page.get_by_role("button", name="Its arithmetic"))
        caller.visit.wait_drawn(".worked")
        weights = opening("stories").trace["decoder.5.self"].pattern[0, 0, LAST]
        worked = caller.page.locator(".worked")
        in_view(worked.locator("table, math").first)
        expect(worked).to_contain_text(f"{float(weights.max()):.3f}")


def test_which_head_finishes_the_name_and_what_without_it(visit: Open, address: str) -> None:
    with Counted(visit, address) as caller:
        expect(caller.page.locator(".chosen-head h3")).to_contain_text("Layer 5, head 0")
        caller.generate()
        assert "".join(caller.visit.labels()[LAST : LAST + 4]) == "␣Loki"
        caller.page.locator(".journey .head[aria-pressed=true]").hover()
        caller.page.wait_for_selector(".next-words[data-without='decoder.5.self.0']")
        caller.click(caller.page.get_by_role("button", name="Switch it off (ablate)"))
        after = caller.page.locator("[data-text=after]")
        expect(caller.page.locator("[data-text=before]")).to_contain_text("oki!")
        run = continued()
        off = model("stories").generate(
            run.request.text, max_new_tokens=run.request.max_new_tokens,
            interventions=[Ablate("decoder", 5, [0])],
        )  # fmt: skip
        expect(after).to_contain_text("".join(off.labels[off.n_prompt :][:5]))
        expect(after).to_be_in_viewport()


def test_which_english_word_a_french_one_comes_from(visit: Open, address: str) -> None:
    with Counted(visit, address) as caller:
        caller.click(caller.page.locator("#model input"))
        caller.click(caller.page.get_by_role("option", name="translate-en-fr", exact=True))
        caller.page.wait_for_selector("#tokens .source-tokens button.token")
        caller.visit.wait_for_link()
        run = opening("translate-en-fr")
        place = run.labels.index("␣chat") - 1  # at which it is chosen
        caller.click(caller.visit.tokens.nth(place))
        weights = run.trace["decoder.2.cross"].pattern[0, 2, place]
        says = caller.page.locator(".token-says")
        expect(says).to_contain_text("␣cat")
        expect(says).to_contain_text(f"({float(weights.max()):.2f})")
        shades = [
            float(token.evaluate("one => one.style.getPropertyValue('--read')"))
            for token in caller.visit.sources.all()
        ]
        assert shades.index(max(shades)) == int(weights.argmax()) == run.source_labels.index("␣cat")


def test_what_a_beam_search_keeps(visit: Open, address: str) -> None:
    with Counted(visit, f"{address}#model=translate-en-fr") as caller:
        caller.visit.wait_for_link()
        caller.click(caller.page.get_by_role("tab", name="Prediction", exact=True))
        caller.open("beams", ".tree-box")
        run = opening("translate-en-fr")
        assert run.search is not None
        tree = caller.page.locator(".tree-box .js-plotly-plot")
        in_view(tree)
        nodes = tree.evaluate("box => box.layout.meta.nodes.filter(one => one.best).length")
        assert nodes == len(run.search.hypotheses[0].ids)


def test_from_which_layer_on_it_knows(visit: Open, address: str) -> None:
    with Counted(visit, address) as caller:
        caller.click(caller.page.get_by_role("tab", name="Prediction", exact=True))
        caller.open("lens", ".lens-box")
        lens = with_lens(model("stories"), opening("stories")).lens
        assert lens is not None
        shown = torch.tensor(caller.page.evaluate(CELLS, "lens"))
        assert torch.allclose(shown, lens.probabilities[:, : shown.shape[1], 0], atol=1e-5)
        expect(caller.page.locator(".lens-box .band")).to_be_visible()  # of the L
        expect(caller.page.locator(".coming li bdi").first).to_have_text("o")


def test_how_attention_forms(visit: Open, address: str) -> None:
    with Counted(visit, address) as caller:
        caller.click(caller.page.get_by_role("tab", name="Learn", exact=True))
        caller.visit.wait_drawn(".learn")
        heads = caller.page.locator(".learn-heads canvas")
        last = heads.first.evaluate("one => one.toDataURL()")
        slider = caller.page.locator(".learn-back")
        caller.press(slider, "Home")  # back to the beginning of the training
        expect(caller.page.locator(".learn-at")).to_have_text("1")
        caller.page.wait_for_function(
            """was => document.querySelector(".learn-heads canvas").toDataURL() !== was""", arg=last
        )
        in_view(heads.first)


def test_how_two_prompts_differ(visit: Open, address: str) -> None:
    with Counted(visit, address) as caller:
        box = caller.page.locator("#text textarea")
        caller.actions += 1
        box.fill(opening("stories").request.text.replace("Loki", "Tom"))
        old = caller.visit.shown_run()
        caller.press(box, "Enter")
        caller.page.wait_for_function("old => viz.run.run !== old", arg=old)
        caller.click(caller.page.get_by_role("button", name="Compare with another run"))
        caller.visit.wait_drawn(".compare")
        a, b = (caller.page.locator(f".side-{side} .pair").all_inner_texts() for side in "ab")
        assert a == caller.visit.labels()
        assert b == list(opening("stories").labels)
        in_view(caller.page.locator(".side-a .replaced, .side-a .only-a").first)
