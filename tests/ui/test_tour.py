"""The tour: what its cards say of the network is what the network does."""

from __future__ import annotations

import pytest

import transformer
from transformer.ui.experiments import Experiments
from transformer.ui.service import Service
from transformer.ui.tour import all_cards, as_link
from transformer.ui.verify_lessons import shown_by

CARDS = {card["title"]: card for card in all_cards()}
# What the intact network writes, and what the network of the card's state does.
WRITES = {
    "Without it, the name is lost": ("Bram", "Brue"),
    "Take away the word order": ("L'homme a mordu le chien.", "Le chien a mordu l'homme."),
    "Make the cat a dog": ("chat noir dort sur le lit.", "chien noir dort sur le lit."),
}


@pytest.fixture(scope="module")
def experiments() -> Experiments:
    models = [transformer.load(name) for name in ("stories", "translate-en-fr")]
    return Experiments(Service(models, trainings=0))


@pytest.mark.slow
@pytest.mark.parametrize("title", WRITES)
def test_an_alteration_changes_the_text_as_its_card_says(experiments: Experiments, title: str):
    state = as_link(CARDS[title]["state"])
    altered = shown_by(experiments, state).run.text
    intact = shown_by(experiments, state | {"alter": "[]"}).run.text
    before, after = WRITES[title]
    assert intact.endswith(before), intact
    assert altered.endswith(after), altered


@pytest.mark.slow
def test_the_most_shaded_token_is_the_one_that_the_first_card_names(experiments: Experiments):
    card = CARDS["A head that finishes names"]
    run = shown_by(experiments, as_link(card["state"])).run
    row = run.trace["decoder.5.self"].weights[0, 0, 20]
    assert run.labels[20] == "␣B"
    assert int(row.argmax()) == run.labels.index("␣B") + 1
    assert "the r after the first B" in card["look"]
    assert run.labels[12] == "r"


@pytest.mark.slow
def test_without_positions_both_sentences_are_translated_alike(experiments: Experiments):
    card = CARDS["Take away the word order"]
    state = as_link(card["state"]) | {"text": "The dog bit the man."}
    assert state["text"] in card["look"]
    assert shown_by(experiments, state).run.text.endswith(WRITES[card["title"]][1])


@pytest.mark.slow
def test_the_lines_of_the_translators_head_cross(experiments: Experiments):
    state = as_link(CARDS["Which word does each word come from?"]["state"])
    run = shown_by(experiments, state).run
    read = run.trace["decoder.2.cross"].weights[0, 2].argmax(dim=1)[:4]
    assert [run.source_labels[at] for at in read] == ["The", "␣cat", "␣black", "␣sleeping"]


def test_a_card_that_asks_for_a_text_keeps_the_text_box_in_sight():
    asking = [title for title, card in CARDS.items() if "Type " in card["look"]]
    assert asking == [title for title, card in CARDS.items() if card.get("types")] != []
