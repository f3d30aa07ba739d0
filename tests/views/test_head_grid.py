"""All heads at once, by the data: the atlas and the grid show every head's own weights."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from pictured import planted, sampled_run
from PIL import Image

from transformer import Model, Run
from transformer.interventions.descriptions import Break
from transformer.views import PICTURES, atlas, head_grid


@pytest.fixture(scope="module")
def run(tiny_model: Model) -> Run:
    """Given tokens and six generated ones."""
    return sampled_run(tiny_model)


# --- one head -------------------------------------------------------------------------------------


def test_a_long_head_travels_as_queries_and_keys_that_give_its_scores(tiny_model):
    asked = {"site": "decoder.1.self", "head": 1, "numbers": True}
    text, most = "the fox said " * 8, 40
    long = tiny_model.generate(text, max_new_tokens=most)
    answer = PICTURES["heatmap"].ask(long, given=asked, item=long)
    assert not {"figure", "scores"} & answer.keys()
    scores = answer["queries"] @ answer["keys"].T / answer["keys"].shape[1] ** 0.5
    record = long.trace["decoder.1.self"]
    assert answer["shape"] == list(scores.shape) == list(record.scores.shape[2:])
    np.testing.assert_allclose(scores, record.scores[0, 1].numpy(), atol=1e-5)
    # What altered the network may stand between its queries and its scores.
    altered = tiny_model.generate(text, max_new_tokens=most, interventions=[Break("no-scale")])
    answer = PICTURES["heatmap"].ask(altered, given=asked, item=altered)
    np.testing.assert_array_equal(answer["scores"], altered.trace["decoder.1.self"].scores[0, 1])
    assert "queries" not in answer


# --- all heads ------------------------------------------------------------------------------------


def test_the_atlas_is_the_square_root_of_the_weights(run):
    small = atlas(run, "decoder", "self")
    weights = run.trace.weights("decoder")[:, 0].numpy()
    assert small.pixels.shape == weights.shape
    assert small.pixels.dtype == small.masked.dtype == np.uint8
    np.testing.assert_allclose((small.pixels / 255.0) ** 2, weights, atol=0.004)
    allowed = run.trace["decoder.0.self"].allowed[0].numpy()
    np.testing.assert_array_equal(small.masked, ~allowed)


@pytest.mark.parametrize("length", [64, 65, 127, 200, 512])
def test_a_single_bright_cell_survives_the_reduction(run, length):
    for cell in ((length - 1, 0), (length // 2, length // 3), (length - 1, length - 1)):
        small = atlas(planted(run, length, cell, 0.81), "decoder", "self")
        assert small.pixels.shape == (2, 2, 64, 64)
        assert small.pixels[1, 1].max() == round(255 * 0.9)
        assert (small.pixels[1, 1] > 100).sum() == 1
        assert small.pixels[0].max() == round(255 * 0.01)


def test_a_reduced_pixel_is_masked_only_if_all_its_cells_are(run):
    small = atlas(planted(run, 128, (5, 5), 0.5), "decoder", "self")
    np.testing.assert_array_equal(small.masked, np.triu(np.ones((64, 64)), 1))


def test_the_head_grid_shows_each_head_at_its_place(run):
    figure = head_grid(run, "decoder", "self")
    small = atlas(run, "decoder", "self")
    png = base64.b64decode(figure.data[0].source.split(",", 1)[1])
    pixels = np.asarray(Image.open(io.BytesIO(png)))  # places in the palette
    side = small.pixels.shape[-1]
    pointer = figure.data[1]
    for layer in range(2):
        for head in range(2):
            top = round(pointer.y[layer] - (side - 1) / 2)
            left = round(pointer.x[head] - (side - 1) / 2)
            tile = pixels[top : top + side, left : left + side]
            shown = small.masked == 0
            np.testing.assert_array_equal(
                tile[shown], np.maximum(small.pixels[layer, head], 1)[shown]
            )
            assert not tile[~shown].any()
            assert list(pointer.customdata[layer][head]) == [layer, head]
