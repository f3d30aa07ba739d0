"""Interventions as plain values, and what a model makes of them when it generates."""

import dataclasses
import json

import pytest
import torch
from kit.models import H, L, config

from transformer.interventions.checks import MAX_CELLS
from transformer.interventions.descriptions import (
    Ablate,
    Break,
    EditMask,
    Patch,
    check_all,
    interventions_of,
    to_dict,
    without_padding_mask,
)
from transformer.runs.request import MAX_SEED

HIDDEN = dict(forbid=[(1, None), (None, 2)], allow=[(0, 3)])
CROSS = "cross-attention layer 0, head 1 replaced by its mean"
ENCODER = "mask of encoder self-attention of layer 1: without the padding mask"
DECODER = "mask of decoder self-attention: without the causal mask, 1 allowed, 2 forbidden"
ALL = [  # each, and how people read it
    (Ablate("decoder", 1, [2, 0]), "layer 1, heads 0, 2 switched off"),
    (Ablate("decoder", 0, heads=[1], kind="cross", by="mean"), CROSS),
    (EditMask("decoder", without=["causal"], **HIDDEN), DECODER),
    (EditMask("encoder", 1, without=["padding"]), ENCODER),
    (EditMask("decoder"), "mask of decoder self-attention: unchanged"),
    (Break("no-scale"), "no scale"),
    (Patch("decoder", 1, [3, 1], "Other", "z", [0]), "layer 1, head 0 at places 1, 3"),
    (Patch("encoder", 0, [3], "Other", "z"), "encoder layer 0, all heads at place 3"),
    (Patch("decoder", 1, [3], "Other", "mlp_out"), "layer 1, feed-forward at place 3"),
    (Patch("decoder", 1, [3], "Other"), "layer 1, residual stream at place 3"),
]
TEXT = "The fox said"


@pytest.mark.parametrize(("intervention", "said"), ALL, ids=str)
def test_plain_values_travel_as_json_and_come_back_equal(intervention, said):
    assert str(intervention) == said
    plain = to_dict(intervention)
    (back,) = interventions_of([json.loads(json.dumps(plain))])
    assert back == intervention
    fields = [field for field in dataclasses.fields(intervention) if field.name in plain]
    assert all(getattr(intervention, field.name) != field.default for field in fields)


SILENCE = {"type": "ablate", "stack": "decoder", "layer": 0, "heads": [0]}
MASK = {"type": "mask", "stack": "decoder"}
PATCH = {"type": "patch", "stack": "decoder", "layer": 0, "positions": [0], "text": "Hello"}


LAYER = "layer must be a whole number from 0 to 2,147,483,647; got"
REFUSED = [
    ("silence", "interventions must be a list; got str"),
    ({}, "interventions must be a list; got dict"),
    ([7], "an intervention's type must be one of .*'ablate'.*; got 7"),
    ([{"type": "explode"}], "must be one of .*; got 'explode'"),
    ([{"type": ["silence"]}], "must be one of"),
    ([{"type": "ablate"}], "needs .*'stack'.*; 'stack' is missing"),
    ([{"type": "break", "what": "everything"}], "what must be one of .*; got 'everything'"),
]
REFUSED += [
    ([{**of, name: value}], sentence)
    for of, name, value, sentence in (
        (SILENCE, "head", 1, "unknown field 'head' of 'ablate'; allowed: .*'heads'"),
        (SILENCE, "stack", "brain", "stack must be one of .*; got 'brain'"),
        (SILENCE, "layer", -1, f"{LAYER} -1"),
        (SILENCE, "layer", True, f"{LAYER} True"),
        (SILENCE, "heads", "01", "heads must be a list .*; got '01'"),
        (SILENCE, "heads", [0.5], "heads must be a list"),
        (SILENCE, "heads", [10**30], "heads must be a list"),
        (SILENCE, "kind", None, "kind must be one of"),
        (SILENCE, "by", "noise", r"by must be one of \['zero', 'mean'\]; got 'noise'"),
        (MASK, "without", "causal", "without must be a list"),
        (MASK, "without", ["all"], "without must be one of .*; got 'all'"),
        (MASK, "forbid", [[None, None]], "forbid must be a list of .* pairs"),
        (MASK, "allow", [[0, 1, 2]], "allow must be a list of .* pairs"),
        (MASK, "allow", [[0, 1]] * (MAX_CELLS + 1), "at most 4,096 pairs"),
        (PATCH, "text", " ", "a patch needs the text of the other run; got ' '"),
        (PATCH, "part", "soul", "part must be one of .*; got 'soul'"),
        (PATCH, "positions", 3, "positions must be a list"),
    )
]
NOT_THERE = [
    (Ablate("decoder", L, [0]), "no site .* its sites: decoder.0.self to decoder.1.self"),
    (Ablate("encoder", 0, [0]), "no site encoder.0.self"),
    (Ablate("decoder", 0, [H]), "heads must be a whole number from 0 to 2; got 3"),
    (EditMask("decoder", kind="cross"), "no site decoder.0.cross"),
    (EditMask("decoder", forbid=[(9, 0)]), "cells must be a whole number from 0 to 8"),
    (
        Patch("decoder", 0, [0], "Hello", heads=[4]),
        "number from 0 to 2; got 4",
    ),
    (Break("no-final-norm"), "no such part for 'no-final-norm'; allowed: .*no-scale"),
]


@pytest.mark.parametrize(("given", "sentence"), REFUSED)
def test_what_is_no_intervention_is_refused_with_a_sentence(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        interventions_of(given)


@pytest.mark.parametrize(("intervention", "sentence"), NOT_THERE)
def test_what_a_network_does_not_have_is_refused_with_what_it_has(intervention, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_all([intervention], config(norm="post"))


def test_forced_tokens_come_first_and_the_text_continues_after_them(tiny_model):
    intact = tiny_model.generate(TEXT, max_new_tokens=6)
    other = intact.steps[2].candidates[1].id
    taken = [*(step.token for step in intact.steps[:2]), other]
    last = tiny_model.config.vocab_size - 1
    assert tiny_model.generate(TEXT, max_new_tokens=1, forced_tokens=[last]).ids[-1] == last
    run = tiny_model.generate(TEXT, max_new_tokens=6, forced_tokens=taken)
    assert list(run.ids[run.n_prompt :][:3]) == taken
    assert run.steps[2].chosen.probability < intact.steps[2].chosen.probability
    with torch.no_grad():
        logits = tiny_model.network(torch.tensor([run.ids[: run.n_prompt + 3]]))[0, -1]
    logits[tiny_model.config.padding_id] = -torch.inf
    assert run.ids[run.n_prompt + 3] == int(logits.argmax())


def test_forcing_the_drawn_tokens_gives_the_same_sampled_text(tiny_model):
    settings = dict(max_new_tokens=9, temperature=1.3, seed=MAX_SEED)
    run = tiny_model.generate(TEXT, **settings)
    taken = [step.token for step in run.steps[:4]]
    assert tiny_model.generate(TEXT, forced_tokens=taken, **settings).ids == run.ids


def test_a_patch_reads_another_text(tiny_model, tiny_encoder, tiny_encoder_decoder):
    same = tiny_model.trace(TEXT, [Patch("decoder", 0, [1, 2], TEXT)])
    intact = tiny_model.trace(TEXT)
    assert torch.equal(same.trace.weights("decoder"), intact.trace.weights("decoder"))
    same = tiny_model.trace(TEXT, [Patch("decoder", 0, [1, 2], "The fox")])  # a shorter one
    torch.testing.assert_close(same.trace.weights("decoder"), intact.trace.weights("decoder"))
    model, other = tiny_encoder_decoder, "The fox sang"
    n_read = len(model.prepare(other).source)
    text = "One day"
    assert len(model.prepare(text).source) == n_read
    run = model.generate(
        text, max_new_tokens=6, interventions=[Patch("encoder", 1, range(n_read), other)]
    )
    assert run.text == model.generate(other, max_new_tokens=6).text
    assert run.text != model.generate(text, max_new_tokens=6).text
    for reader, stack in (
        (tiny_model, "decoder"), (tiny_encoder, "encoder"), (tiny_encoder_decoder, "encoder"),
    ):  # fmt: skip
        prepared = reader.prepare(other)
        n_read = len(prepared.source or prepared.ids)
        reader.trace(TEXT, [Patch(stack, 0, [n_read - 1], other)])
        with pytest.raises(
            ValueError, match=f"has places from 0 to {n_read - 1} there; got {n_read}"
        ):
            reader.trace(TEXT, [Patch(stack, 0, [n_read], other)])
    with pytest.raises(ValueError, match="reads at most 32"):
        tiny_model.generate(TEXT, interventions=[Patch("decoder", 0, [0], "Hello " * 40)])


def test_a_translators_batch_is_read_without_any_padding_mask(tiny_encoder_decoder):
    model, texts = tiny_encoder_decoder, ["Hello", "The fox lived at the edge"]
    altered = without_padding_mask(model.config)
    batch = model.translate_batch(texts, max_new_tokens=6, trace_interventions=altered)
    intact = model.translate_batch(texts, max_new_tokens=6)
    assert batch.outputs == intact.outputs  # what it translates to is not altered
    for kind in ("encoder.0.self", "decoder.0.cross"):
        assert bool(batch.trace[kind].allowed.all())
        assert not bool(intact.trace[kind].allowed.all())
