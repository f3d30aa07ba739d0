"""What heads matter and what comes next with an alteration, by the figures' data."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from transformer.analysis.ablation import HeadImportance, NextToken, head_importance, next_token
from transformer.interventions.descriptions import Ablate
from transformer.views import foreseen, importance

FOUND = HeadImportance(
    place=7,
    target=2,
    log_probability=math.log(0.25),
    change={
        ("encoder", "self"): torch.tensor([[0.5, -0.1, 0.0]]),
        ("decoder", "cross"): torch.tensor([[0.2, 0.3, -2.0], [0.0, 0.1, 1.0]]),
    },
)
NEXT = NextToken(
    place=3,
    target=4,
    ids=(9, 4, 2),
    intact=torch.tensor([0.6, 0.3, 0.0004]),
    intervened=torch.tensor([0.1, 0.0, 0.7]),
)


def test_the_map_has_layers_down_and_heads_across():
    figure = importance(FOUND, "decoder", "cross", "fox")
    np.testing.assert_array_equal(figure.data[0].z, FOUND.change["decoder", "cross"].numpy())
    np.testing.assert_allclose(figure.data[0].customdata, np.exp(figure.data[0].z))
    assert figure.layout.yaxis.range == (1.5, -0.5)
    assert figure.layout.meta["row_labels"] == ["layer 0", "layer 1"]
    assert figure.layout.meta["column_labels"] == ["head 0", "head 1", "head 2"]


def test_heads_that_change_nothing_leave_a_scale_with_two_ends():
    still = dataclasses.replace(FOUND, change={("decoder", "self"): torch.zeros(2, 3)})
    (trace,) = importance(still, "decoder", "self", "fox").data
    assert trace.zmin < 0 < trace.zmax


def test_an_unknown_kind_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="ablated: encoder self, decoder cross"):
        importance(FOUND, "decoder", "self", "fox")


def test_the_bars_are_both_networks_probabilities():
    figure = foreseen(NEXT, ["fox", "bird", "dog"], here=4)
    intact, altered = figure.data
    np.testing.assert_allclose(intact.x, NEXT.intact)
    np.testing.assert_allclose(altered.x, NEXT.intervened)
    assert list(intact.y) == list(altered.y) == [0, 1, 2]
    assert list(intact.text) == ["60.0%", "30.0%", "&lt;0.1%"]
    assert list(altered.text) == ["10.0%", "0.0%", "70.0%"]
    assert [("▶" in text) for text in figure.layout.yaxis.ticktext] == [False, True, False]
    assert intact.marker.pattern.shape != altered.marker.pattern.shape  # not by colour alone
    assert figure.layout.xaxis.range[1] > 0.7


def test_figures_of_a_real_run_hold_what_was_found(tiny_model):
    silence = Ablate("decoder", 0, [1])
    run = tiny_model.generate("The fox", max_new_tokens=4, interventions=[silence])
    place = len(run.ids) - 1
    matter = head_importance(tiny_model, run, place)
    (trace,) = importance(matter, "decoder", "self", run.labels[place]).data
    np.testing.assert_array_equal(trace.z, matter.change["decoder", "self"])
    found = next_token(tiny_model, run, place)
    figure = foreseen(found, [str(token) for token in found.ids], here=run.ids[place])
    assert figure.data[1].x[found.ids.index(run.ids[place])] == pytest.approx(
        run.steps[-1].chosen.probability, abs=1e-5
    )
