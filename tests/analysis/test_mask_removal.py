"""A mask taken away: the same scores through a softmax without it, against plain arithmetic."""

import numpy as np
import pytest
import torch
from kit.client import asking

from transformer import Batch, Model
from transformer.analysis.mask_removal import acting_masks, masks_of, without_mask
from transformer.interventions.descriptions import without_padding_mask
from transformer.ui.store import RunStore
from transformer.views.masks.masks import mask_removed, sentence_of


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
            z = mask_removed(batch, row, site, head, which).data[0].z
            np.testing.assert_allclose(z, weights.masked_fill(~left, torch.nan), atol=1e-6)
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
    assert "the causal mask already hides it from the text" in sentence_of(short)


def test_the_difference_has_a_scale_around_0(two_way):
    cells = mask_removed(two_way, 0, "encoder.1.self", 0, "padding", show="difference").data[0]
    real = two_way.trace["encoder.1.self"].pattern[0, 0].numpy()
    np.testing.assert_allclose(cells.z, cells.customdata[..., 0] - real, atol=1e-6)
    assert cells.zmax == -cells.zmin == pytest.approx(np.abs(cells.z).max())


def test_only_masks_that_act_can_be_taken_away(two_way, translated):
    for batch, site in ((two_way, "encoder.0.self"), (translated, "decoder.0.cross")):
        with pytest.raises(ValueError, match=r"which must be one of \['padding'\]; got 'causal'"):
            mask_removed(batch, 0, site, 0, "causal")
    sites = translated.trace.sites
    assert {site.kind for site in sites if acting_masks(site) == ("padding",)} == {"self", "cross"}


def test_a_mask_that_the_network_went_without_is_not_taken_away_again(tiny_model, tiny_encoder):
    store = RunStore()
    answers = {}
    for model in (tiny_model, tiny_encoder):
        open_to_padding = without_padding_mask(model.config)
        read = model.trace(["the fox", "hello to the bird"], interventions=open_to_padding)
        site = read.trace.sites[0]
        assert masks_of(read, 0, site.stack)["padding"].all()
        parameters = {"batch": store.put(read), "row": 0, "site": str(site), "head": 0}
        answers[site.stack] = asking(store, "removal")(parameters | {"which": "padding"})
    assert (answers["decoder"]["acting"], answers["decoder"]["which"]) == (["causal"], "causal")
    assert answers["encoder"] == {"acting": [], "which": None}
