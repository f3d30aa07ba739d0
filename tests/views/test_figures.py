"""Heads, masks, candidates and what changes a token, by the figures' data."""

import base64
import io
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from kit.models import model_of, tiny
from kit.runs import planted, relabelled
from PIL import Image

from transformer import Break
from transformer.analysis.atlas import atlas
from transformer.analysis.mask_removal import masks_of, without_mask
from transformer.analysis.masked_token import MaskedToken
from transformer.views.attention.flow import attention_flow
from transformer.views.attention.grid import head_grid
from transformer.views.attention.heatmap import SCALES, attention_heatmap
from transformer.views.drawing import style
from transformer.views.export import packing
from transformer.views.learn import MAX_POINTS, learning_curves
from transformer.views.masks.masks import mask_figure, mask_removed, padded_batch
from transformer.views.prediction.masked import masked
from transformer.views.prediction.prediction import candidates
from transformer.views.registry import PICTURES

LOOKS = [("scores", "sqrt"), ("masked", "log"), *product(["weights"], SCALES)]


@pytest.mark.parametrize(("stage", "scale"), LOOKS)
@pytest.mark.parametrize(
    ("site", "head"), [("decoder.1.self", 0), ("decoder.0.self", "mean"), ("decoder.1.cross", 1)]
)
def test_cells_and_hover_are_the_traces_numbers(translation, site, head, stage, scale):
    figure = attention_heatmap(translation, site, head, stage=stage, scale=scale)
    (trace,), record = figure.data, translation.trace[site]
    scores, weights = (
        (each[0].mean(0) if head == "mean" else each[0, head]).numpy()
        for each in (record.scores, record.pattern)
    )
    allowed = record.allowed[0].numpy()
    for column, numbers in enumerate((scores, weights, allowed)):
        np.testing.assert_allclose(trace.customdata[..., column], numbers, atol=1e-6)
    coloured = {
        "linear": weights, "sqrt": np.sqrt(weights), "log": 1 + np.log10(weights.clip(1e-4)) / 4,
    }[scale]  # fmt: skip
    shown = np.ones_like(allowed) if stage == "scores" else allowed
    expected = coloured if stage == "weights" else scores
    assert trace.z.dtype == np.float32
    np.testing.assert_allclose(trace.z[shown], expected[shown], atol=1e-6)
    assert np.isnan(trace.z[~shown]).all()
    bound = float(np.abs(scores).max())  # the same before and after the mask
    ends = (0, 1) if stage == "weights" else (-bound, bound)
    assert (trace.zmin, trace.zmax) == pytest.approx(ends, rel=1e-6)
    if stage == "weights":
        if scale != "linear":  # whose ticks are the weights themselves
            assert (trace.colorbar.tickvals[-1], trace.colorbar.ticktext[-1]) == (1, "1")
        own = attention_heatmap(translation, site, head, scale=scale, range_="own").data[0]
        assert own.zmax == pytest.approx(coloured[shown].max(), rel=1e-6)
    cross, meta = site.endswith("cross"), figure.layout.meta
    assert tuple(meta["query_labels"]) == translation.labels
    assert tuple(meta["key_labels"]) == (translation.source_labels if cross else translation.labels)


def test_query_0_is_on_top_and_repeated_or_long_tokens_keep_their_places(run):
    figure = attention_heatmap(relabelled(run, ("w" * 300,)), "decoder.0.self", 0)
    layout, n = figure.layout, len(run.ids)
    assert layout.yaxis.range == (n - 0.5, -0.5)
    assert list(layout.xaxis.tickvals) == list(range(n))
    assert max(map(len, layout.xaxis.ticktext)) <= style.TICK_CHARACTERS + 2
    assert "w" * 59 + "…" in figure.data[0].text[0][0]
    named = attention_heatmap(run, "decoder.0.self", 0).data[0].text[2][1]
    assert named == f"{style.hover(run.labels[2])} reads {style.hover(run.labels[1])}"
    for length in (1, 32, 33, 65, 512):
        assert length / 32 <= len(style.axis_labels(["x"] * length)[0]) <= 32


def test_a_long_head_travels_as_queries_and_keys_that_give_its_scores(tiny_model):
    parameters = {"site": "decoder.1.self", "head": 1, "numbers": True}
    text, most = "the fox said " * 8, 40
    long = tiny_model.generate(text, max_new_tokens=most)
    answer = PICTURES["heatmap"].ask(long, given=parameters)
    assert "scores" not in answer
    assert "z" not in answer["figure"]["data"][0]
    scores = answer["queries"] @ answer["keys"].T / answer["keys"].shape[1] ** 0.5
    record = long.trace["decoder.1.self"]
    assert answer["shape"] == list(scores.shape) == list(record.scores.shape[2:])
    np.testing.assert_allclose(scores, record.scores[0, 1].numpy(), atol=1e-5)
    # An intervention may act between queries and scores.
    altered = tiny_model.generate(text, max_new_tokens=most, interventions=[Break("no-scale")])
    answer = PICTURES["heatmap"].ask(altered, given=parameters)
    np.testing.assert_array_equal(answer["scores"], altered.trace["decoder.1.self"].scores[0, 1])
    assert "queries" not in answer


def test_the_atlas_is_the_square_root_of_the_weights(run):
    small, weights = atlas(run, "decoder", "self"), run.trace.weights("decoder")[:, 0].numpy()
    assert small.pixels.dtype == small.masked.dtype == np.uint8
    np.testing.assert_allclose((small.pixels / 255.0) ** 2, weights, atol=0.004)
    allowed = run.trace["decoder.0.self"].allowed[0].numpy()
    np.testing.assert_array_equal(small.masked, [~allowed] * 2)


@pytest.mark.parametrize("length", [64, 65, 128, 200])
def test_a_single_bright_cell_survives_the_reduction(run, length):
    for cell in ((length - 1, 0), (length // 2, length // 3), (length - 1, length - 1)):
        small = atlas(planted(run, length, cell, 0.81), "decoder", "self")
        assert small.pixels.shape == (2, 2, 64, 64)
        assert small.pixels[1, 1].max() == round(255 * 0.9)
        assert (small.pixels[1, 1] > 100).sum() == 1
        assert small.pixels[0].max() == round(255 * 0.01)
    if length % 64 == 0:
        np.testing.assert_array_equal(small.masked, [np.triu(np.ones((64, 64)), 1)] * 2)


def test_the_head_grid_shows_each_head_at_its_place(run):
    figure, small = head_grid(run, "decoder", "self"), atlas(run, "decoder", "self")
    png = base64.b64decode(figure.data[0].source.split(",", 1)[1])
    pixels = np.asarray(Image.open(io.BytesIO(png)))  # places in the palette
    side, pointer, shown = small.pixels.shape[-1], figure.data[1], small.masked[0] == 0
    for layer, head in np.ndindex(2, 2):
        top, left = (
            round(at - (side - 1) / 2) for at in (pointer.y[head], pointer.x[layer])
        )  # fmt: skip
        tile = pixels[top : top + side, left : left + side]
        np.testing.assert_array_equal(tile[shown], np.maximum(small.pixels[layer, head], 1)[shown])
        assert not tile[~shown].any()
        assert list(pointer.customdata[head][layer]) == [layer, head]


def test_mask_figures_fill_the_allowed_cells_only(batch):
    found = masks_of(batch, 2)
    np.testing.assert_array_equal(found["padding"] & found["causal"], found["combined"])
    for which, allowed in found.items():
        figure = mask_figure(batch, 2, which)
        np.testing.assert_array_equal(figure.data[0].z == 1, allowed)
        np.testing.assert_array_equal(np.isnan(figure.data[0].z), ~allowed)
        assert which.capitalize() in figure.layout.title.text
    figure = padded_batch(batch)
    assert (figure.layout.xaxis.tick0, figure.layout.xaxis.dtick) == (0, 1)  # whole positions
    np.testing.assert_array_equal(~np.isnan(figure.data[0].z), batch.padding.numpy())


@pytest.mark.parametrize("stack", ["decoder", "encoder"])
def test_each_layer_shows_the_window_of_its_own(tokenizer, stack):
    config = tiny("tiny", stack, tokenizer).config.replace(
        window=2, layer_types=("full_attention", "sliding_attention")
    )
    batch = model_of("windowed", config, tokenizer).trace(["the fox said", "the"])
    for layer in (0, 1):
        found = masks_of(batch, 0, layer=layer)
        np.testing.assert_array_equal(found["padding"] & found["causal"], found["combined"])
        shown = mask_figure(batch, 0, "causal", layer=layer).data[0].z == 1
        assert (shown.sum(axis=1).max() == (2 if stack == "decoder" else 3)) == (layer == 1)
        place = f"{stack}.{layer}.self"
        if stack == "decoder":
            said = mask_removed(batch, 0, place, 0, "causal").layout.title.subtitle.text
            assert said.endswith("the future and keys outside the window") == (layer == 1)
            titled = mask_figure(batch, 0, "causal", layer=layer).layout.title.text
            assert titled.startswith("Causal mask and window:") == (layer == 1)
        freed = without_mask(batch, 0, place, 0, "padding").freed
        np.testing.assert_array_equal(freed, found["causal"] & ~found["padding"])


@pytest.mark.parametrize("kinds", [("full", "sliding"), ("sliding", "full"), ("sliding",)])
def test_pictures_of_all_layers_hide_what_each_layer_does_not_read(tokenizer, kinds):
    changes = dict(window=2, layer_types=tuple(f"{kind}_attention" for kind in kinds))
    run = tiny("windowed", "decoder", tokenizer, **changes).trace("the fox said hello to the dog")
    weights = run.trace.weights("decoder")[:, 0].numpy()  # exactly 0 where nothing may be read
    small = atlas(run, "decoder", "self")
    np.testing.assert_allclose((small.pixels / 255.0) ** 2, weights, atol=0.004)
    np.testing.assert_array_equal(small.masked, (weights == 0).all(axis=1))
    own = (weights > 0).any(axis=1)
    products = {"rollout": (own[1] | np.eye(len(own[1]), dtype=bool)) @ own[0],
                "joint": own[1] @ own[0], "mean": own.any(axis=0)}  # fmt: skip
    for which, reached in products.items():
        cells = attention_flow(run, "decoder", which).data[0].z
        np.testing.assert_array_equal(~np.isnan(cells), reached)
        np.testing.assert_allclose(np.nan_to_num(cells).sum(axis=1), 1, atol=1e-5)
    cells = attention_flow(run, "decoder", layer=1).data[0].z
    np.testing.assert_array_equal(~np.isnan(cells), own[1])
    used = PICTURES["used_mask"].ask(run, given={"site": "decoder.1.self"})
    assert used["window"] == (2 if kinds[-1] == "sliding" else None)


def test_candidates_are_the_steps_own_numbers(run):
    step = run.steps[2]
    figure = candidates(run, 2)
    shown = list(step.candidates[:10])
    shown += [step.chosen] if step.chosen not in shown else []
    before, after = figure.data
    assert list(before.x) == [c.probability for c in shown]
    assert list(after.x) == [c.sampling_probability for c in shown]
    marked = [place for place, text in enumerate(figure.layout.yaxis.ticktext) if "▶" in text]
    assert marked == [shown.index(step.chosen)]
    assert "top-k 5" in figure.layout.title.subtitle.text
    step = next(s for s in run.steps if s.candidates[0].id != s.token)
    figure = candidates(run, step.index, limit=1)  # the chosen one is added
    assert len(figure.data[0].x) == 2
    assert "▶" in figure.layout.yaxis.ticktext[1]


def test_paired_bars_are_probabilities_from_both_sides_and_from_the_left():
    shares = {"probabilities": (0.7, 0.3, 0.0004), "from_left": (0.2, 0.1, 0.0)}
    token = MaskedToken(
        position=1, token=4, label="cat", ids=(9, 4, 2), labels=("dog", "cat", "<b>"), **shares
    )
    both, left = masked(token).data
    assert [tuple(bars.x) for bars in (both, left)] == list(shares.values())
    assert list(both.text) == ["70.0%", "30.0%", "&lt;0.1%"]
    ticks = masked(token).layout.yaxis.ticktext
    assert [("▶" in text) for text in ticks] == [False, True, False]


def test_curves_are_the_losses_at_their_steps():
    losses = [10.0 - 0.01 * step for step in range(1, 2 * MAX_POINTS + 1)]
    loss, share = learning_curves(losses, [1, 500], [0.1, 0.9], total=1000, at=500).data
    assert len(loss.x) <= MAX_POINTS
    assert [losses[step - 1] for step in loss.x] == list(loss.y)
    assert (list(share.x), list(share.y)) == ([1, 500], [0.1, 0.9])


def test_labels_are_cut_and_left_out_where_no_room_is_left():
    assert [style.shorten("abcdef", limit) for limit in (6, 5, 1)] == ["abcdef", "abcd…", "…"]
    assert style.axis_labels(["a"] * 32)[0] == list(range(32))
    assert style.axis_labels(["a"] * 33)[0] == list(range(0, 33, 2))
    # By hand, in px: a capital 10, a wide letter 13, an ellipsis 13, a Chinese one 18, others 8.
    for text, room, fitted in (
        ("AAAA", 40, ("AAAA", 40)), ("AAAA", 39, ("AA…", 33)), ("AAAA", 32, ("A…", 23)),
        ("WA猫i", 49, ("WA猫i", 49)), ("<", 8, ("<", 8)), ("AAAA", 1, ("…", 13)),
    ):  # fmt: skip
        assert style.fitted(text, room) == (style.label(fitted[0]), fitted[1])
    assert [style.bound_of(np.array(each)) for each in ([0.0, 0.0], [1, -3, np.nan])] == [1.0, 3.0]


@settings(max_examples=20)
@given(hnp.arrays(np.float32, 20, elements=st.floats(-1e6, 1e6, width=32)))
def test_packed_numbers_are_right_to_a_131072nd_and_end_in_zeros(values):
    values[np.abs(values) < 1e-30] = 0
    rounded = packing.rounded(values)
    assert (np.abs(rounded - values) <= np.abs(values) * 2.0**-17).all()
    assert (rounded.view(np.uint32) % 128 == 0).all()
