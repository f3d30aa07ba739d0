"""What docs/teachers.md says that a class can see in the bundled models, seen again."""

from __future__ import annotations

import transformer
from transformer.analysis.ablation import head_importance, next_token
from transformer.analysis.logit_contribution import logit_contribution
from transformer.interventions.descriptions import Ablate

NAMES = "There was a bird named Tiko. Tiko liked to sing. Tiko met a cat named Bram. Tiko and Bram"


def test_one_head_finishes_a_name_that_stood_before_and_another_makes_it_look_there():
    stories = transformer.load("stories")
    run = stories.trace(NAMES, [Ablate("decoder", 5, [0])])
    place = len(run.ids) - 1
    found = next_token(stories, run, place)
    at = found.ids.index(run.ids[place])
    assert found.intact[at] > 0.75
    assert found.intervened[at] < 0.05
    run = stories.trace(NAMES)
    change = head_importance(stories, run, place).change["decoder", "self"]
    first, second = change.flatten().argsort()[:2].tolist()
    assert [divmod(first, 8), divmod(second, 8)] == [(5, 0), (3, 4)]
    added = logit_contribution(stories, run, place)
    assert float(added.heads["self"][5, 0]) > 0.49 * added.logit
    assert 0 < float(added.heads["self"][3, 4]) < 0.07 * added.logit
    both = run, stories.trace(NAMES, [Ablate("decoder", 3, [4])])
    weights = [one.trace["decoder.5.self"].pattern[0, 0, place - 1] for one in both]
    read = [float(row[run.labels.index("␣B") + 2]) for row in weights]
    assert (read[0] > 0.65, read[1] < 0.35) == (True, True)
