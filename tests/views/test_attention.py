"""Figures, by their data: the numbers are the trace's, and token text stays text."""

from __future__ import annotations

import numpy as np
import pytest
from pictured import relabelled

from transformer.views import attention_heatmap
from transformer.views.drawing import style

# --- the large heatmap ----------------------------------------------------------------------------


@pytest.mark.parametrize("head", [0, 1])
def test_weights_are_the_traces_own_and_masked_cells_are_left_out(run, head):
    figure = attention_heatmap(run, ("decoder", 1, "self"), head)
    record = run.trace["decoder.1.self"]
    allowed = record.allowed[0].numpy()
    z = figure.data[0].z
    assert z.dtype == np.float32
    np.testing.assert_array_equal(z[allowed], record.pattern[0, head].numpy()[allowed])
    assert np.isnan(z[~allowed]).all()
    assert (~allowed).sum() == len(run.ids) * (len(run.ids) - 1) // 2
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 1)


def test_scores_fill_every_cell_and_masked_scores_only_the_allowed_ones(run):
    record = run.trace["decoder.0.self"]
    scores, allowed = record.scores[0, 1].numpy(), record.allowed[0].numpy()
    before = attention_heatmap(run, "decoder.0.self", 1, stage="scores").data[0]
    after = attention_heatmap(run, "decoder.0.self", 1, stage="masked").data[0]
    np.testing.assert_array_equal(before.z, scores)
    np.testing.assert_array_equal(after.z[allowed], scores[allowed])
    assert np.isnan(after.z[~allowed]).all()
    bound = float(np.abs(scores).max())
    assert (before.zmin, before.zmax) == (after.zmin, after.zmax) == (-bound, bound)


@pytest.mark.parametrize("scale", ["linear", "sqrt", "log"])
@pytest.mark.parametrize("stage", ["scores", "masked", "weights"])
def test_hover_numbers_are_true_whatever_is_coloured(run, stage, scale):
    figure = attention_heatmap(run, "decoder.1.self", 0, stage=stage, scale=scale)
    record = run.trace["decoder.1.self"]
    numbers = figure.data[0].customdata
    np.testing.assert_array_equal(numbers[..., 0], record.scores[0, 0].numpy())
    np.testing.assert_array_equal(numbers[..., 1], record.pattern[0, 0].numpy())
    np.testing.assert_array_equal(numbers[..., 2] == 1, record.allowed[0].numpy())


def test_scales_keep_the_ends_and_the_order_of_weights(run):
    weights = run.trace["decoder.1.self"].pattern[0, 0].numpy()
    allowed = run.trace["decoder.1.self"].allowed[0].numpy()
    for scale, expected in (
        ("sqrt", np.sqrt(weights)),
        ("log", 1 + np.log10(weights.clip(1e-4)) / 4),
    ):
        trace = attention_heatmap(run, "decoder.1.self", 0, scale=scale).data[0]
        np.testing.assert_allclose(trace.z[allowed], expected[allowed], atol=1e-6)
        assert (trace.zmin, trace.zmax) == (0, 1)
        assert trace.colorbar.ticktext[-1] == "1"
        assert trace.colorbar.tickvals[-1] == 1


def test_mean_head_is_the_average(run):
    record = run.trace["decoder.0.self"]
    trace = attention_heatmap(run, "decoder.0.self", "mean", stage="scores").data[0]
    np.testing.assert_allclose(trace.z, record.scores[0].mean(0).numpy(), atol=1e-6)
    np.testing.assert_allclose(
        trace.customdata[..., 1], record.pattern[0].mean(0).numpy(), atol=1e-6
    )


def test_row_selects_the_sentence_of_a_batch(batch):
    for row in range(3):
        figure = attention_heatmap(batch, "decoder.0.self", 0, stage="scores", row=row)
        np.testing.assert_array_equal(
            figure.data[0].z, batch.trace["decoder.0.self"].scores[row, 0].numpy()
        )
        assert tuple(figure.layout.meta["key_labels"]) == batch.labels[row]


def test_cross_attention_has_target_rows_and_source_columns(translation):
    figure = attention_heatmap(translation, "decoder.1.cross", 1)
    assert tuple(figure.layout.meta["query_labels"]) == translation.labels
    assert tuple(figure.layout.meta["key_labels"]) == translation.source_labels
    assert figure.data[0].z.shape == (len(translation.labels), len(translation.source_labels))
    np.testing.assert_array_equal(
        figure.data[0].z, translation.trace["decoder.1.cross"].pattern[0, 1].numpy()
    )


def test_query_0_is_on_top_and_cells_are_square(run):
    layout = attention_heatmap(run, "decoder.0.self", 0).layout
    n = len(run.ids)
    assert layout.yaxis.range == (n - 0.5, -0.5)
    assert layout.xaxis.range == (-0.5, n - 0.5)
    assert layout.yaxis.scaleanchor == "x"
    assert layout.yaxis.title.text.startswith("query")
    assert layout.xaxis.title.text.startswith("key")
    assert "layer 0, head 0" in layout.title.text


def test_repeated_tokens_keep_their_own_places(run):
    figure = attention_heatmap(relabelled(run, ("the",)), "decoder.0.self", 0)
    n = len(run.ids)
    assert list(figure.layout.xaxis.tickvals) == list(range(n))
    assert len(set(figure.layout.xaxis.ticktext)) == 1
    assert figure.data[0].z.shape == (n, n)


def test_an_axis_has_at_most_32_ticks(run):
    for length in (1, 31, 32, 33, 64, 65, 512):
        places, texts = style.axis_labels([str(n) for n in range(length)])
        assert len(places) == len(texts) <= 32
        assert [text.strip("\u2068\u2069") for text in texts] == [str(p) for p in places]
    assert len(style.axis_labels(["a"] * 32)[0]) == 32


# --- token text is hostile ------------------------------------------------------------------------


def test_long_tokens_are_cut_on_axes_and_longer_in_the_hover(run):
    figure = attention_heatmap(relabelled(run, ("w" * 300,)), "decoder.0.self", 0)
    assert max(map(len, figure.layout.xaxis.ticktext)) <= style.TICK_CHARACTERS + 2
    assert "w" * 59 + "…" in figure.data[0].text[0][0]
