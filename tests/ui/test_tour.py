"""The cards of Start here: what they say of the network is what the network does."""

from __future__ import annotations

import pytest

import transformer
from transformer import with_lens
from transformer.analysis.head_metrics import head_metrics, strongest
from transformer.ui.examples import example_of
from transformer.ui.lessons import shown_by
from transformer.ui.service import Service
from transformer.ui.tour import all_cards, as_link

CARDS = {card["title"]: card for card in all_cards()}
# What the intact network writes, and what the network of the card's state does.
WRITES = {
    "Without it, the name is lost": (
        '"Hello, Loki! I am so big',
        '"Hello, Little bird! I am a very hungry',
    ),
    "Take away the word order": ("L'homme a mordu le chien.", "Le chien a mordu l'homme."),
    "Make the cat a dog": ("chat noir dort sur le lit.", "chien noir dort sur le lit."),
}
LAST = 31  # the L at which the example ends

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def service() -> Service:
    models = [transformer.load(name) for name in ("stories", "translate-en-fr")]
    return Service(models, trainings=0)


@pytest.mark.parametrize("title", WRITES)
def test_an_alteration_changes_the_text_as_its_card_says(service: Service, title: str):
    state = as_link(CARDS[title]["state"])
    altered = shown_by(service, state).run.text
    intact = shown_by(service, state | {"alter": "[]"}).run.text
    before, after = WRITES[title]
    assert intact.endswith(before), intact
    assert altered.endswith(after), altered
    if title == "Take away the word order":  # both sentences are translated alike
        other = "The dog bit the man."
        assert other in CARDS[title]["look"]
        assert shown_by(service, state | {"text": other}).run.text.endswith(after)


def test_the_example_is_read_and_its_next_token_is_the_one_that_the_first_card_names(
    service: Service,
):
    model = service.model("stories")
    example, run = example_of(model), shown_by(service, {"model": "stories"}).run
    assert (run.stopped, len(run.labels), run.labels[LAST]) == ("read", LAST + 1, "␣L")
    assert (example.methods[0], CARDS["What comes next?"]["state"]["read"]) == ("greedy", "31")
    step = model.generate(example.text, **example.settings).steps[0]
    assert (model.tokenizer.label(step.token), f"{step.chosen.probability:.0%}") == ("o", "86%")
    assert "“o” gets 86 %" in CARDS["What comes next?"]["says"]


def test_at_the_last_token_the_head_reads_most_the_o_of_both_names(service: Service):
    run = shown_by(service, as_link(CARDS["The head that finds the name"]["state"])).run
    row = run.trace["decoder.5.self"].pattern[0, 0, LAST]
    read = sorted(row.topk(2).indices.tolist())
    assert [run.labels[at - 1 : at + 1] for at in read] == [("␣L", "o")] * 2


def test_that_head_is_the_finding_of_the_example_and_of_what_generate_makes_of_it(
    service: Service,
):
    model = service.model("stories")
    example = example_of(model)
    for run in (model.trace(example.text), model.generate(example.text, **example.settings)):
        best = strongest(run, head_metrics(run, "decoder", "self"))
        assert (best.layer, best.head, best.metric.name, best.clear) == (5, 0, "induction", True)


def test_only_the_last_two_layers_say_what_the_last_one_says(service: Service):
    run = shown_by(service, as_link(CARDS["How early does it know?"]["state"])).run
    model = service.model("stories")
    lens = with_lens(model, run).lens
    said = [model.tokenizer.label(int(best)) for best in lens.ids[:, LAST - run.trace_start, 0]]
    assert said[3:] == ["ittle", "ittle", "o", "o"]


def test_the_lines_of_the_translators_head_cross(service: Service):
    state = as_link(CARDS["Which word does each word come from?"]["state"])
    run = shown_by(service, state).run
    read = run.trace["decoder.2.cross"].pattern[0, 2].argmax(dim=1)[:4]
    assert [run.source_labels[at] for at in read] == ["The", "␣cat", "␣black", "␣sleeping"]


def test_a_card_that_asks_to_generate_keeps_the_button_in_sight():
    asking = [title for title, card in CARDS.items() if "Generate" in card["look"]]
    assert asking == [title for title, card in CARDS.items() if card.get("presses")] != []
