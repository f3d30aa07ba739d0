"""The trace that a fast session keeps against that of a full pass of the network."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from builders import tiny

from transformer.analysis.logit_lens import surprisal
from transformer.inference.engines.choice import KINDS
from transformer.model.trace import Trace

TEXT = "the fox said hello"
MAX_LEN = 40


CASES = list(itertools.product(("decoder", "encoder-decoder"), KINDS))


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1].name}")
def fast_model(request, tokenizer):
    """A model of either family with a decoder, with each engine."""
    family, kind = request.param
    model = tiny("fast", family, tokenizer, seed=1, d_model=24, n_heads=3, max_len=MAX_LEN)
    return dataclasses.replace(model, engine=kind(model.network))


def check(model, run):
    """The run's trace is that of a full pass of the network over what it covers."""
    trace, ids = Trace(), torch.tensor([run.ids[run.trace_start :][:MAX_LEN]])
    with torch.inference_mode():
        given = [torch.tensor([run.source_ids]), ids] if run.source_ids else [ids]
        model.network(*given, trace=trace)
    for stack, kind in trace.kinds():
        close(run.trace.weights(stack, kind), trace.weights(stack, kind))
        close(run.trace.scores(stack, kind), trace.scores(stack, kind))
    for stack, streams in trace.residuals.items():
        close(torch.stack(run.trace.residuals[stack]), torch.stack(streams))


def close(got, expected):
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.2, "top_k": 30, "seed": 3}])
def test_a_run_has_the_engines_trace_and_makes_no_second_pass_for_it(fast_model, settings):
    seen = []
    hook = fast_model.network.decoder.register_forward_hook(lambda *_: seen.append(1))
    run = fast_model.generate(TEXT, max_new_tokens=9, **settings)
    hook.remove()
    by_engine = fast_model.engine.name == "compiled" and fast_model.config.family == "decoder"
    assert len(seen) == (not by_engine)  # the prompt
    assert run.engine == fast_model.engine.name
    check(fast_model, run)
    plain = dataclasses.replace(fast_model, engine=None)
    same = plain.generate(TEXT, max_new_tokens=9, **settings)
    assert run.ids == same.ids
    ours, theirs = (surprisal(plain, one)[1:] for one in (run, same))
    assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-4)
    stream = fast_model.stream(TEXT, max_new_tokens=9, **settings)
    taken = next(stream).token
    early = stream.run()  # which changes no later token
    assert (early.stopped, early.ids[early.n_prompt :]) == ("cancelled", (taken,))
    assert early.ids + tuple(step.token for step in stream) == run.ids
    check(fast_model, early)
    check(fast_model, stream.run())


def test_where_the_window_slides_a_full_pass_takes_over(fast_model):
    run = fast_model.generate(TEXT, max_new_tokens=MAX_LEN + 5)
    slid = fast_model.config.family == "decoder"
    assert (run.trace_start > 0) == slid
    assert run.engine == ("network" if slid else fast_model.engine.name)
    check(fast_model, run)
