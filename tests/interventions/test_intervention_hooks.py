"""Altered networks against networks whose weights were altered by hand."""

import pytest
import torch
from kit.interventions import FAMILIES, T, attention_of, by_hand, close, embeddings_of, given, read
from kit.models import T_MAX, C, H, ids, network

from transformer.interventions.breaks import breaks_of
from transformer.interventions.descriptions import Ablate, Break, EditMask, Patch
from transformer.interventions.hooks import ActivationCache, hooks_of
from transformer.model.hooks import ForwardContext, Point
from transformer.model.sites import Site, sites_of
from transformer.model.trace import Trace

D = C // H


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_silenced_head_is_a_head_without_a_way_out(family, norm):
    model = network(family, norm=norm)
    text = given(model, 2)
    for site in sites_of(model.config):

        def alter(other, site=site):
            attention_of(other, site).output.weight[:, D : 3 * D] = 0  # heads 1 and 2 of 3

        hooks = hooks_of([Ablate(*site[:2], [1, 2], site.kind)], model.config)
        wanted = read(by_hand(model, alter), text)
        close(read(model, text, hooks=hooks), wanted)
        assert not torch.allclose(wanted, read(model, text), atol=1e-3)


def test_mean_ablation_in_a_decoder_uses_the_positions_so_far():
    model = network()
    text = given(model)
    layer = model.decoder.layers[1].self_attention

    def averaged(_module, args):
        (heads,) = args
        changed = heads.clone()
        for place in range(T):
            changed[:, place, :D] = heads[:, : place + 1, :D].mean(dim=1)
        return (changed,)

    handle = layer.output.register_forward_pre_hook(averaged)
    wanted = read(model, text)
    handle.remove()
    hooks = hooks_of([Ablate("decoder", 1, [0], by="mean")], model.config)
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


def test_without_the_final_norm_the_head_reads_the_last_residual_stream():
    model = network()
    text, trace = given(model), Trace()
    read(model, text, trace=trace)
    with torch.inference_mode():
        wanted = model.head(trace.residuals["decoder"][-1])
    hooks = hooks_of([Break("no-final-norm")], model.config)
    close(read(model, text, hooks=hooks), wanted)
    assert "no-final-norm" not in breaks_of(network(norm="post").config)


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
    for edit, wanted in (
        (some, allowed),
        (EditMask("decoder", 0, without=["causal"]), torch.ones_like(allowed)),
    ):
        read(model, text, hooks=hooks_of([edit], model.config), trace=trace)
        assert torch.equal(trace[site].allowed[0], wanted)
        least = torch.finfo(torch.float32).min  # a row with nothing allowed weighs all alike
        close(trace[site].pattern, intact[site].scores.masked_fill(~wanted, least).softmax(-1))
        other = trace[Site("decoder", 1, "self")].allowed[0]
        assert torch.equal(other, torch.ones(T, T).tril().bool())


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
