"""Learn and lessons: a network is trained and opened, and a lesson is graded."""

import re

import pytest
from kit.browser import Visit, held_back
from kit.serving import second, tiny_model
from playwright.sync_api import Page, expect

from transformer.lessons.measures import GradingContext
from transformer.server.kept.page_models import example_of
from transformer.server.kept.service import Service

PLAN = {
    "task": "copy", "preset": "vaswani-2017", "n_layers": 1, "n_heads": 2, "n_steps": 150,
    "feed_forward": "true",
}  # fmt: skip
WHOLE = """text => text.getBoundingClientRect().bottom
    <= text.closest(".altered").getBoundingClientRect().bottom"""
STATE = "([name, value]) => document.querySelector('.learn')?.dataset[name] === value"
ON_ITS_WAY = """n => { const d = document.querySelector(".learn")?.dataset ?? {};
    return d.state === "running" && Number(d.step) > n; }"""


def test_a_network_learns_is_opened_and_fails_without_the_head_that_formed(visit, server):
    fields = "&".join(f"learn.{name}={value}" for name, value in PLAN.items())
    page = visit(f"{server.url}#tab=learn&{fields}").page

    def wait_for(name: str, value: object) -> None:
        page.wait_for_function(STATE, arg=[name, str(value)])

    wait_for("id", "recorded-copy")  # no waiting: a recorded training is shown
    expect(page.locator(".learn-heads canvas")).to_have_count(2 * 4)
    expect(page.locator(".learn-controls select").nth(1)).to_have_value(PLAN["preset"])
    expect(page.locator("[name='learn.feed_forward']")).to_be_checked()
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function(ON_ITS_WAY, arg=0)
    page.get_by_role("button", name="Pause", exact=True).click()
    wait_for("state", "paused")
    step = int(str(page.locator(".learn").get_attribute("data-step")))
    page.get_by_role("button", name="One step", exact=True).click()
    wait_for("step", step + 1)
    page.get_by_role("button", name="Go on", exact=True).click()
    wait_for("state", "ended")
    wait_for("at", PLAN["n_steps"])
    expect(page.locator(".learn-heads canvas")).to_have_count(3 * 2)
    slider = page.locator(".learn-back")
    slider.press("Home")
    wait_for("at", 1)
    wait_for("right", "false")
    expect(page.locator(".learn-finding")).to_have_text(re.compile("^After step 1 of 150"))
    slider.press("End")
    wait_for("at", PLAN["n_steps"])
    page.get_by_role("button", name="Open it in Attention", exact=True).click()
    page.wait_for_function(
        """() => viz.run.model.startsWith("copy-150~") && !viz.isOpening()
            && document.querySelector(".attention")?.dataset.run === viz.run.run"""
    )
    expect(page.locator(".attention")).to_have_attribute("data-site", "decoder.0.cross")
    expect(page.locator("#model input")).to_have_value("Copy, step 150 (yours)")
    page.locator("#attention .switch-off").click()
    page.wait_for_selector(".altered[data-right]")
    data = page.locator(".altered").evaluate("({ dataset }) => ({ ...dataset })")
    before, after = int(data["rightBefore"]), int(data["right"])
    assert before >= 70
    assert after <= before - 20
    says = f"answered right: {before} of 100 before, {after} after"
    expect(page.locator(".altered")).to_contain_text(says)
    page.locator(".intact").click()
    page.wait_for_function("!viz.run.interventions.length")
    # it is shown as what it is, and outlives a reload
    page.get_by_role("tab", name="Model", exact=True).click()
    headline = page.locator("#headline")
    expect(headline).to_contain_text("of unseen questions right")
    expect(headline).not_to_contain_text(" M parameters")
    model = page.evaluate("viz.run.model")
    page.reload()
    page.wait_for_function("name => viz.run?.model === name", arg=model)
    expect(page.locator(".problem:visible")).to_have_count(0)
    page.get_by_role("tab", name="Learn", exact=True).click()
    wait_for("state", "ended")


SITE = "decoder.1.self"


@pytest.fixture(scope="module")
def service() -> Service:
    return Service([tiny_model()])


@pytest.fixture(scope="module")
def ground(service: Service) -> GradingContext:
    """The example as the page stores it."""
    (model,) = service.models.values()
    example = example_of(model)
    run = model.generate(example.text, **example.settings)
    return GradingContext(run=run, models=service.queries)


def verdict(page: Page, words: str) -> None:
    expect(page.locator(".card-verdict")).to_contain_text(words)


def turn(visit: Visit, title: str) -> None:
    visit.page.locator(".card-next").click()
    expect(visit.page.locator(".card-title")).to_have_text(title)
    visit.wait_for_link()


def test_a_lesson_is_found_given_and_graded_on_the_visitors_run(visit, ground):
    seen = visit(second().url)
    page = seen.page
    page.get_by_role("button", name="Lessons", exact=True).click()
    page.get_by_role("button", name="Looking back").click()
    expect(page.locator(".card-title")).to_have_text("A head")
    seen.wait_for_link()
    expect(page.locator(".card-count")).to_contain_text("1 of 5")
    expect(page.locator(".card-says strong")).to_have_text("first")
    expect(page.locator(".card-says img")).to_have_count(0)
    expect(page.locator(".card-verdict")).to_be_hidden()

    # a head: wrong, hints one by one, right
    first = ground.run.trace.weights("decoder", "self")[:, 0, :, 1:, 0].mean(dim=-1)
    layer, head = divmod(int(first.argmax()), first.shape[1])
    seen.head(layer, (head + 2) % 3).click()
    verdict(page, "Not yet. First is")
    page.locator(".card-hint").click()
    page.locator(".card-hint").click()
    expect(page.locator(".card-hints li")).to_have_text(["Look at the grid.", "Sort the list."])
    expect(page.locator(".card-solve")).to_be_focused()
    seen.head(layer, head).click()
    verdict(page, "Right.")
    expect(page.locator(".card-solve")).to_be_hidden()

    # a token: a wrong one brings the question's shading back
    turn(seen, "A token")
    row = ground.run.trace[SITE].pattern[0, 0, 6]
    seen.tokens.nth(int(row[:7].argmin())).click()
    verdict(page, "Not yet.")
    page.wait_for_function("() => viz.query.index === 6")
    seen.tokens.nth(int(row.argmax())).click()
    verdict(page, "Right.")

    # a number, after a guess: what is no number, a wrong one, the right one, and the explanation
    turn(seen, "A number")
    box = page.get_by_label("Your answer:")
    expect(box).to_be_hidden()
    expect(page.locator("#right")).to_have_css("visibility", "hidden")
    page.get_by_label("few", exact=True).click()
    expect(page.locator(".card-guessed")).to_have_text("Your guess: few")
    expect(page.locator(".card-title")).to_be_focused()
    expect(page.locator("#right")).to_have_css("visibility", "visible")
    expect(page.locator(".token-says")).to_have_css("visibility", "hidden")
    expect(page.locator(".card-explains p")).to_have_count(0)
    hidden = len(ground.run.labels) - 7
    right = f"Right. The number of hidden keys is {hidden}"
    wrong = {"many": "Give a number", "0": "Not yet. The number of hidden keys is not 0;"}
    for typed, said in {**wrong, str(hidden): right}.items():
        box.fill(typed)
        box.press("Enter")
        verdict(page, said)
    expect(page.locator(".card-explains")).to_have_text("All later ones.")
    expect(page.locator(".token-says")).to_have_css("visibility", "visible")

    # a sentence, by keyboard
    turn(seen, "A sentence")
    page.get_by_label("no", exact=True).focus()
    page.keyboard.press("Space")
    verdict(page, "Not yet.")
    page.keyboard.press("ArrowDown")
    verdict(page, "Right.")

    # a text: the box is there, what is typed is graded, and the page shows what follows it
    turn(seen, "A text")
    seen.generate("A fox met")
    verdict(page, "Not yet. The text has to hold “bird”.")
    seen.generate("A bird met")
    verdict(page, "Right. The network says")
    assert page.evaluate("viz.query.index === viz.run.n_prompt - 1")

    # a lesson leads on; solved steps are shown, and remembered only on request
    page.get_by_role("button", name="Lessons ›").click()
    expect(page.locator(".lesson-facts")).to_contain_text("5 of 5 solved")
    assert page.evaluate("localStorage.length") == 0
    keep = page.get_by_label("Remember in this browser")
    keep.check()
    assert page.evaluate("localStorage.getItem('solved-lessons')").count("twice.") == 5
    keep.uncheck()
    assert page.evaluate("localStorage.length") == 0


def test_a_link_to_a_step_alone_opens_what_the_step_shows(visit):
    seen = visit(f"{second().url}#lesson=twice.4", tab="Journey")
    page = seen.page
    expect(page.locator(".card-title")).to_have_text("A sentence")
    expect(page.get_by_role("tab", name="Masks", exact=True, selected=True)).to_be_visible()
    before = page.evaluate("history.length")
    address = seen.wait_for_address("tab=masks")
    assert "lesson=twice.4" in address
    assert page.evaluate("history.length") == before  # nothing that Back would lead back to


def test_an_answer_that_comes_late_changes_nothing(visit, ground):
    seen = visit(f"{second().url}#lesson=twice.2", tab="Journey")
    page = seen.page
    expect(page.locator(".card-title")).to_have_text("A token")
    for _ in range(2):
        page.locator(".card-hint").click()
    solved = held_back(page, "/solve")
    with page.expect_request(re.compile("/solve")):
        page.locator(".card-solve").click()
    turn(seen, "A number")
    address = page.url
    solved()
    seen.wait_for_link()
    assert page.url == address

    page.get_by_label("few", exact=True).click()
    graded, box = held_back(page, "/grade"), page.get_by_label("Your answer:")
    for typed in ("0", str(len(ground.run.labels) - 7)):
        box.fill(typed)
        box.press("Enter")
    verdict(page, "Right.")
    graded()
    verdict(page, "Right.")


def test_a_recorded_training_plays_and_one_press_breaks_its_best_head(visit):
    page = visit(tab="Journey").page
    page.get_by_role("button", name="Watch a head form").click()
    seen = "at => (window.steps ??= new Set()).add(at) && window.steps.size > 5 && at === '400'"
    page.wait_for_function(f"() => ({seen})(document.querySelector('.learn-at')?.textContent)")
    page.get_by_role("button", name="Break its best head").click()
    page.wait_for_selector(".altered[data-right]")
    data = page.locator(".altered").evaluate("({ dataset }) => ({ ...dataset })")
    assert int(data["right"]) < int(data["rightBefore"]) - 40
    expect(page.locator(".altered")).to_contain_text("layer 1, head 3 switched off")
    after = page.locator(".altered [data-text=after]")
    assert after.evaluate(WHOLE)
    expect(page.locator(".head-card li").last).to_contain_text("With it the network writes")


def test_next_from_far_down_opens_a_step_at_its_question(door):
    page = door.page
    page.set_viewport_size({"width": 1280, "height": 560})
    door.go("lesson=stream.4")
    page.locator(".card-guess label").first.click()
    for _ in range(2):
        page.locator(".card-hint").click()
    turn(door, "Without the sum")
    for part in (".card-title", ".card-guess .card-task"):
        expect(page.locator(part)).to_be_in_viewport(ratio=1)


def test_a_step_on_the_recorded_training_follows_the_visitors_own(door):
    page = door.page
    door.go("tab=learn&learn.n_steps=1")  # the first link to this tab, with the first exercise
    expect(page.locator("[name='learn.n_steps']")).to_have_value("1")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_selector(".learn[data-state=ended]:not([data-id^=recorded])")
    door.go("lesson=learning.6")
    page.locator(".card-guess label").first.click()
    expect(page.locator(".learn")).to_have_attribute("data-id", "recorded-induction")
