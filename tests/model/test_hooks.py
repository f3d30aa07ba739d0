"""The one seam of a forward pass: what hooks are shown, in which order, and what they may put."""

from __future__ import annotations

import pytest
import torch
from altered import FAMILIES, close, given, read
from builders import C, H, L, network

from transformer.model.hooks import POINTS, Point
from transformer.model.sites import sites_of
from transformer.model.trace import Trace


class Listening:
    """A hook that keeps the points that it was shown, and what was there."""

    def __init__(self):
        self.shown = []

    def __call__(self, point, value, **beside):
        self.shown.append((point, value, beside))
        return value


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_pass_shows_every_named_point_in_order_and_what_is_told_beside_it(family, norm):
    for positions in ("learned", "rotary"):
        model, heard = network(family, norm=norm, positions=positions), Listening()
        read(model, given(model), hooks=[heard])
        shown = {point.name for point, _, _ in heard.shown}
        absent = {"final_norm"} if norm == "post" else set()
        absent |= {"rotation"} if positions == "learned" else set()
        assert shown == set(POINTS) - absent
        order = [
            p.name for p, _, _ in heard.shown if p.layer == 0 and p.stack == model.last_stack.name
        ]
        order = [name for name in dict.fromkeys(order) if name not in ("skip", "final_norm")]
        assert norm == "post" or order == [name for name in POINTS if name in order]
        for point, _, beside in heard.shown:
            told = POINTS[point.name].partition(";")[2]
            assert [name.strip() for name in told.split(",") if told] == list(beside), point
    attentions = {point[1:] for point, _, _ in heard.shown if point.name == "pattern"}
    assert attentions == set(sites_of(model.config))
    assert len([p for p, _, _ in heard.shown if p.name == "resid_post"]) == L * len(
        {site.stack for site in sites_of(model.config)}
    )


def test_hooks_are_met_one_after_the_other_and_a_trace_is_the_last_of_them():
    model, trace = network(), Trace()

    def doubled(point, value, **beside):
        return 2 * value if point == Point("z", "decoder", 1, "self") else value

    def less_one(point, value, **beside):
        return value - 1 if point == Point("z", "decoder", 1, "self") else value

    def to_zero(point, value, **beside):
        return torch.zeros_like(value) if point == Point("resid_post", "decoder", 0) else value

    heard = Listening()
    text = given(model)
    read(model, text, hooks=[heard, doubled, less_one, heard, to_zero], trace=trace)
    before, after = (v for p, v, _ in heard.shown if p == Point("z", "decoder", 1, "self"))
    assert torch.equal(after, 2 * before - 1)
    assert trace.residuals["decoder"][1].abs().max() == 0


def test_a_part_of_the_weights_put_by_a_hook_is_what_the_values_are_weighed_by():
    model, heard = network(), Listening()

    def first_key_only(point, value, **beside):
        if point.name != "pattern":
            return value
        return torch.nn.functional.one_hot(torch.zeros_like(value[..., 0]).long(), 6).float()

    read(model, given(model), hooks=[first_key_only, heard])
    values = next(beside["v"] for p, _, beside in heard.shown if p.name == "pattern")
    heads = next(value for p, value, _ in heard.shown if p.name == "z")
    assert heads.shape == (1, H, 6, C // H)
    close(heads, values[:, :, :1].expand_as(heads))
