"""Ids in, ids out: what each step saw and took, by a loop that keeps nothing of the past; filters
against those of transformers."""

import math
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.models import continued, spread, tokens
from kit.strategies import configurations
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from transformer import ModelConfig, Sampling, build_transformer
from transformer.inference import deadline
from transformer.inference.generation import (
    apply_sampling,
    draw,
    generate,
    keep_min_p,
    keep_top_k,
    keep_top_p,
)
from transformer.runs.steps import N_CANDIDATES, CandidateBatch

V, T_MAX, END = 37, 12, 2
SAMPLED = Sampling(temperature=1.3, top_k=9, top_p=0.95)
PROMPTS = [[2, 5, 9, 11], [2, 7], [2, 3, 4, 8, 30, 31, 17]]


def network(family="decoder"):
    sizes = dict(vocab_size=V, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=T_MAX)
    config = ModelConfig(family=family, padding_id=0, positions="learned", **sizes)
    return spread(build_transformer(config), seed=5).eval()


samplings = st.none() | st.builds(
    Sampling,
    temperature=st.sampled_from([0.5, 1.0, 5.0]),
    top_k=st.none() | st.integers(1, 9),
    top_p=st.none() | st.sampled_from([0.5, 0.95]),
    min_p=st.none() | st.sampled_from([0.0, 0.1]),
)


@torch.inference_mode()
def plainly(network, prompt, source, sampling, seed, n_new, end, penalty):
    """For each step: token, window, logits (V,) and the probabilities it was drawn from, (V,)."""
    row, most, never = list(prompt), network.config.output_max_len, network.config.output_padding_id
    generator, steps = torch.Generator().manual_seed(seed), []
    while len(steps) < n_new and (not steps or row[-1] != end):
        start = max(0, len(row) - most) if source is None else 0
        if source is not None and len(row) > most:
            break
        given = [] if source is None else [torch.tensor([source])]
        logits = network(*given, torch.tensor([row[start:]]))[0, -1].float()
        penalise = RepetitionPenaltyLogitsProcessor(penalty)
        possible = penalise(torch.tensor([row]), logits[None])[0]
        if never is not None:
            possible[never] = -torch.inf
        drawn = torch.nn.functional.one_hot(possible.argmax(), len(logits)).float()
        if sampling is not None:
            drawn = apply_sampling(possible[None], sampling)[0].softmax(-1)
            token = int(draw(drawn[None], [generator]))
        else:
            token = int(possible.argmax())
        steps.append((token, (start, len(row)), logits, drawn))
        row.append(token)
    return steps


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(
    config=configurations().filter(lambda config: config.family != "encoder"),
    sampling=samplings,
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    seed=st.integers(0, 999),
    penalty=st.sampled_from([1.0, 0.5, 3.0]),
)
def test_each_row_of_a_batch_takes_what_a_plain_loop_takes(
    config, sampling, lengths, seed, penalty
):
    network = spread(build_transformer(config)).eval().double()
    made = torch.Generator().manual_seed(seed)
    both, end, n_new = config.family == "encoder-decoder", 2, config.output_max_len + 2
    texts = [torch.randint(1, config.vocab_size, (n,), generator=made).tolist() for n in lengths]
    prompts, sources = ([[1]] * len(texts), texts) if both else (texts, None)
    seeds = [seed + row for row in range(len(texts))]
    settings = dict(
        max_new_tokens=n_new, end_ids={end}, sampling=sampling, seeds=seeds,
        repetition_penalty=penalty,
    )  # fmt: skip
    found = list(generate(network, prompts, sources=sources, **settings))
    for row, prompt in enumerate(prompts):
        steps = [steps[row] for steps in found if steps[row] is not None]
        source = sources[row] if sources else None
        wanted = plainly(network, prompt, source, sampling, seeds[row], n_new, end, penalty)
        assert [step.token for step in steps] == [token for token, *_ in wanted]
        for index, (step, (_, window, logits, drawn)) in enumerate(zip(steps, wanted, strict=True)):
            assert (step.index, step.window) == (index, window)
            assert step.n_kept == (drawn > 0).sum()
            ids = [candidate.id for candidate in step.candidates]
            best = min(N_CANDIDATES, len(logits))
            assert len(set(ids)) == len(ids) <= best + 1
            torch.testing.assert_close(logits[ids[:best]], logits.topk(best).values)
            for name, numbers in (
                ("logit", logits),
                ("probability", logits.softmax(-1)),
                ("sampling_probability", drawn),
            ):
                values = torch.tensor([getattr(one, name) for one in step.candidates])
                torch.testing.assert_close(values, numbers[ids], atol=1e-4, rtol=1e-4)
            assert step.chosen.id == step.token


def test_the_global_generator_is_neither_read_nor_moved():
    model = network()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = tokens(continued(model, PROMPTS, sampling=SAMPLED, seeds=[1, 2, 3]))
    assert torch.get_rng_state().equal(before)
    torch.manual_seed(2)
    assert tokens(continued(model, PROMPTS, sampling=SAMPLED, seeds=[1, 2, 3])) == first
    zeros = tokens(continued(model, PROMPTS, sampling=SAMPLED, seeds=[0, 0, 0]))
    assert tokens(continued(model, PROMPTS, sampling=SAMPLED)) == zeros


def test_nothing_is_computed_after_all_rows_end_or_the_caller_stops():
    model, passes = network(), []
    (whole,) = tokens(continued(model, [PROMPTS[0]], end_ids={V}))
    model.register_forward_hook(lambda *_: passes.append(1))
    (steps,) = continued(model, [PROMPTS[0]], end_ids={whole[0]}, max_new_tokens=9)
    assert len(steps) == len(passes) == 1
    stream = generate(model, [PROMPTS[0]], max_new_tokens=9, end_ids={V})
    assert [next(stream)[0].token for _ in range(3)] == whole[:3]
    stream.close()
    assert len(passes) == 1 + 3


def test_a_generation_ends_at_its_deadline_or_when_cancelled(monkeypatch):
    now, cancelled = [100.0], Event()
    monkeypatch.setattr(deadline.time, "monotonic", lambda: now[0])
    stream = generate(network(), [PROMPTS[0]], max_new_tokens=9, end_ids={V})
    with deadline.until(deadline.Deadline(10, yield_slot=lambda wanted: 5.0)) as one:
        assert deadline.current().why is None
        assert len(list(zip(range(2), stream, strict=False))) == 2  # 10 s, and 5 s for each
        now[0] = 124.9
        assert next(stream)[0].index == 2
        now[0] = 130.0
        assert list(stream) == []
        assert (one.why, deadline.current().why) == (deadline.TIME, deadline.TIME)
        with pytest.raises(ValueError, match="this takes longer than one request may"):
            deadline.check()
    with deadline.until(deadline.Deadline(10, cancelled)), deadline.renewed(3) as one:
        deadline.check()
        cancelled.set()
        assert deadline.is_over()
        now[0] += 20
        assert (deadline.is_over(), one.why) == (True, deadline.CANCELLED)  # as it was first
        with pytest.raises(ValueError, match="nobody waits for this any more"):
            deadline.check()
    with deadline.renewed(3):  # of a request without a limit
        deadline.check()
        now[0] += 3
        assert deadline.is_over()
    deadline.check()
    assert deadline.current().why is None


def test_inference_mode_does_not_leak_out_of_a_stream():
    stream = generate(network(), [PROMPTS[0]], max_new_tokens=3, end_ids={V})
    next(stream)
    assert not torch.is_inference_mode_enabled()
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(next, stream).result()[0].index == 1


def test_what_cannot_generate_says_so():
    options = dict(max_new_tokens=1, end_ids={END})
    for prompts in ([], [[]], [[2, 3], []]):
        with pytest.raises(ValueError, match="each prompt needs at least one token"):
            next(generate(network(), prompts, **options))
    with pytest.raises(ValueError, match=r"an? encoder model cannot generate; it has no decoder"):
        next(generate(network("encoder"), PROMPTS, **options))
    for sources in (None, [], [[]], [[3], [4]]):
        with pytest.raises(ValueError, match="needs one source of at least one token"):
            next(generate(network("encoder-decoder"), [[1]], sources=sources, **options))


@pytest.mark.parametrize("sampling", [None, SAMPLED])
def test_a_step_looked_at_late_is_described_as_one_looked_at_at_once(sampling):
    settings = dict(sampling=sampling, seeds=[3])
    (late,) = continued(network(), [PROMPTS[0]], **settings)
    assert all(step.candidates.pending is not None for step in late)
    now = []
    for (step,) in generate(network(), [PROMPTS[0]], max_new_tokens=8, end_ids={END}, **settings):
        now.append(tuple(step.candidates))
    assert [tuple(step.candidates) for step in late] == now
    assert all(step.candidates.pending is None for step in late)
    assert late[0].candidates == now[0]
    assert late[0].candidates != now[1]


def test_as_many_logits_wait_as_may_and_with_one_more_all_are_described(monkeypatch):
    monkeypatch.setattr("transformer.runs.steps.PENDING_BYTES", 2 * 2 * 37 * 4)
    described, logits = CandidateBatch(), torch.randn(3, 37)
    made = [described.add(row, row.softmax(-1), chosen=5) for row in logits[:2]]
    assert all(one.pending is not None for one in made)
    made.append(described.add(logits[2], None, chosen=5))
    assert all(one.pending is None for one in made)


LOGIT = st.integers(-40, 40).map(lambda n: n / 4)


@st.composite
def batches(draw_from, **rows):
    """(B, V) logits as lists, of one to four rows of equal length."""
    width = draw_from(st.integers(1, 13))
    row = st.lists(LOGIT, min_size=width, max_size=width, **rows)
    return draw_from(st.lists(row, min_size=1, max_size=4))


def kept(filtered):
    return [[math.isfinite(x) for x in row] for row in filtered.tolist()]


@given(
    rows=batches(unique=True),
    tied=batches(),
    k=st.integers(1, 15),
    share=st.integers(1, 99).map(lambda percent: percent / 100 + 0.00123),
    temperature=st.sampled_from([0.3, 1.0, 2.5]),
)
def test_the_filters_keep_what_those_of_transformers_keep(rows, tied, k, share, temperature):
    logits, some_equal = torch.tensor(rows), torch.tensor(tied)
    assert keep_top_k(some_equal, k).equal(TopKLogitsWarper(k)(None, some_equal))
    assert keep_top_p(logits, share).equal(TopPLogitsWarper(share)(None, logits))
    assert keep_min_p(logits, share).equal(MinPLogitsWarper(share)(None, logits))
    sampling = Sampling(temperature=temperature, top_k=k, top_p=share, min_p=share / 9)
    wanted = TemperatureLogitsWarper(temperature)(None, logits)
    for keep in (TopKLogitsWarper(k), TopPLogitsWarper(share), MinPLogitsWarper(share / 9)):
        wanted = keep(None, wanted)
    assert apply_sampling(logits, sampling).equal(wanted)


def test_what_reaches_p_exactly_is_enough_and_what_has_exactly_min_p_stays():
    quarters = torch.zeros(1, 4)  # each of probability 1/4
    assert kept(keep_top_p(quarters, 0.5)) == [[True, True, False, False]]
    assert kept(keep_min_p(quarters, 1.0)) == [[True] * 4]
    assert kept(keep_top_p(torch.zeros(1, 4096), 0.5)) == [[True] * 2048 + [False] * 2048]


def test_a_top_p_of_one_keeps_even_the_unlikeliest_and_the_least_one_token():
    logits = torch.cat([torch.zeros(1), torch.full((5_000,), -30.0)])[None]
    assert keep_top_p(logits, 1.0).equal(logits)
    assert kept(keep_top_p(logits, 1e-50)) == [[True] + [False] * 5_000]  # 0 in float32


@pytest.mark.parametrize("place", [0.0, 0.49999, 0.5, 1 - 2**-53])
def test_the_ends_of_the_range_fall_on_possible_tokens(place, monkeypatch):
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.tensor(place, dtype=torch.float64))
    probabilities = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]])
    expected = 1 if place < 0.5 else 3
    assert draw(probabilities, [torch.Generator()]).tolist() == [expected]


def test_tokens_are_drawn_as_often_as_their_probability():
    wanted = torch.tensor([0.1, 0.0, 0.2, 0.3, 0.4])
    n = 4_000
    generators = [torch.Generator().manual_seed(seed) for seed in range(n)]
    drawn = draw(wanted.expand(n, 5), generators)
    found = drawn.bincount(minlength=5) / n
    torch.testing.assert_close(found, wanted, atol=0.03, rtol=0)


BAD = [math.nan, math.inf, -math.inf, True, "0.5", [0.5], 10**400]


RANGES = {
    "temperature": ("a number from 0\\.01 to 10", [0, 0.009, 10.1, -1, None]),
    "top_p": ("a number above 0 to 1", [0, -0.1, 1.01]),
    "min_p": ("a number from 0 to 1", [-0.1, 1.01]),
    "top_k": ("a whole number from 1 to 1,000,000", [0, -1, 1_000_001, 2.0]),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_setting_out_of_range_gets_a_sentence(name):
    allowed, values = RANGES[name]
    for bad in [*BAD, *values]:
        with pytest.raises(ValueError, match=f"{name} must be {allowed}; got"):
            Sampling(**{name: bad})


def test_the_ends_of_the_ranges_are_allowed():
    Sampling(temperature=0.01, top_k=1, top_p=1, min_p=0)
    Sampling(temperature=10, top_k=1_000_000, top_p=1e-9, min_p=1)
