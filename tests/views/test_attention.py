"""Figures, by their data: the numbers are the trace's, and token text stays text."""

from __future__ import annotations

import numpy as np
import pytest
from pictured import relabelled

from transformer.views import attention_heatmap
from transformer.views.drawing import style

# --- the large heatmap ----------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["scores", "masked", "weights"])
@pytest.mark.parametrize("scale", ["linear", "sqrt", "log"])
@pytest.mark.parametrize(
    ("site", "head"), [("decoder.1.self", 0), ("decoder.0.self", "mean"), ("decoder.1.cross", 1)]
)
def test_cells_and_hover_are_the_traces_numbers(translation, site, head, stage, scale):
    trace = attention_heatmap(translation, site, head, stage=stage, scale=scale).data[0]
    record = translation.trace[site]
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
        assert (trace.colorbar.tickvals[-1], trace.colorbar.ticktext[-1]) == (1, "1")


def test_row_selects_the_sentence_of_a_batch(batch):
    for row in range(3):
        figure = attention_heatmap(batch, "decoder.0.self", 0, stage="scores", row=row)
        np.testing.assert_array_equal(
            figure.data[0].z, batch.trace["decoder.0.self"].scores[row, 0].numpy()
        )
        assert tuple(figure.layout.meta["key_labels"]) == batch.labels[row]


def test_cross_attention_has_target_rows_and_source_columns(translation):
    meta = attention_heatmap(translation, "decoder.1.cross", 1).layout.meta
    assert tuple(meta["query_labels"]) == translation.labels
    assert tuple(meta["key_labels"]) == translation.source_labels


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
