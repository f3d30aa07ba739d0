"""Masks, positions and candidates, by their data."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.views import (
    candidates,
    mask_figure,
    masks_of,
    padded_batch,
    position_curves,
    position_matrix,
)

# --- masks ----------------------------------------------------------------------------------------


def test_padding_and_causal_masks_make_up_the_recorded_one(batch):
    for row in range(3):
        found = masks_of(batch, row)
        np.testing.assert_array_equal(found["padding"] & found["causal"], found["combined"])
        assert found["padding"].sum() == batch.padding[row].sum() * batch.ids.shape[1]
    assert not masks_of(batch, 0)["padding"].all()
    assert not masks_of(batch, 0)["causal"].all()


@pytest.mark.parametrize("which", ["padding", "causal", "combined"])
def test_a_mask_figure_fills_the_allowed_cells_only(batch, which):
    figure = mask_figure(batch, 2, which)
    allowed = masks_of(batch, 2)[which]
    np.testing.assert_array_equal(np.isnan(figure.data[0].z), ~allowed)
    assert (figure.data[0].z[allowed] == 1).all()
    assert which.capitalize() in figure.layout.title.text


def test_the_padded_batch_shows_where_text_ends(batch):
    figure = padded_batch(batch)
    assert (figure.layout.xaxis.tick0, figure.layout.xaxis.dtick) == (0, 1)  # whole positions
    z = figure.data[0].z
    np.testing.assert_array_equal(~np.isnan(z), batch.padding.numpy())


# --- positions ------------------------------------------------------------------------------------


def test_the_position_matrix_is_the_stacks_own(run, translation):
    for made, stack in ((run, "decoder"), (translation, "encoder"), (translation, "decoder")):
        figure, used = position_matrix(made, stack), len(made.queries(stack))
        matrix = made.position_matrices[stack].numpy()
        np.testing.assert_array_equal(figure.data[0].z, matrix)
        assert figure.data[0].zmin == -figure.data[0].zmax == -float(np.abs(matrix).max())
        assert figure.layout.meta["used"] == used
        assert figure.layout.shapes[0].y0 == used - 0.5
    assert position_matrix(translation).layout.meta["stack"] == "decoder"
    with pytest.raises(ValueError, match=r"stack must be one of \['encoder', 'decoder'\]"):
        position_matrix(translation, "middle")


def test_curves_are_columns_of_the_matrix(run):
    figure = position_curves(run, [5, 0])
    matrix = run.position_matrices["decoder"].numpy()
    for line, dimension in zip(figure.data, (5, 0), strict=True):
        assert line.name == f"dimension {dimension}"
        np.testing.assert_array_equal(line.y, matrix[:, dimension])


@pytest.mark.parametrize("dimensions", [[16], [-1], [0, 0], [], list(range(13)), [True], [1.5]])
def test_unknown_dimensions_are_refused(run, dimensions):
    with pytest.raises(ValueError, match=r"from 0 to 15|1 to 12 different"):
        position_curves(run, dimensions)


# --- prediction -----------------------------------------------------------------------------------


def test_candidates_are_the_steps_own_numbers(run):
    step = run.steps[2]
    figure = candidates(run, 2)
    shown = list(step.candidates[:10])
    if step.chosen not in shown:
        shown.append(step.chosen)
    before, after = figure.data
    assert list(before.x) == [c.probability for c in shown]
    assert list(after.x) == [c.sampling_probability for c in shown]
    for candidate, text in zip(shown, after.text, strict=True):
        assert ("cut" in text) == (candidate.sampling_probability == 0)
    marked = [place for place, text in enumerate(figure.layout.yaxis.ticktext) if "▶" in text]
    assert marked == [shown.index(step.chosen)]
    assert "top-k 5" in figure.layout.title.subtitle.text


def test_a_chosen_token_outside_the_shown_ones_is_added(run):
    step = next(s for s in run.steps if s.candidates[0].id != s.token)
    figure = candidates(run, step.index, limit=1)
    assert len(figure.data[0].x) == 2
    assert "▶" in figure.layout.yaxis.ticktext[1]


def test_an_unknown_step_is_refused(run, tiny_model):
    with pytest.raises(ValueError, match="step_index must be a whole number from 0 to 5; got 6"):
        candidates(run, 6)
    read = tiny_model.trace("the fox")
    with pytest.raises(ValueError, match="generated nothing"):
        candidates(read, 0)
