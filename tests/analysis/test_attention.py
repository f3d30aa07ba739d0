"""Numbers from a run's attention, against plain arithmetic: one row, the flow through the layers,
and a mask taken away."""

import dataclasses

import numpy as np
import pytest
import torch
from kit.client import asking
from kit.models import tiny
from kit.runs import planted
from torch.nn import functional as F

from transformer import Batch, Model, Trace
from transformer.analysis.attention_flow import flow_weights
from transformer.analysis.mask_removal import acting_masks, masks_of, without_mask
from transformer.analysis.row_arithmetic import TOLERANCE, row_arithmetic
from transformer.interventions.descriptions import without_padding_mask
from transformer.server.kept.store import RunStore
from transformer.views.attention.attention_math import attention_math
from transformer.views.attention.flow import attention_flow
from transformer.views.masks.masks import mask_removed, sentence_of
from transformer.views.registry import PICTURES


@pytest.mark.parametrize("site", ["encoder.1.self", "decoder.0.self", "decoder.1.cross"])
def test_every_row_agrees_with_the_networks_own_scores_weights_and_output(translation, site):
    record = translation.trace[site]
    mask = record.allowed[:, None]
    output = F.scaled_dot_product_attention(record.q, record.k, record.v, attn_mask=mask)
    for head in range(2):
        for query in range(record.pattern.shape[2]):
            found = row_arithmetic(translation, site, head, query)
            expected = record.pattern[0, head, query].numpy()
            scores = record.scores[0, head, query].numpy()
            allowed = record.allowed[0, query].numpy()
            np.testing.assert_array_equal(found.allowed, allowed)
            np.testing.assert_allclose(found.scores, scores, atol=1e-5)
            np.testing.assert_allclose(found.dots, scores * 8**0.5, atol=1e-5)
            np.testing.assert_allclose(found.exps, expected / expected.max(), atol=1e-6)
            np.testing.assert_allclose(found.weights, expected, atol=1e-6)
            np.testing.assert_allclose(found.output, output[0, head, query].numpy(), atol=1e-5)
            assert found.weight_difference == np.abs(found.weights - expected).max()
            assert found.agrees


def test_a_sentence_of_a_batch_has_rows_of_its_own(batch):
    found = row_arithmetic(batch, "decoder.1.self", 1, 3, row=1)
    expected = batch.trace["decoder.1.self"].pattern[1, 1, 3].numpy()
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)
    assert found.key_labels == batch.labels[1]


@pytest.mark.parametrize("changes", [{"positions": "alibi"}, {"score_cap": 0.5}])
def test_a_bias_and_a_cap_are_part_of_the_arithmetic(tokenizer, changes):
    run = tiny("tiny", "decoder", tokenizer, **changes).trace("the fox said hello")
    record = run.trace["decoder.1.self"]
    found = row_arithmetic(run, record.site, 0, 4)
    assert found.agrees
    products = (record.q[0, 0, 4] @ record.k[0, 0].T / 8**0.5).numpy()
    assert np.abs(products - record.scores[0, 0, 4].numpy()).max() > 0.1
    if "score_cap" in changes:
        assert (found.bias, found.cap) == (None, 0.5)
    else:  # farther keys lose more, each token the same
        steps = np.diff(found.bias[:5])
        np.testing.assert_allclose(steps, steps[0], atol=1e-5)
        assert found.bias[0] < found.bias[4] == pytest.approx(0, abs=1e-5)


def test_changed_numbers_are_reported_as_different(run):
    record = run.trace["decoder.0.self"]
    bent = record.pattern.clone()
    bent[0, 1, 4, 2] += 2 * TOLERANCE
    trace = Trace(records={record.site: dataclasses.replace(record, pattern=bent)})
    changed = dataclasses.replace(run, trace=trace)
    assert not row_arithmetic(changed, record.site, 1, 4).agrees
    assert row_arithmetic(changed, record.site, 1, 4).weight_difference > TOLERANCE
    assert row_arithmetic(changed, record.site, 1, 3).agrees


def test_a_row_with_nothing_allowed_is_uniform_as_in_the_network(run):
    record = run.trace["decoder.0.self"]
    trace = Trace(records={record.site: dataclasses.replace(
        record,
        mask=torch.zeros_like(record.allowed[:, None]),
        pattern=torch.full_like(record.pattern, 1 / len(run.ids)),
    )})  # fmt: skip
    found = row_arithmetic(dataclasses.replace(run, trace=trace), record.site, 0, 2)
    np.testing.assert_allclose(found.weights, 1 / len(run.ids))
    assert found.agrees


def test_a_record_without_queries_is_refused(run):
    bare = planted(run, 5, (3, 1), 0.9)
    with pytest.raises(ValueError, match=r"decoder\.1\.self holds no queries, keys and values"):
        row_arithmetic(bare, "decoder.1.self", 0, 0)


def test_the_figure_draws_the_keys_q_the_bars_and_the_output(run):
    figure = attention_math(run, "decoder.1.self", 1, 4)
    found = row_arithmetic(run, "decoder.1.self", 1, 4)
    keys, q, scores, weights, output = figure.data
    record = run.trace["decoder.1.self"]
    np.testing.assert_array_equal(keys.z, record.k[0, 1].numpy())
    np.testing.assert_array_equal(q.z, record.q[0, 1, 4:5].numpy())
    np.testing.assert_array_equal(scores.x, found.scores)
    np.testing.assert_array_equal(weights.x, found.weights)
    np.testing.assert_allclose(output.z[0], found.output, rtol=1e-6)
    assert [shape == "/" for shape in weights.marker.pattern.shape] == list(~found.allowed)
    for cells in (keys, q, output):
        assert cells.zmax == -cells.zmin == np.abs(cells.z).max()
    assert "layer 1, head 1, query 4" in figure.layout.title.text


@pytest.mark.parametrize(("which", "share"), [("rollout", 0.5), ("joint", 1.0)])
def test_a_flow_is_every_path_through_the_layers_summed(translation, which, share):
    """share: of a layer that its attention has; the rest stays where it is."""
    found, n = flow_weights(translation, "encoder", which), len(translation.source_labels)
    means = [translation.trace["encoder", at, "self"].pattern[0].mean(dim=0) for at in (0, 1)]
    layers = [flow_weights(translation, "encoder", layer=at) for at in (0, 1)]
    np.testing.assert_allclose(layers, np.stack(means), atol=1e-6)
    mean = flow_weights(translation, "encoder")
    np.testing.assert_allclose(mean, (means[0] + means[1]) / 2, atol=1e-6)

    def step(layer: int, to: int, source: int) -> float:
        return share * float(means[layer][to, source]) + (1 - share) * (to == source)

    for query in range(n):
        for key in range(n):
            expected = sum(step(1, query, via) * step(0, via, key) for via in range(n))
            assert found[query, key] == pytest.approx(expected, abs=1e-6)
            first = flow_weights(translation, "encoder", which, layer=0)[query, key]
            assert first == pytest.approx(step(0, query, key), abs=1e-6)
    parameters = {"which": which, "stack": "encoder", "scale": "linear", "numbers": True}
    sent = PICTURES["flow"].ask(translation, given=parameters)["weights"]
    drawn = attention_flow(translation, "encoder", which).data[0].customdata
    np.testing.assert_array_equal(sent, found.astype("float32"))
    np.testing.assert_array_equal(drawn, sent)


def test_a_row_of_a_batch_reads_no_padding(two_way):
    found = flow_weights(two_way, "encoder", "rollout", row=0)
    real = two_way.padding[0].numpy()
    assert (found[np.ix_(real, ~real)] == 0).all()
    z = attention_flow(two_way, "encoder", "rollout", row=0).data[0].z
    assert np.isnan(z[:, ~real]).all()


@pytest.fixture(scope="module")
def translated(tiny_encoder_decoder: Model) -> Batch:
    """Two sentences and their translations."""
    return tiny_encoder_decoder.translate_batch(["no", "the fox said hello"], max_new_tokens=6)


@pytest.mark.parametrize(("read", "site", "which"), [
    ("batch", "decoder.1.self", "padding"), ("batch", "decoder.1.self", "causal"),
    ("two_way", "encoder.1.self", "padding"), ("translated", "decoder.1.cross", "padding"),
])  # fmt: skip
def test_weights_are_a_softmax_over_what_the_other_mask_allows(read, site, which, request):
    """The reported freed weight is their average over the text without padding."""
    batch = request.getfixturevalue(read)
    record = batch.trace[site]
    is_text = batch.padding if read != "translated" else batch.target_padding
    for row, allowed in enumerate(record.allowed):
        left = torch.ones_like(allowed)
        if site == "decoder.1.self":
            left = left.tril() if which == "padding" else left & batch.padding[row]
        each = record.scores[row].double().masked_fill(~left, -torch.inf).softmax(-1)
        for head, weights in ((1, each[1]), ("mean", each.mean(dim=0))):
            found = without_mask(batch, row, site, head, which)
            np.testing.assert_allclose(found.weights, weights, atol=1e-9)
            (cells, *_) = mask_removed(batch, row, site, head, which).data
            np.testing.assert_allclose(cells.z, weights.masked_fill(~left, torch.nan), atol=1e-6)
            np.testing.assert_allclose(cells.customdata[..., 1], weights, atol=1e-6)
            freed = (weights * (left & ~allowed)).sum(dim=-1)[is_text[row]]
            assert found.mean_freed_weight == pytest.approx(float(freed.mean()), abs=1e-9)


def test_a_sentence_names_the_weight_of_the_freed_keys(batch, translated):
    found = without_mask(translated, 0, "decoder.1.cross", 1, "padding")
    assert f"{100 * found.mean_freed_weight:.1f} %" in sentence_of(found)
    assert f"over the {int(translated.target_padding[0].sum())} queries" in sentence_of(found)
    longest = without_mask(batch, 1, "decoder.0.self", 0, "padding")
    assert sentence_of(longest).startswith("Here the mask hides nothing")
    short = without_mask(batch, 2, "decoder.0.self", 1, "padding")
    assert short.freed_weight[~short.text].min() > 0
    assert sentence_of(short).startswith("Padding stands on the right")  # and no "0.0 %"


def test_only_masks_that_act_can_be_taken_away(two_way, translated):
    for batch, site in ((two_way, "encoder.0.self"), (translated, "decoder.0.cross")):
        with pytest.raises(ValueError, match=r"which must be one of \['padding'\]; got 'causal'"):
            mask_removed(batch, 0, site, 0, "causal")
    sites = translated.trace.sites
    config = translated.config
    assert {site.kind for site in sites if acting_masks(config, site) == ("padding",)} == {
        "self", "cross",
    }  # fmt: skip


def test_a_mask_that_the_network_went_without_is_not_taken_away_again(tiny_model, tiny_encoder):
    """The analysis reports the weight that padding received instead."""
    store = RunStore()
    for model, acting in ((tiny_model, ["causal"]), (tiny_encoder, [])):
        open_to_padding = without_padding_mask(model.config)
        read = model.trace(["the fox", "hello to the bird"], interventions=open_to_padding)
        site = read.trace.sites[0]
        assert masks_of(read, 0, site.stack)["padding"].all()
        parameters = {"batch": store.put(read), "row": 0, "site": str(site), "head": 0}
        answer = asking(store, "removal")(parameters | {"which": "padding"})
        n_text = int(read.padding[0].sum())
        on_padding = read.trace[site].pattern[0, 0, :n_text, n_text:].sum(dim=-1).mean()
        assert (answer["acting"], answer["which"]) == (acting, None)
        assert answer["share"] == pytest.approx(float(on_padding), abs=1e-6)
        says = f"{100 * on_padding:.1f} % of the weight goes to padding"
        if site.stack == "decoder":
            assert on_padding == 0  # hidden by the causal mask
            says = "the causal mask hides it already"
        assert says in answer["sentence"]
