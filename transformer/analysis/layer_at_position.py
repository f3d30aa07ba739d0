"""The parts of one layer at one token of a run: norms, sub-layers, residual stream.

A layer's input and its heads' weights are recorded; the network's modules compute the rest for that
one row, which takes next to no time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.analysis.logit_lens import streams_of
from transformer.analysis.row_arithmetic import heads_of
from transformer.checks import check_choice, check_whole
from transformer.inference.loaded import LoadedModel
from transformer.model.blocks import FeedForward, Layer, Residual
from transformer.model.sites import Site
from transformer.runs.run import Run

EXACT = 1e-4  # of the largest number: float32's error when the same sums are taken in another order


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SubLayer:
    """One sub-layer and its way back into the stream, for one token; each (C,) float32.

    kind: "self", "cross" or "feed_forward". stream: what it starts from; read: what the sub-layer
    reads (normalised, with norm "pre"); added: what it adds; out: the stream after it, or after all
    of them if they are parallel. norm_of: what the norm is taken of, normalised: what it makes of
    that. norm: the module.
    """

    kind: str
    stream: Tensor
    read: Tensor
    added: Tensor
    out: Tensor
    norm_of: Tensor
    normalised: Tensor
    norm: nn.Module


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FedForward:
    """The feed-forward of one token: what it reads (C,), W1 x + b1 (d_ff,), the gate's map of the
    same or None, what W2 reads, and what comes out (C,).
    """

    read: Tensor
    wide: Tensor
    gate: Tensor | None
    inner: Tensor
    out: Tensor


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LayerAtPosition:
    """parts: the layer's sub-layers in order. agrees: whether they end where the recorded stream
    does, which they do unless an intervention changed this layer."""

    parts: tuple[SubLayer, ...]
    feed_forward: FedForward
    agrees: bool

    def part(self, kind: str) -> SubLayer:
        """The sub-layer of a kind."""
        return next(part for part in self.parts if part.kind == kind)


@torch.no_grad()
def layer_at_position(
    model: LoadedModel, run: Run, stack: str, layer: int, position: int
) -> LayerAtPosition:
    """A layer of a stack at a row of its trace, from its recorded input to its recorded output.

    Raises ValueError for a run of another model, and for one without residual streams.
    """
    check_choice("stack", stack, tuple(run.trace.residuals))
    streams = streams_of(model, run, stack)
    layer = check_whole("layer", layer, 0, len(streams) - 2)
    position = check_whole("position", position, 0, streams[layer].shape[1] - 1)
    block: Any = getattr(model.network, stack).layers[layer]
    # A copy: a view would keep the whole text's memory alive.
    start = streams[layer][0, position].clone().to(model.network.device, model.network.dtype)
    x, added, parts = start, start, []
    for kind in ("self", "cross", "feed_forward") if block.crosses else ("self", "feed_forward"):
        residual = getattr(block, f"{kind}_residual")
        work = _work_of(block, kind, run, Site(stack, layer, kind), position)
        x, part = _passed(residual, kind, x, work)
        parts.append(part)
        if block.parallel:  # each reads what came in, and all is added to it
            added = added + part.added.to(added)
            x = start
    out = (added if block.parallel else x).float().cpu()
    if block.parallel:
        parts = [replace(part, out=out) for part in parts]
    expected = streams[layer + 1][0, position].cpu()
    room = EXACT if model.network.dtype == torch.float32 else 0.05
    agrees = float((out - expected).abs().max()) <= room * (1 + float(expected.abs().max()))
    return LayerAtPosition(
        parts=tuple(parts),
        feed_forward=_fed(block.feed_forward, parts[-1].read.to(start)),
        agrees=agrees,
    )


def _work_of(made: Layer, kind: str, run: Run, site: Site, position: int) -> Any:
    """A sub-layer's output for a row; attention's heads come from the recording."""
    if kind == "feed_forward":
        return made.feed_forward
    record = run.trace[site]
    _, _, values = heads_of(record)
    heads = torch.einsum("hk,hkd->hd", record.pattern[0, :, position], values[0])
    output = getattr(made, f"{kind}_attention").output
    return lambda x: output(heads.flatten().to(x))


def _passed(residual: Residual, kind: str, x: Tensor, work: Any) -> tuple[Tensor, SubLayer]:
    """The stream after a sub-layer, and every intermediate value."""
    placement, norm = residual.placement, residual.norm or residual.output_norm
    assert norm is not None
    read = norm(x) if placement.of_input else x
    output = added = work(read)
    if residual.output_norm is not None:
        added = residual.output_norm(output)
    added = added * residual.scale
    out = x + added
    if placement.of_input:
        norm_of, normalised = x, read
    elif placement.of_output:
        norm_of, normalised = output, added
    else:
        norm_of = out
        out = normalised = norm(norm_of)
    rows = {
        "stream": x, "read": read, "added": added, "out": out, "norm_of": norm_of,
        "normalised": normalised,
    }  # fmt: skip
    vectors = {name: row.float().cpu() for name, row in rows.items()}
    return out, SubLayer(kind=kind, norm=norm, **vectors)


def _fed(made: FeedForward, read: Tensor) -> FedForward:
    wide = made.expand(read)
    gate = None if made.gate is None else made.gate(read)
    activated = made.activation(wide if gate is None else gate)
    inner = activated if gate is None else activated * wide
    rows = {
        "read": read,
        "wide": wide,
        "inner": inner,
        "out": made.contract(inner),
    }
    vectors = {name: row.float().cpu() for name, row in rows.items()}
    return FedForward(gate=None if gate is None else gate.float().cpu(), **vectors)
