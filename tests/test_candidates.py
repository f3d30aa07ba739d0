"""What each step could have taken."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from generating import END, PROMPTS, SAMPLED, continued, network, next_logits

from transformer import Sampling
from transformer.inference.generation import generate
from transformer.inference.sampling import apply_sampling
from transformer.runs import candidates
from transformer.runs.candidates import N_CANDIDATES


@pytest.mark.parametrize("sampling", [None, SAMPLED])
def test_candidates_are_the_likeliest_of_a_full_pass(sampling):
    model, row = network(), list(PROMPTS[0])
    (steps,) = continued(model, [row], sampling=sampling, max_new_tokens=15)
    for step in steps:
        logits = next_logits(model, row)
        probabilities = logits.softmax(-1)
        top = step.candidates[:N_CANDIDATES]
        ids = [c.id for c in top]
        expected = probabilities.topk(N_CANDIDATES).values
        torch.testing.assert_close(probabilities[ids], expected, atol=1e-5, rtol=0)
        for candidate in step.candidates:
            assert candidate.logit == pytest.approx(logits[candidate.id].item(), abs=1e-4)
            assert candidate.probability == pytest.approx(
                probabilities[candidate.id].item(), abs=1e-5
            )
        row.append(step.token)


@pytest.mark.parametrize("sampling", [None, SAMPLED, Sampling(temperature=10.0)])
def test_the_chosen_token_is_always_among_the_candidates(sampling):
    extra = 0
    for seed in range(6):
        (steps,) = continued(network(), [PROMPTS[0]], sampling=sampling, seeds=[seed])
        for step in steps:
            assert step.chosen.id == step.token
            assert step.chosen.sampling_probability > 0
            ids = [c.id for c in step.candidates]
            assert len(set(ids)) == len(ids)
            assert len(ids) in (N_CANDIDATES, N_CANDIDATES + 1)
            extra += len(ids) == N_CANDIDATES + 1
    assert extra or sampling is None or sampling.top_k  # at a temperature of 10 it does happen


def test_probabilities_after_filtering_are_those_drawn_from():
    model, row = network(), list(PROMPTS[0])
    (steps,) = continued(model, [row], sampling=SAMPLED)
    for step in steps:
        logits = next_logits(model, row)
        logits[0] = -torch.inf
        filtered = apply_sampling(logits[None], SAMPLED)[0].softmax(-1)
        for candidate in step.candidates:
            assert candidate.sampling_probability == pytest.approx(
                filtered[candidate.id].item(), abs=1e-5
            )
        assert step.n_kept == (filtered > 0).sum() <= 9
        row.append(step.token)


def test_greedy_takes_the_likeliest_and_leaves_nothing_else_possible():
    (steps,) = continued(network(), [PROMPTS[0]])
    for step in steps:
        possible = [c for c in step.candidates if c.sampling_probability > 0]
        assert possible == [step.chosen]
        assert step.n_kept == 1


@pytest.mark.parametrize("sampling", [None, Sampling()])
def test_padding_is_never_taken_however_likely(sampling):
    model = network(head_bias=True)
    with torch.no_grad():
        model.head.bias[0] = 100
    (steps,) = continued(model, [PROMPTS[0]], sampling=sampling)
    for step in steps:
        assert step.token != 0
        assert step.candidates[0].id == 0
        assert step.candidates[0].probability == pytest.approx(1)
        assert step.candidates[0].sampling_probability == 0


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


def test_steps_are_described_before_too_many_logits_wait(monkeypatch):
    monkeypatch.setattr(candidates, "WAITING_BYTES", 3 * 37 * 4)
    (steps,) = continued(network(), [PROMPTS[0]])
    waiting = [step.candidates.waiting is not None for step in steps]
    assert waiting[0] is waiting[1] is waiting[2] is waiting[3] is False
    assert sum(waiting) <= 3


def test_a_pickled_step_is_the_same_and_carries_no_logits():
    (steps,) = continued(network(), [PROMPTS[0]])
    (again,) = pickle.loads(pickle.dumps([steps]))
    assert [step.candidates for step in again] == [tuple(step.candidates) for step in steps]
    assert all(isinstance(step.candidates, tuple) for step in again)


def test_eight_threads_may_look_first():
    (steps,) = continued(network(), [PROMPTS[0]], sampling=SAMPLED)
    (alone,) = continued(network(), [PROMPTS[0]], sampling=SAMPLED)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda place: tuple(steps[place % len(steps)].candidates), range(64)))
    assert found == [tuple(alone[place % len(alone)].candidates) for place in range(64)]
