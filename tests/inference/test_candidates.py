"""What each step could have taken."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from generating import END, PROMPTS, SAMPLED, continued, network

from transformer.inference.generation import generate
from transformer.runs.steps import Described


@pytest.mark.parametrize("sampling", [None, SAMPLED])
def test_a_step_looked_at_late_is_described_as_one_looked_at_at_once(sampling):
    settings = dict(sampling=sampling, seeds=[3])
    (late,) = continued(network(), [PROMPTS[0]], **settings)
    assert all(step.candidates.waiting is not None for step in late)
    now = []
    for (step,) in generate(network(), [PROMPTS[0]], max_new_tokens=8, end_id=END, **settings):
        now.append(tuple(step.candidates))
    assert [tuple(step.candidates) for step in late] == now
    assert all(step.candidates.waiting is None for step in late)
    assert late[0].candidates == now[0]
    assert late[0].candidates != now[1]


def test_as_many_logits_wait_as_may_and_with_one_more_all_are_described(monkeypatch):
    monkeypatch.setattr("transformer.runs.steps.WAITING_BYTES", 2 * 2 * 37 * 4)
    described, logits = Described(), torch.randn(3, 37)
    made = [described.add(row, row.softmax(-1), chosen=5) for row in logits[:2]]
    assert all(one.waiting is not None for one in made)
    made.append(described.add(logits[2], None, chosen=5))
    assert all(one.waiting is None for one in made)


def test_eight_threads_may_look_first():
    (steps,) = continued(network(), [PROMPTS[0]], sampling=SAMPLED)
    (alone,) = continued(network(), [PROMPTS[0]], sampling=SAMPLED)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda place: tuple(steps[place % len(steps)].candidates), range(64)))
    assert found == [tuple(alone[place % len(alone)].candidates) for place in range(64)]
