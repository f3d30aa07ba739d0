"""What docs/teaching/findings.md says that a class can see in the bundled models, seen again."""

import pytest

import transformer
from transformer import Ablate
from transformer.analysis.ablation import head_importance
from transformer.analysis.head_metrics import head_metrics, strongest
from transformer.analysis.logit_contribution import logit_contribution

NAMES = "There was a bird named Tiko. Tiko liked to sing. Tiko met a cat named Bram. Tiko and Bram"


@pytest.fixture(scope="module")
def stories():
    return transformer.load("stories")


@pytest.fixture(scope="module")
def translator():
    return transformer.load("translate-en-fr")


def test_head_5_0_is_the_clearest_and_adds_half_of_the_logit(stories):
    run = stories.trace(NAMES)
    best = strongest(run, head_metrics(run, "decoder", "self"))
    assert (best.layer, best.head, best.metric.name, best.clear) == (5, 0, "induction", True)
    assert best.value > 0.25
    assert best.value > 6 * best.even
    assert (run.labels[best.query], run.labels[best.key]) == ("␣B", "r")
    assert best.key == run.labels.index("␣B") + 1 < best.query
    assert best.weight > 0.9
    added = logit_contribution(stories, run, len(run.ids) - 1)
    assert float(added.heads["self"][5, 0]) > 0.49 * added.logit


def test_a_head_that_adds_little_matters_much_because_that_head_reads_it(stories):
    run = stories.trace(NAMES)
    place = len(run.ids) - 1
    change = head_importance(stories, run, place).change["decoder", "self"]
    first, second = change.flatten().argsort()[:2].tolist()
    assert [divmod(first, 8), divmod(second, 8)] == [(5, 0), (3, 4)]
    assert change[3, 4] < -1.4
    added = logit_contribution(stories, run, place)
    assert 0 < float(added.heads["self"][3, 4]) < 0.07 * added.logit
    without = stories.trace(NAMES, [Ablate("decoder", 3, [4])])
    read = [
        float(one.trace["decoder.5.self"].pattern[0, 0, place - 1, run.labels.index("␣B") + 2])
        for one in (run, without)
    ]
    assert read == pytest.approx([0.68, 0.31], abs=0.01)


def test_without_cross_attention_every_sentence_has_the_same_translation(translator):
    deaf = [Ablate("decoder", layer, range(8), "cross") for layer in range(3)]
    texts = ["The black cat is sleeping on the bed.", "Where is the train station?"]
    said = [translator.generate(t, interventions=deaf, max_new_tokens=24).text for t in texts]
    assert said[0] == said[1]
    assert said[0].startswith("Il y a des choses")
