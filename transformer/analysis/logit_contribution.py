"""What each part of the network adds to the logit of one token: direct logit attribution.

The last stream is a sum of what embeddings, heads, feed-forwards and biases wrote into it. A norm
is not linear, but with its scale held (what it divided by for this very vector) it is; and the head
is linear anyway. So the logit falls apart into one number a part, exactly.
Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from transformer.analysis.text_before import TextBefore
from transformer.checks import check_whole
from transformer.inference.loaded import LoadedModel
from transformer.messages import invalid, numeral
from transformer.model.blocks import Residual
from transformer.model.hooks import Point
from transformer.model.norms import RMSNorm
from transformer.model.transformer import EncoderDecoder
from transformer.runs.run import Run

EXACT = 1e-3  # by which the parts' sum may miss a logit of 1, of which float32 makes 1e-5 or so


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LogitContribution:
    """What each part of the intact network adds to one logit, foreseen after the text before place.

    heads: by kind of attention, (L, H); feed_forward: (L,), each with its bias; biases: (L,), of
    the attentions' outputs and, of a network with norm after its blocks, the norms' shifts.
    others: what belongs to no layer, "token", "position", "embedding norm", "final norm" (their
    shifts) and "output bias", those that there are. All of them sum to `logit`, the network's own.
    """

    place: int
    target: int
    logit: float
    heads: dict[str, Tensor]
    feed_forward: Tensor
    biases: Tensor
    others: Mapping[str, float]

    @property
    def total(self) -> float:
        """The sum of all parts."""
        layers = (*self.heads.values(), self.feed_forward, self.biases)
        return float(sum(part.sum() for part in layers)) + sum(self.others.values())


@torch.inference_mode()
def logit_contribution(
    model: LoadedModel, run: Run, place: int, target: int | None = None
) -> LogitContribution:
    """What each part adds to the logit of `target` as the token at `place` of the run's ids.

    target: id of a token; None = that which stands there. The scale of every norm that the stream
    passes is held. Raises ValueError for a token that nothing predicts, for an id that there is
    not, and for a network whose logits are no such sum.
    """
    text = TextBefore.of(model, run, place)
    network, last = text.network, run.config.output_vocab_size - 1
    target = run.ids[place] if target is None else target
    check_whole("target", target, 0, last)
    written = _LastColumn(network.last_stack.name)
    logit = float(text.logits([written])[0, target])
    parts = _Parts()
    _read_in(parts, network, written)
    for layer, made in enumerate(network.last_stack.layers):
        _add_layer(parts, made, layer, written)
    if network.last_stack.norm is not None:
        parts.pass_norm(network.last_stack.norm, ("final norm",))
    weight = network.head.weight[target].double()
    added = {key: float(part @ weight) for key, part in parts.of.items()}
    if network.head.bias is not None:
        added["output bias",] = float(network.head.bias[target])
    found = _sorted(run, place, target, logit, added)
    if abs(found.total - logit) > EXACT * (1 + abs(logit)):
        raise invalid(
            "a logit of {model} is not the sum of what its parts add: they add up to {total}, "
            "and it is {logit}",
            model=run.model,
            total=numeral(found.total, ".4f"),
            logit=numeral(logit, ".4f"),
        )
    return found


@dataclass(slots=True, eq=False)
class _LastColumn:
    """A hook that keeps what a stack's parts write at the last place, in double precision."""

    stack: str
    kept: dict[Point, Tensor] = field(default_factory=dict)

    def __call__(self, point: Point, value: Any, **beside: Any) -> Any:
        """See Hook."""
        wanted = ("embedded", "positions", "heads", "feed_forward")
        if point.stack == self.stack and point.name in wanted:
            rows = value if value.dim() > 2 else value[None]
            self.kept[point] = rows[0, ..., -1, :].double()
        return value


@dataclass(slots=True, eq=False)
class _Parts:
    """The stream at one place as the sum of its parts, each (C,), by a name of its own."""

    of: dict[tuple[Any, ...], Tensor] = field(default_factory=dict)

    def add(self, name: tuple[Any, ...], value: Tensor) -> None:
        self.of[name] = self.of[name] + value if name in self.of else value

    def pass_norm(self, norm: nn.Module, shift: tuple[Any, ...]) -> None:
        """Put each part through the norm, with the scale that it has for their sum."""
        if not isinstance(norm, nn.LayerNorm | RMSNorm):
            raise invalid(
                "what a part adds to a logit is worked out for layer norm and RMS norm; this "
                "network has {norm}",
                norm=type(norm).__name__,
            )
        if isinstance(norm, nn.LayerNorm):
            self.of = {name: part - part.mean() for name, part in self.of.items()}
        size = torch.stack(list(self.of.values())).sum(dim=0).square().mean()
        gain = norm.weight if isinstance(norm, nn.LayerNorm) else norm.scale
        scale = gain.double() / (size + norm.eps).sqrt()
        self.of = {name: scale * part for name, part in self.of.items()}
        if isinstance(norm, nn.LayerNorm) and norm.bias is not None:
            self.add(shift, norm.bias.double())


def _read_in(parts: _Parts, network: Any, written: _LastColumn) -> None:
    """What the stack starts from: the token's vector and, where positions are added, its own."""
    here = written.stack
    parts.add(("token",), written.kept[Point("embedded", here)])
    position = written.kept[Point("positions", here)]
    if bool(position.any()):
        parts.add(("position",), position)
    crosses = isinstance(network, EncoderDecoder)
    norm = (network.target_embedding if crosses else network.embedding).norm
    if norm is not None:
        parts.pass_norm(norm, ("embedding norm",))


def _add_layer(parts: _Parts, made: Any, layer: int, written: _LastColumn) -> None:
    """What the sub-layers of a layer write, one after the other. made: the layer."""

    def close(residual: Residual) -> None:
        if not residual.norm_first:
            parts.pass_norm(residual.norm, ("biases", layer))

    for kind in ("self", "cross") if made.crosses else ("self",):
        output = getattr(made, f"{kind}_attention").output
        heads = written.kept[Point("heads", written.stack, layer, kind)]  # (H, D)
        maps = output.weight.double().unflatten(1, heads.shape)  # (C, H, D)
        for head, value in enumerate(torch.einsum("chd,hd->hc", maps, heads)):
            parts.add((kind, layer, head), value)
        if output.bias is not None:
            parts.add(("biases", layer), output.bias.double())
        close(getattr(made, f"{kind}_residual"))
    parts.add(("feed_forward", layer), written.kept[Point("feed_forward", written.stack, layer)])
    close(made.feed_forward_residual)


def _sorted(
    run: Run, place: int, target: int, logit: float, added: Mapping[tuple[Any, ...], float]
) -> LogitContribution:
    """Each number where it belongs."""
    layers, n_heads = range(run.config.n_layers), run.config.n_heads
    kinds = [kind for kind in ("self", "cross") if (kind, 0, 0) in added]
    return LogitContribution(
        place=place,
        target=target,
        logit=logit,
        heads={
            kind: torch.tensor(
                [[added[kind, at, head] for head in range(n_heads)] for at in layers]
            )
            for kind in kinds
        },
        feed_forward=torch.tensor([added["feed_forward", layer] for layer in layers]),
        biases=torch.tensor([added.get(("biases", layer), 0.0) for layer in layers]),
        others={key[0]: value for key, value in added.items() if len(key) == 1},
    )
