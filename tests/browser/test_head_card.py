"""What is said of a head is true of it: of the head that is named and of the chosen token; and "one
head decides" only where no other does."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from kit.browser import Visit, held_back
from playwright.sync_api import Locator, expect

# What each neuron writes is in one line.
WHOLE_LINES = """() => [...document.querySelectorAll(".neurons .writes")].every(words =>
    words.offsetHeight < 2 * parseFloat(getComputedStyle(words).lineHeight))"""
TOUR = Path(__file__).resolve().parents[2] / "transformer/server/tour.toml"
BECAUSE = "I love 🐶 and 🍕 because"
DECIDES = re.compile("One head of 48 decides")


def card(visit: Visit) -> Locator:
    return visit.page.locator(".head-card")


def opened(visit: Visit, link: str) -> Visit:
    visit.page.mouse.move(5, 5)
    visit.go(link)
    visit.wait_drawn(".journey")
    return visit


def said(visit: Visit, name: str, **given: Any) -> Any:
    """What the server answers of the shown run."""
    base = visit.page.url.split("?")[0]
    query = {"run": visit.page.evaluate("viz.run.run"), **given}
    answer = visit.page.request.get(f"{base}resources/{name}", params=query)
    assert answer.ok, answer.text()
    return answer.json()


@pytest.mark.parametrize(("late", "at"), [("heatmap", (2, 2)), ("continuation", (3, 1))])
def test_no_sentence_of_one_head_stands_under_anothers_name(door, late, at):
    visit = opened(door, "model=stories&tab=journey")
    expect(card(visit).locator("li")).to_have_count(3)
    let_through = held_back(visit.page, f"resources/{late}?")
    visit.head(*at).click()
    name = "Layer {}, head {}".format(*at)
    expect(card(visit).locator("h3")).to_contain_text(name)
    expect(card(visit).locator("li")).to_have_count(0)
    visit.page.wait_for_timeout(300)  # what is on its way for other parts has come
    expect(card(visit).locator("li")).to_have_count(0)
    expect(card(visit).get_by_role("button", name=f"Switch off {name.lower()}")).to_be_visible()
    let_through()
    expect(card(visit).locator("li")).to_have_count(3)
    expect(card(visit).locator("h3")).to_contain_text(name)


def test_no_sentence_of_one_token_stands_under_another(door):
    visit = opened(door, "model=stories&tab=journey&read=20")
    expect(card(visit).locator("li")).to_have_count(3)
    let_through = held_back(visit.page, "resources/journey?")
    visit.tokens.nth(12).click()
    expect(card(visit).locator("li")).to_have_count(0)
    let_through()
    expect(card(visit).locator("li")).to_have_count(3)


@pytest.mark.parametrize(
    "link", ["", "&read=12", f"&text={BECAUSE}&max_new_tokens=12&method=greedy"]
)
def test_one_head_decides_only_where_no_other_does(door, link):
    visit = opened(door, f"model=stories&tab=journey{link}")
    places = [None] if link != "" and "text" not in link else [None, 3, 8, 14]
    for place in places:
        if place is not None:
            with visit.drawn(".journey"):
                visit.tokens.nth(place).click()
        position = int(visit.page.locator(".journey").get_attribute("data-place") or "")
        deciding = said(visit, "deciding", position=position)
        for at in [*deciding["heads"][:2], {"layer": 0, "head": 0}]:
            head = visit.head(at["layer"], at["head"])
            if head.get_attribute("aria-pressed") == "false":
                with visit.drawn(".journey"):
                    head.click()
            expect(card(visit).locator("li")).to_have_count(3)
            decides = deciding["n"] == 1 and at in deciding["heads"]
            expect(card(visit).filter(has_text=DECIDES)).to_have_count(int(decides))


def test_the_link_asks_which_word_it_reads_as_the_short_link_does(door):
    tour = tomllib.loads(TOUR.read_text(encoding="utf-8"))
    (short,) = [one["state"] for one in tour["link"] if one["name"] == "it"]
    visit = opened(door, "model=stories&tab=journey")
    visit.page.get_by_role("button", name="Which word does it read?").click()
    visit.page.wait_for_function("text => viz.run.text === text", arg=short["text"])
    expect(card(visit).locator("li").first).to_contain_text(re.compile(r"^At it it reads dog most"))
    visit.wait_for_address(
        f"site={short['site']}", f"head={short['head']}", f"read={short['read']}"
    )


def test_a_translators_word_is_read_where_it_is_written(door):
    visit = opened(door, "model=translate-en-fr&tab=journey")
    for place in (1, 4):  # the opening's, whose head reads "eating" to write "mange"; and "pomme"
        if place != 1:
            with visit.drawn(".journey"):
                visit.tokens.nth(place).click()
        labels = visit.page.evaluate("viz.run.labels")
        written = labels[place + 1].replace("␣", "")
        expect(card(visit).locator("li").first).to_contain_text(f"To write {written} it reads")
        box = visit.tokens.nth(place + 1).bounding_box()
        arc = visit.page.locator("#tokens .arcs path").first.evaluate(
            "path => { const { x, y } = path.getPointAtLength(0); const m = path.getScreenCTM();"
            " return [x * m.a + m.e, y * m.d + m.f]; }"
        )
        assert box is not None
        assert box["x"] <= arc[0] <= box["x"] + box["width"]
        assert abs(arc[1] - box["y"]) < 3


@pytest.mark.parametrize(
    ("width", "height", "state"),
    [(1440, 900, ""), (1280, 720, "&projector=1"), (1024, 768, ""), (390, 844, "")],
)
def test_the_tours_lost_name_is_in_sight_before_and_after(door, width, height, state):
    page = door.page
    page.set_viewport_size({"width": width, "height": height})
    opened(door, f"model=stories&tab=journey{state}")
    page.evaluate("scrollTo(0, 0)")
    page.get_by_role("button", name="Start here").click()
    for _ in range(2):
        page.locator(".card-next").click()
    page.wait_for_function("() => viz.run.interventions.length")
    for part, text in (("before", "Loki!"), ("after", "Little bird!")):
        line = page.locator(f"[data-text={part}]")
        expect(line).to_contain_text(text)
        expect(line).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1440, "height": 900})


def test_a_passage_becomes_the_text_of_the_page_with_the_same_head(door):
    visit = opened(door, "model=stories&tab=journey&site=decoder.5.self&head=0")
    visit.page.locator(".where-else").click()
    passage = visit.page.locator(".passage").first
    text = passage.locator("bdi").text_content()
    passage.click()
    visit.page.wait_for_function("text => viz.run.text === text", arg=text)
    assert visit.page.evaluate("[viz.head.layer, viz.head.head]") == [5, 0]


def test_a_feed_forward_has_a_card_and_is_marked_in_model(door):
    door.go("model=stories&tab=journey")
    door.wait_drawn(".journey")
    door.page.locator(".feed-forward").nth(4).click()
    card = door.page.locator(".forward-card")
    expect(card.locator("li").first).to_contain_text("This feed-forward adds +0.9 to Lo")
    first = card.locator(".neurons li").first
    expect(first).to_contain_text("+0.37")
    door.page.set_viewport_size({"width": 390, "height": 844})
    door.page.wait_for_function(WHOLE_LINES)
    door.page.set_viewport_size({"width": 1280, "height": 720})
    shaded = door.page.locator(".text-tokens .token.helps")
    expect(shaded).to_have_text(["␣L"] * 3)  # where the first neuron is active
    expect(door.page.locator(".bars-legend")).to_contain_text("without the feed-forward of layer 4")
    row = card.locator(".neurons li").nth(1)  # the sentence in which it is most active is read here
    neuron, passage = row.locator("span").first.inner_text(), row.locator("button.fires")
    text = passage.inner_text()
    passage.click()
    door.page.wait_for_function("text => viz.run.text === text", arg=text)
    expect(card.locator(".reader[aria-pressed=true] span").first).to_have_text(neuron)
    expect(shaded).not_to_have_count(0)
    door.wait_for_address("forward=decoder.4." + neuron.removeprefix("neuron "))
    card.locator(".in-model").click()
    marked = door.page.locator(".architecture .block.is-here")
    expect(marked).to_have_text(re.compile("Feed-forward"))
    door.tab("Journey")
    expect(card).to_be_visible()
    door.head(5, 0).click()
    expect(card).to_have_count(0)
    expect(shaded).to_have_count(0)


def test_projected_sentences_of_neurons_show_the_token_that_fires(door):
    door.page.set_viewport_size({"width": 1280, "height": 720})
    door.go("model=stories&tab=journey&forward=decoder.5&projector=1")
    tokens = door.page.locator(".neurons .fires strong")
    expect(tokens).to_have_count(5)
    expect(tokens.first).to_be_visible()
    beyond = """tokens => tokens.filter(token => token.getBoundingClientRect().right
        > token.closest(".fires").getBoundingClientRect().right).map(token => token.innerText)"""
    assert tokens.evaluate_all(beyond) == []


def test_a_head_to_switch_off_is_named_by_what_it_does(door):
    door.page.mouse.move(5, 5)
    door.go("model=stories&tab=what-if")
    door.wait_drawn(".ablation")
    heads = said(door, "metrics", stack="decoder", kind="self")["heads"]
    does = {f"{one['layer']}·{one['head']}": one["label"] for one in heads if one["label"]}
    assert "5·0" in does
    lines = door.page.locator(".heads-by-label li")
    for name, label in does.items():
        layer, head = name.split("·")
        switch = f"Switch off layer {layer}, head {head} ({label})"
        expect(door.page.get_by_role("button", name=switch, exact=True)).to_contain_text(name)
        expect(lines.filter(has_text=label)).to_contain_text(name)
    expect(lines).to_have_count(len(set(does.values())))
    chosen = door.page.locator('.what-card[data-what="decoder.5.self.0"] .hint')
    expect(chosen).to_contain_text(does["5·0"], ignore_case=True)


def test_a_link_to_what_if_names_the_head_by_what_it_does(door):
    door.page.mouse.move(5, 5)
    link = "model=stories&tab=what-if&text=Tom+saw+Lily.+Tom+saw"
    door.go(link)
    heads = said(door, "metrics", stack="decoder", kind="self")["heads"]
    head = next(one for one in heads if one["label"])
    door.go(f"{link}&site=decoder.{head['layer']}.self&head={head['head']}")
    chosen = f"decoder.{head['layer']}.self.{head['head']}"
    hint = door.page.locator(f'.what-card[data-what="{chosen}"] .hint')
    expect(hint).to_contain_text(head["label"], ignore_case=True)
