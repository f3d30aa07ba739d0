"""Interventions as plain values, and altered networks against networks whose weights were altered
by hand."""

import dataclasses
import json

import pytest
import torch
from kit.interventions import FAMILIES, T, attention_of, by_hand, close, embeddings_of, given, read
from kit.models import T_MAX, C, H, L, config, ids, network

from transformer import Ablate, Break, EditMask, Patch, Site, Trace
from transformer.interventions.breaks import breaks_of
from transformer.interventions.checks import MAX_CELLS
from transformer.interventions.descriptions import (
    check_all,
    interventions_of,
    to_dict,
    without_padding_mask,
)
from transformer.interventions.hooks import ActivationCache, hooks_of
from transformer.model.blocks import FeedForward
from transformer.model.hooks import ForwardContext, Point
from transformer.model.sites import sites_of
from transformer.runs.request import MAX_SEED

D = C // H


@pytest.mark.parametrize("positions", [None, [1, T - 1]])
def test_mean_ablation_in_a_decoder_uses_the_positions_so_far(positions):
    model = network()
    text = given(model)
    layer = model.decoder.layers[1].self_attention

    def averaged(_module, args):
        (heads,) = args
        changed = heads.clone()
        for place in range(T) if positions is None else positions:
            changed[:, place, :D] = heads[:, : place + 1, :D].mean(dim=1)
        return (changed,)

    handle = layer.output.register_forward_pre_hook(averaged)
    wanted = read(model, text)
    handle.remove()
    hooks = hooks_of([Ablate("decoder", 1, [0], by="mean", positions=positions)], model.config)
    close(read(model, text, hooks=hooks), wanted)


def test_an_encoders_mean_is_over_the_whole_text_and_leaves_padding_out():
    model = network("encoder")
    short = ids(1, 4)
    padded = torch.cat([short, torch.zeros(1, 3, dtype=torch.long)], dim=1)

    def averaged(_module, args):
        mean = args[0][:, :, 2 * D :].mean(dim=1, keepdim=True)
        return (torch.cat([args[0][:, :, : 2 * D], mean.expand(-1, 4, -1)], dim=2),)

    handle = model.encoder.layers[0].self_attention.output.register_forward_pre_hook(averaged)
    wanted = read(model, (short,))
    handle.remove()
    hooks = hooks_of([Ablate("encoder", 0, [2], by="mean")], model.config)
    is_text = torch.arange(7)[None] < 4
    close(read(model, (short,), hooks=hooks), wanted)
    close(model(padded, is_text=is_text, hooks=hooks)[:, :4], wanted)


QUERIES = {
    "no-scale": D**0.5, "model-scale": (D / C) ** 0.5, "uniform-attention": 0,
    "hard-attention": 1e6,
}  # fmt: skip


@pytest.mark.parametrize("what", QUERIES)
@pytest.mark.parametrize("family", FAMILIES)
def test_another_divisor_or_softmax_is_another_size_of_the_queries(family, what):
    model, trace = network(family), Trace()
    text = given(model)

    def alter(other):
        for site in sites_of(other.config):
            attention_of(other, site).query.weight *= QUERIES[what]
            attention_of(other, site).query.bias *= QUERIES[what]

    hooks = hooks_of([Break(what)], model.config)
    close(read(model, text, hooks=hooks, trace=trace), read(by_hand(model, alter), text))
    if what == "hard-attention":
        assert all(set(record.pattern.unique().tolist()) == {0.0, 1.0} for record in trace)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_switched_off_sublayer_adds_its_output_bias_or_nothing(family):
    model = network(family)
    text = given(model)

    def no_heads(other):
        for site in sites_of(other.config):
            attention_of(other, site).output.weight.zero_()

    def no_feed_forward(other):
        for module in other.modules():
            if isinstance(module, FeedForward):
                module.contract.weight.zero_()
                module.contract.bias.zero_()

    for what, change in {"no-attention": no_heads, "no-feed-forward": no_feed_forward}.items():
        wanted = read(by_hand(model, change), text)
        close(read(model, text, hooks=hooks_of([Break(what)], model.config)), wanted)


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_positions_and_shuffled_ones_are_another_table(family, positions):
    model = network(family, positions=positions)
    text = given(model)
    order = torch.randperm(T_MAX, generator=torch.Generator().manual_seed(0))

    def set_tables(other, change):
        for embedding in embeddings_of(other):
            table = embedding.positions.matrix
            table.copy_(change(table.clone()))

    tables = {"no-positions": torch.zeros_like, "shuffled-positions": lambda table: table[order]}
    for what, change in tables.items():
        wanted = read(by_hand(model, lambda other, c=change: set_tables(other, c)), text)
        close(read(model, text, hooks=hooks_of([Break(what)], model.config)), wanted)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_without_a_residual_each_sublayer_replaces_what_it_read(norm):
    model = network(norm=norm)
    (text,) = given(model)
    context = ForwardContext(causal=True)
    with torch.inference_mode():
        x = model.embedding(text, torch.arange(T))
        for layer in model.decoder.layers:
            for residual, sublayer in (
                (layer.self_residual, lambda h, layer=layer: layer.self_attention(h, context)),
                (layer.feed_forward_residual, layer.feed_forward),
            ):
                x = sublayer(residual.norm(x)) if norm == "pre" else residual.norm(sublayer(x))
        wanted = model.head(model.decoder.end(x))
    close(read(model, (text,), hooks=hooks_of([Break("no-residual")], model.config)), wanted)


@pytest.mark.parametrize(
    ("positions", "offered"),
    [
        ("learned", {"no-positions", "shuffled-positions"}),
        ("rotary", {"no-rotation", "shuffled-positions"}),
        ("alibi", {"shuffled-positions"}),
    ],
)
def test_the_breaks_of_positions_are_those_of_their_kind(positions, offered):
    of_positions = {"no-positions", "no-rotation", "shuffled-positions"}
    assert offered == of_positions & {*breaks_of(config("decoder", positions=positions))}


def test_without_the_final_norm_the_head_reads_the_last_residual_stream():
    model = network()
    text, trace = given(model), Trace()
    read(model, text, trace=trace)
    with torch.inference_mode():
        wanted = model.head(trace.residuals["decoder"][-1])
    hooks = hooks_of([Break("no-final-norm")], model.config)
    close(read(model, text, hooks=hooks), wanted)
    assert "no-final-norm" not in breaks_of(network(norm="post").config)
    assert "no-scale" not in breaks_of(network(score_scale=1.0).config)  # GPT-Neo has none to lose


def test_heads_share_one_key_head_where_there_are_two():
    """And with one they do already."""
    found = [breaks_of(network(n_heads=2, n_key_heads=n).config) for n in (1, 2)]
    assert ["one-key-head" in breaks for breaks in found] == [False, True]


def test_cells_rows_and_columns_of_a_mask_are_forbidden_and_allowed():
    model, site = network(), Site("decoder", 0, "self")
    text, intact, trace = given(model), Trace(), Trace()
    read(model, text, trace=intact)
    allowed = torch.ones(T, T).tril().bool()
    allowed[2, 5] = True
    allowed[3, :] = True
    allowed[:, 1] = False
    allowed[4, :] = False
    some = EditMask("decoder", 0, allow=[(2, 5), (3, None)], forbid=[(None, 1), (4, None)])
    intact_mask = torch.ones(T, T).tril().bool()
    one_more, one_less = intact_mask.clone(), intact_mask.clone()
    one_more[2, 5], one_less[4, 1] = True, False
    for edit, wanted in (
        (some, allowed),
        (EditMask("decoder", 0, allow=[(2, 5)]), one_more),
        (EditMask("decoder", 0, forbid=[(4, 1)]), one_less),
        (EditMask("decoder", 0, without=["causal"]), torch.ones_like(allowed)),
    ):
        read(model, text, hooks=hooks_of([edit], model.config), trace=trace)
        assert torch.equal(trace[site].allowed[0], wanted)
        least = torch.finfo(torch.float32).min  # a row with nothing allowed weighs all alike
        close(trace[site].pattern, intact[site].scores.masked_fill(~wanted, least).softmax(-1))
        other = trace[Site("decoder", 1, "self")].allowed[0]
        assert torch.equal(other, intact_mask)


def test_nothing_to_do_is_the_intact_network():
    cache, model = ActivationCache(), network()
    read(model, given(model), hooks=[cache])
    idle = [Ablate("decoder", 0, []), EditMask("decoder"), Patch("decoder", 0, [], "other")]
    for none in ([], idle):
        assert hooks_of(none, model.config, {"other": cache}) == ()


def test_a_silenced_head_stays_silent_under_a_patch():
    model, cache = network(), ActivationCache()
    text, other = given(model), given(model)
    read(model, other, hooks=[cache])
    patch = Patch("decoder", 1, range(T), "other", part="z", heads=[1])
    silence = Ablate("decoder", 1, [1])
    wanted = read(model, text, hooks=hooks_of([silence], model.config))
    assert not torch.allclose(
        read(model, text, hooks=hooks_of([patch], model.config, {"other": cache})), wanted
    )
    for both in ([silence, patch], [patch, silence]):
        close(read(model, text, hooks=hooks_of(both, model.config, {"other": cache})), wanted)


def test_patched_heads_are_the_chosen_ones_only():
    model, cache, theirs = network(), ActivationCache(), ActivationCache()
    text, other = given(model), given(model)
    read(model, text, hooks=[cache])
    read(model, other, hooks=[theirs])
    point = Point("z", "decoder", 1, "self")
    mixed = cache.activations[point].clone()
    mixed[:, 1, 5] = theirs.activations[point][:, 1, 5]

    def swapped(_module, _args):
        return (mixed.transpose(1, 2).flatten(2),)

    handle = model.decoder.layers[1].self_attention.output.register_forward_pre_hook(swapped)
    wanted = read(model, text)
    handle.remove()
    patch = Patch("decoder", 1, [5], "other", part="z", heads=[1])
    close(read(model, text, hooks=hooks_of([patch], model.config, {"other": theirs})), wanted)


HIDDEN = dict(forbid=[(1, None), (None, 2)], allow=[(0, 3)])
CROSS = "cross-attention layer 0, head 1 replaced by its mean"
ENCODER = "mask of encoder self-attention, layer 1: without the padding mask"
DECODER = "mask of decoder self-attention: without the causal mask, 1 allowed, 2 forbidden"
ALL = [  # each, and how people read it
    (Ablate("decoder", 1, [2, 0]), "layer 1, heads 0, 2 switched off"),
    (Ablate("decoder", 0, heads=[1], kind="cross", by="mean"), CROSS),
    (Ablate("decoder", 1, part="mlp_out"), "layer 1, feed-forward switched off"),
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
    ([7], "an intervention's type must be one of .*'ablate'.*; got 7"),
    ([{"type": "explode"}], "must be one of .*; got 'explode'"),
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
        (SILENCE, "heads", [10**30], "heads must be a list"),
        (SILENCE, "by", "noise", r"by must be one of \['zero', 'mean'\]; got 'noise'"),
        (MASK, "without", "causal", "without must be a list"),
        (MASK, "without", ["all"], "without must be one of .*; got 'all'"),
        (MASK, "forbid", [[None, None]], "forbid must be a list of .* pairs"),
        (MASK, "allow", [[0, 1, 2]], "allow must be a list of .* pairs"),
        (MASK, "allow", [[0, 1]] * (MAX_CELLS + 1), "at most 4,096 pairs"),
        (PATCH, "text", " ", "a patch needs the text of the other run; got ' '"),
        (PATCH, "part", "soul", "part must be one of .*; got 'soul'"),
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
        n_own = len(reader.prepare(TEXT).source or reader.prepare(TEXT).ids)
        reader.trace(TEXT, [Patch(stack, 0, [min(n_own, n_read) - 1], other)])
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
