"""The cards of Start here: what they say of the network is what the network does."""

import pytest

import transformer
from transformer import with_lens
from transformer.ui.examples import as_link, example_of, read_tour
from transformer.ui.lessons import shown_by
from transformer.ui.service import Service

CARDS = {card["title"]: card for card in read_tour()["card"]}
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


def test_the_first_card_names_the_token_that_the_example_predicts(
    service: Service,
):
    model = service.model("stories")
    example, run = example_of(model), shown_by(service, {"model": "stories"}).run
    assert (run.stopped, len(run.labels), run.labels[LAST]) == ("read", LAST + 1, "␣L")
    assert (example.methods[0], CARDS["What comes next?"]["state"]["read"]) == ("greedy", "31")
    step = model.generate(example.text, **example.settings).steps[0]
    assert (model.tokenizer.label(step.token), f"{step.chosen.probability:.0%}") == ("o", "86%")
    assert "“o” gets 86 %" in CARDS["What comes next?"]["says"]


def test_only_the_last_two_layers_say_what_the_last_one_says(service: Service):
    run = shown_by(service, as_link(CARDS["How early does it know?"]["state"])).run
    model = service.model("stories")
    lens = with_lens(model, run).lens
    said = [model.tokenizer.label(int(best)) for best in lens.ids[:, LAST - run.trace_start, 0]]
    assert said[3:] == ["ittle", "ittle", "o", "o"]
