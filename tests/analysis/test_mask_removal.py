"""A mask taken away: the same scores through a softmax without it, against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from asking import asking

from transformer import Batch, Model
from transformer.analysis.mask_removal import acting_masks, masks_of, without_mask
from transformer.interventions.descriptions import without_padding_mask
from transformer.ui.store import RunStore
from transformer.views import mask_removed
from transformer.views.masks.masks import sentence_of


@pytest.fixture(scope="module")
def translated(tiny_encoder_decoder: Model) -> Batch:
    """Two sentences and their translations."""
    return tiny_encoder_decoder.translate_batch(["no", "the fox said hello"], max_new_tokens=6)


def by_hand(scores: list[list[float]], allowed: list[list[bool]]) -> list[list[float]]:
    """Softmax of each row over its allowed cells, in plain Python."""
    rows = []
    for row, may in zip(scores, allowed, strict=True):
        parts = [math.exp(s) if open_ else 0.0 for s, open_ in zip(row, may, strict=True)]
        rows.append([part / sum(parts) for part in parts])
    return rows


@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize("which", ["padding", "causal"])
def test_weights_are_a_softmax_over_what_the_other_mask_allows(batch, row, which):
    length = batch.ids.shape[1]
    real = batch.padding[row].tolist()
    past = [[key <= query for key in range(length)] for query in range(length)]
    left = past if which == "padding" else [real] * length
    scores = batch.trace["decoder.1.self"].scores[row, 1].tolist()
    found = without_mask(batch, row, "decoder.1.self", 1, which)
    np.testing.assert_allclose(found.weights, by_hand(scores, left), atol=1e-9)
    z = mask_removed(batch, row, "decoder.1.self", 1, which).data[0].z
    np.testing.assert_array_equal(np.isnan(z), ~np.array(left))
    np.testing.assert_allclose(z[np.array(left)], found.weights[np.array(left)], atol=1e-6)


def test_with_its_mask_the_same_arithmetic_gives_the_networks_own_weights(batch):
    found = without_mask(batch, 1, "decoder.0.self", 0, "padding")  # the longest has no padding
    np.testing.assert_allclose(found.weights, found.real, atol=1e-6)
    assert not found.freed.any()
    assert found.mean_freed_weight == 0
    assert sentence_of(found).startswith("Here the padding mask hides nothing")


def test_the_share_is_the_mean_over_text_queries_alone(translated):
    found = without_mask(translated, 0, "decoder.1.cross", 1, "padding")
    weights = translated.trace["decoder.1.cross"].scores[0, 1].double().softmax(-1)
    padding = ~translated.padding[0]
    assert padding.any()
    shares = [
        float(row[padding].sum())
        for row, is_text in zip(weights, translated.target_padding[0].tolist(), strict=True)
        if is_text
    ]
    assert found.mean_freed_weight == pytest.approx(sum(shares) / len(shares), abs=1e-9)
    assert f"{100 * sum(shares) / len(shares):.1f} %" in sentence_of(found)
    assert f"over the {len(shares)} queries" in sentence_of(found)
    assert 0 < found.mean_freed_weight < 1


def test_the_causal_mask_hides_padding_from_text_already(batch):
    found = without_mask(batch, 2, "decoder.0.self", 1, "padding")
    assert found.mean_freed_weight == 0
    assert found.freed_weight[~found.text].min() > 0
    assert "the causal mask already hides it from the text" in sentence_of(found)


def test_the_difference_of_each_row_sums_to_0_and_has_a_scale_around_0(two_way):
    figure = mask_removed(two_way, 0, "encoder.1.self", 0, "padding", show="difference")
    cells = figure.data[0]
    np.testing.assert_allclose(cells.z.sum(axis=1), 0, atol=1e-6)
    real = two_way.trace["encoder.1.self"].pattern[0, 0].numpy()
    np.testing.assert_allclose(cells.z, cells.customdata[..., 0] - real, atol=1e-6)
    assert cells.zmax == -cells.zmin == pytest.approx(np.abs(cells.z).max())
    assert (cells.z[:, ~two_way.padding[0].numpy()] > 0).all()


def test_the_mean_of_heads_is_the_mean_of_their_weights(batch):
    each = [without_mask(batch, 0, "decoder.1.self", head, "causal").weights for head in (0, 1)]
    mean = without_mask(batch, 0, "decoder.1.self", "mean", "causal").weights
    np.testing.assert_allclose(mean, (each[0] + each[1]) / 2)


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
        asked = {"batch": store.put(read), "row": 0, "site": str(site), "head": 0}
        answers[site.stack] = asking(store, "removal")(asked | {"which": "padding"})
    assert (answers["decoder"]["acting"], answers["decoder"]["which"]) == (["causal"], "causal")
    assert answers["encoder"] == {"acting": [], "which": None}
