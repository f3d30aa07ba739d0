"""The trace that a fast session keeps against that of a full pass of the network."""

from __future__ import annotations

import dataclasses
import pickle

import pytest
import torch
from builders import EIGHT, KNOWN_PRESETS, spread

from transformer import Model, build_transformer
from transformer.analysis.logit_lens import logit_lens, surprisal, with_lens
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.choice import engine_of
from transformer.model.trace import Trace
from transformer.runs.compact_trace import CompactRecords

TEXT = "the fox said hello"
MAX_LEN = 40


@pytest.fixture(
    scope="module",
    params=KNOWN_PRESETS,
)
def fast_model(request, tokenizer):
    """A model of each preset with a decoder, with each engine."""
    preset, engine = request.param
    network = build_transformer(
        preset, vocab_size=tokenizer.vocab_size, d_model=24, n_heads=3, n_layers=2, d_ff=40,
        max_len=MAX_LEN, padding_id=tokenizer.padding_id, **EIGHT.get(preset, {}),
    )  # fmt: skip
    spread(network, seed=1).eval().requires_grad_(False)
    return Model(
        name=preset, config=network.config, tokenizer=tokenizer, network=network,
        engine=engine_of(network, engine),
    )  # fmt: skip


@torch.inference_mode()
def full_pass(model, run):
    """The trace of the network itself over what the run's trace covers, and its logits."""
    trace = Trace()
    ids = torch.tensor([run.ids[run.trace_start :][: model.config.max_len]])
    given = [torch.tensor([run.source_ids]), ids] if run.source_ids else [ids]
    return trace, model.network(*given, trace=trace)


def close(got, expected):
    """Equal up to 2e-5 of the largest number: each of both is off by up to half of that."""
    room = 2e-5 * max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(got, expected, atol=room, rtol=0)


def check(model, run):
    """Every record, stream and embedding of the run's trace is that of a full pass."""
    expected, logits = full_pass(model, run)
    assert run.trace.sites == expected.sites
    for site in expected.sites:
        ours, theirs = run.trace[site], expected[site]
        for name in ("scores", "pattern", "q", "k", "v"):
            close(getattr(ours, name), getattr(theirs, name))
        assert ours.allowed.equal(theirs.allowed)
    for name in ("embed", "pos_embed"):
        assert getattr(run.trace, name).keys() == getattr(expected, name).keys()
        for stack, x in getattr(expected, name).items():
            close(getattr(run.trace, name)[stack], x)
    assert run.trace.residuals.keys() == expected.residuals.keys()
    for stack, streams in expected.residuals.items():
        for ours, theirs in zip(run.trace.residuals[stack], streams, strict=True):
            close(ours, theirs)
    best = logits[0].softmax(-1).max(-1)
    lens = logit_lens(model, run)
    torch.testing.assert_close(lens.probabilities[-1, :, 0], best.values, atol=1e-4, rtol=1e-4)


def passes(model):
    """A list that grows by one with each pass of the network's decoder."""
    seen = []
    model.network.decoder.register_forward_hook(lambda *_: seen.append(1))
    return seen


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.2, "top_k": 30, "seed": 3}])
def test_the_collected_trace_is_that_of_a_full_pass(fast_model, settings):
    seen = passes(fast_model)
    run = fast_model.generate(TEXT, max_new_tokens=9, **settings)
    by_engine = fast_model.engine.name == "compiled" and fast_model.config.family == "decoder"
    assert len(seen) == (not by_engine)  # the prompt; no second pass for the trace
    assert run.engine == fast_model.engine.name
    check(fast_model, run)


def test_a_run_taken_on_the_way_stays_as_it_was_and_changes_no_later_token(fast_model):
    whole = fast_model.generate(TEXT, max_new_tokens=9)
    stream = fast_model.stream(TEXT, max_new_tokens=9)
    taken = next(stream).token
    early = stream.run()
    assert (early.stopped, early.ids[early.n_prompt :]) == ("cancelled", (taken,))
    check(fast_model, early)
    before = [record.pattern.clone() for record in early.trace.records.values()]
    rest = [step.token for step in stream]
    assert list(whole.ids[whole.n_prompt + 1 :]) == rest
    check(fast_model, stream.run())
    for record, weights in zip(early.trace.records.values(), before, strict=True):
        assert record.pattern.equal(weights)


def test_where_the_window_slides_a_full_pass_takes_over(fast_model):
    run = fast_model.generate(TEXT, max_new_tokens=MAX_LEN + 5)
    slid = fast_model.config.family == "decoder"
    assert (run.trace_start > 0) == slid
    assert run.engine == ("network" if slid else fast_model.engine.name)
    check(fast_model, run)


def test_surprisal_and_candidates_agree_with_the_network_without_an_engine(fast_model):
    plain = dataclasses.replace(fast_model, engine=None).generate(TEXT, max_new_tokens=6)
    fast = fast_model.generate(TEXT, max_new_tokens=6)
    assert fast.ids == plain.ids
    ours, theirs = (surprisal(fast_model, run)[1:] for run in (fast, plain))
    assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-4)
    for ours, theirs in zip(fast.steps, plain.steps, strict=True):
        assert [c.id for c in ours.candidates[:5]] == [c.id for c in theirs.candidates[:5]]


def test_a_reading_knows_only_its_own_text(fast_model):
    session = DecodeSession(fast_model.engine)
    assert session.trace_of([2, 5]) is None
    session.begin([2, 5], [7, 2])
    assert session.trace_of([2, 6, 7]) is None
    assert session.trace_of([2, 5, 6]) is not None
    assert session.ids == [2, 5, 6]


def test_a_pickled_run_is_whole_and_does_not_carry_the_network(fast_model):
    run = with_lens(fast_model, fast_model.generate(TEXT, max_new_tokens=5))
    written = pickle.dumps(run)
    again = pickle.loads(written)
    assert b"Decoder" not in written.replace(b"decoder", b"")
    assert b"Session" not in written
    assert isinstance(again.trace.records, CompactRecords)
    check(fast_model, again)
    assert again.surprisal == run.surprisal
    assert dict(again.candidate_labels) == dict(run.candidate_labels)
    for step, before in zip(again.steps, run.steps, strict=True):
        assert tuple(step.candidates) == tuple(before.candidates)
