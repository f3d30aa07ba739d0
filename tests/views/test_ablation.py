"""What heads matter and what comes next with an alteration, by the figures' data."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from pictured import HOSTILE

from transformer import Model
from transformer.analysis.ablation import HeadImportance, NextToken, head_importance, next_token
from transformer.interventions.descriptions import Ablate
from transformer.views import foreseen, importance
from transformer.views.ablation.importance import largest_change
from transformer.views.drawing import style

FOUND = HeadImportance(
    place=7,
    log_probability=math.log(0.25),
    change={
        ("encoder", "self"): torch.tensor([[0.5, -0.1, 0.0]]),
        ("decoder", "cross"): torch.tensor([[0.2, 0.3, -2.0], [0.0, 0.1, 1.0]]),
    },
)
NEXT = NextToken(
    place=3,
    ids=(9, 4, 2),
    intact=torch.tensor([0.6, 0.3, 0.0004]),
    intervened=torch.tensor([0.1, 0.0, 0.7]),
)


def test_the_map_has_layers_down_and_heads_across() -> None:
    figure = importance(FOUND, "decoder", "cross", "fox")
    np.testing.assert_array_equal(figure.data[0].z, FOUND.change["decoder", "cross"].numpy())
    np.testing.assert_allclose(figure.data[0].customdata, np.exp(figure.data[0].z))
    assert figure.layout.yaxis.range == (1.5, -0.5)
    assert figure.layout.meta["row_labels"] == ["layer 0", "layer 1"]
    assert figure.layout.meta["column_labels"] == ["head 0", "head 1", "head 2"]


@pytest.mark.parametrize("dark", [False, True])
def test_every_kind_of_attention_has_the_same_colours_with_zero_in_the_middle(dark: bool) -> None:
    for stack, kind in FOUND.change:
        figure = importance(FOUND, stack, kind, "fox", dark=dark)
        (trace,) = figure.data
        assert (trace.zmin, trace.zmax, figure.layout.meta["limit"]) == (-2.0, 2.0, 2.0)
        assert [list(stop) for stop in trace.colorscale] == style.diverging(dark)
        assert "colours from -2 to 2" in figure.layout.title.subtitle.text


def test_the_subtitle_says_which_token_how_likely_and_how_heads_were_silenced() -> None:
    said = importance(FOUND, "encoder", "self", "fox").layout.title.subtitle.text
    assert "token 7" in said
    assert "p = 0.2500" in said
    assert "output set to 0" in said
    meant = importance(FOUND, "encoder", "self", "fox", by="mean").layout.title.subtitle.text
    assert "replaced by its mean" in meant


def test_heads_that_change_nothing_leave_a_scale_with_two_ends() -> None:
    still = dataclasses.replace(FOUND, change={("decoder", "self"): torch.zeros(2, 3)})
    (trace,) = importance(still, "decoder", "self", "fox").data
    assert trace.zmin < 0 < trace.zmax
    assert largest_change(still) == trace.zmax


def test_small_changes_are_written_with_more_decimals() -> None:
    for largest, decimals in ((2.0, 2), (0.3, 2), (0.027, 3), (0.0009, 4), (1e-6, 4)):
        small = dataclasses.replace(FOUND, change={("decoder", "self"): torch.tensor([[-largest]])})
        (trace,) = importance(small, "decoder", "self", "fox").data
        assert trace.texttemplate == f"%{{z:+.{decimals}f}}"


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="ablated: encoder self, decoder cross"):
        importance(FOUND, "decoder", "self", "fox")


def test_the_bars_are_both_networks_probabilities() -> None:
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


def test_token_text_that_looks_like_markup_stays_text() -> None:
    for label in HOSTILE:
        for figure in (
            importance(FOUND, "encoder", "self", label),
            foreseen(NEXT, [label, "a", "b"], here=9),
        ):
            drawn = figure.to_plotly_json()
            drawn["layout"].pop("meta")
            texts = [text for text in _strings(drawn) if label[:3] in text]
            assert not [t for t in texts if "<s>" in t or "</script>" in t or "<b>x" in t]
        assert style.label(label) in figure.layout.yaxis.ticktext[0]
        assert figure.data[0].customdata[0] == style.label(label, style.HOVER_CHARACTERS)


def test_figures_of_a_real_run_hold_what_was_found(tiny_model: Model) -> None:
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


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for part in value.values() for text in _strings(part)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in _strings(part)]
    return []
