"""What the README says that a class can see in the bundled models, seen again."""

from __future__ import annotations

import pytest
import torch

import transformer
from transformer.inference.effects import head_importance, next_token, patch_effect
from transformer.model.interventions import Break, Silence

NAMES = "There was a bird named Tiko. Tiko liked to sing. Tiko met a cat named Bram. Tiko and Bram"


@pytest.fixture(scope="module")
def stories():
    return transformer.load("stories")


@pytest.fixture(scope="module")
def translator():
    return transformer.load("translate-en-fr")


def test_head_0_of_the_last_layer_finishes_a_name_that_stood_before(stories):
    run = stories.trace(NAMES, [Silence("decoder", 5, [0])])
    place = len(run.ids) - 1
    assert run.labels[-2:] == ("r", "am")
    found = next_token(stories, run, place)
    at = found.ids.index(run.ids[place])
    assert found.intact[at] > 0.45
    assert found.altered[at] < 0.03
    change = head_importance(stories, run, place).change["decoder", "self"]
    assert divmod(int(change.argmin()), 8) == (5, 0)


def test_that_head_reads_what_followed_the_token_the_last_time(stories):
    run = stories.trace(NAMES)
    weights = run.trace["decoder.5.self"].weights[0, 0]
    again = len(run.ids) - 3  # the second " B" of Bram
    before = run.labels.index("␣B")
    assert run.labels[again] == "␣B"
    assert before < again
    assert int(weights[again].argmax()) == before + 1
    assert weights[again, before + 1] > 0.9


def test_without_positions_a_sentence_is_a_bag_of_words(translator):
    dog, man = "The dog bit the man.", "The man bit the dog."
    intact = [translator.generate(text).text for text in (dog, man)]
    assert intact == ["Le chien a mordu l'homme.", "L'homme a mordu le chien."]
    lost = [translator.generate(t, interventions=[Break("no-positions")]).text for t in (dog, man)]
    assert lost[0] == lost[1]


def test_without_cross_attention_every_sentence_has_the_same_translation(translator):
    deaf = [Silence("decoder", layer, range(8), "cross") for layer in range(3)]
    texts = ["The black cat is sleeping on the bed.", "Where is the train station?"]
    said = [translator.generate(t, interventions=deaf, max_new_tokens=24).text for t in texts]
    assert said[0] == said[1]
    assert said[0].startswith("Il y a des choses")


def test_one_vector_of_the_encoder_makes_the_cat_a_dog(translator):
    run = translator.generate("The black cat is sleeping on the bed.")
    place = run.labels.index("␣chat")
    found = patch_effect(
        translator, run, "The black dog is sleeping on the bed.", place, stack="encoder"
    )
    assert translator.tokenizer.label(found.target) == "␣chien"
    cat = run.source_labels.index("␣cat")
    assert int(found.change[0].argmax()) == cat
    assert float(found.change[:, cat].min()) > 5
    others = torch.cat([found.change[:, :cat], found.change[:, cat + 1 :]], dim=1)
    assert float(others.abs().max()) < 0.5
