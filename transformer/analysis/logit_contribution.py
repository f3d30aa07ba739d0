"""The contribution of each part to the logit of one token: direct logit attribution.

The last stream is a sum of what embeddings, heads, feed-forwards and biases wrote into it. A norm
is not linear, but with its scale held (what it divided by for this very vector) it is; and the head
is linear anyway. So the logit is exactly a sum of one number per part. Source: Elhage et al. 2021,
"A Mathematical Framework for Transformer Circuits".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.analysis.text_before import TextBefore, token_asked
from transformer.checks import InvalidRequest, check_whole
from transformer.inference.loaded import LoadedModel
from transformer.model.blocks import Residual
from transformer.model.config import ModelConfig
from transformer.model.hooks import Point
from transformer.model.primitives import RMSNorm
from transformer.model.transformer import EncoderOnly
from transformer.runs.run import Run

EXACT = 1e-3  # tolerated difference from a logit of 1; float32 gives about 1e-5


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LogitContribution:
    """The contribution of each part of a network to one logit: of the token at `position`.

    heads: by kind of attention, (L, H); feed_forward: (L,), each with its bias; biases: (L,), of
    the attentions' outputs and, of a network with norm after its blocks, the norms' shifts.
    others: what belongs to no layer, "token", "position", "embedding norm", "embedding projection",
    "final norm" (their shifts) and "output bias", those that there are. All of them sum to `logit`,
    the network's own.
    """

    position: int
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


@torch.no_grad()
def logit_contribution(
    model: LoadedModel,
    run: Run,
    position: int,
    target: int | None = None,
    minus: int | None = None,
) -> LogitContribution:
    """What each part of the intact network adds to the logit of `target` as the token at `position`
    of the run's ids, predicted from the text before it, or by an encoder from the whole text.

    target: id of a token; None = the token at that position; after the end, the likeliest. minus:
    another token, whose logit and contributions are subtracted. The scale
    of every norm that the stream passes is held. Raises ValueError for a token that nothing
    predicts, for an unknown id, and for a network whose logits are no such sum.
    """
    is_encoder = isinstance(model.network, EncoderOnly)
    text = (TextBefore.up_to if is_encoder else TextBefore.of)(model, run, position)
    position, last_id = int(position), run.config.output_vocab_size - 1
    target = None if target is None else check_whole("target", target, 0, last_id)
    minus = None if minus is None else check_whole("minus", minus, 0, last_id)
    written = WrittenAt(text.network.last_stack.name, text.at)
    logits = text.logits([written])[0]
    wanted = token_asked(run, position, logits) if target is None else target
    contribution = attributed(model, written, position, wanted, float(logits[wanted]))
    if minus is None:
        return contribution
    return _difference(
        contribution, attributed(model, written, position, minus, float(logits[minus]))
    )


def _difference(one: LogitContribution, other: LogitContribution) -> LogitContribution:
    return replace(
        one,
        logit=one.logit - other.logit,
        heads={kind: heads - other.heads[kind] for kind, heads in one.heads.items()},
        feed_forward=one.feed_forward - other.feed_forward,
        biases=one.biases - other.biases,
        others={name: value - other.others[name] for name, value in one.others.items()},
    )


def attributed(
    model: LoadedModel, written: WrittenAt, position: int, target: int, logit: float
) -> LogitContribution:
    """`logit_contribution` from the recordings of a pass that had `written` as a hook."""
    added = _along(model, written, target)
    contribution = _sorted(model.config, position, target, logit, added)
    if abs(contribution.total - logit) > EXACT * (1 + abs(logit)):
        raise _no_sum(model)
    return contribution


def neuron_contributions(
    model: LoadedModel,
    written: WrittenAt,
    layer: int,
    outputs: Tensor,
    target: int,
    logit: float,
) -> Tensor | None:
    """(F,), what each vector (F, C) that neurons of one feed-forward write adds to the logit of
    `target`, as in `attributed`; None where a logit is no such sum."""
    try:
        added = _along(model, written, target, (layer, outputs))
    except ValueError:
        return None
    if abs(sum(added.values()) - logit) > EXACT * (1 + abs(logit)):
        return None
    of_neurons = [added["neuron", index] for index in range(len(outputs))]
    return torch.tensor(of_neurons, dtype=torch.float64, device="cpu")


def _no_sum(model: LoadedModel) -> InvalidRequest:
    return InvalidRequest(
        "no_sum", "a logit of {model} is not the sum of what its parts add", model=model.name
    )


def _along(
    model: LoadedModel,
    written: WrittenAt,
    target: int,
    neurons: tuple[int, Tensor] | None = None,
) -> dict[tuple[Any, ...], float]:
    """What each part adds to the logit of `target`, by its name. neurons: a layer and the vectors
    (F, C) that its feed-forward's neurons write, each a part of its own."""
    network = model.network
    if network.transform is not None or model.config.logit_cap is not None:
        raise _no_sum(model)
    parts = _Parts()
    _read_in(parts, network, written)
    for layer, block in enumerate(network.last_stack.layers):
        split = neurons[1] if neurons is not None and neurons[0] == layer else None
        _add_layer(parts, block, layer, written, split)
    if network.last_stack.norm is not None:
        parts.pass_norm(network.last_stack.norm, ("final norm",))
    scale = model.config.logit_scale
    added = parts.along(network.head.weight[target].double() * scale)
    if network.head.bias is not None:
        added["output bias",] = float(network.head.bias[target]) * scale
    return added


@dataclass(slots=True, eq=False)
class WrittenAt:
    """A hook that keeps what a stack's parts write at one row, and the stream there, as doubles.

    row: None keeps every row, for `at`.
    """

    stack: str
    row: int | None
    kept: dict[Point, Tensor] = field(default_factory=dict)

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        wanted = ("embed", "pos_embed", "z", "mlp_out", "resid_pre", "resid_post")
        if point.stack == self.stack and point.name in wanted:
            rows = value if value.dim() > 2 else value[None]
            row = rows[0] if self.row is None else rows[0, ..., self.row, :]
            self.kept[point] = row.double()
        return value

    def at(self, row: int) -> WrittenAt:
        """The recording of a row."""
        rows_at = {point: value[..., row, :] for point, value in self.kept.items()}
        return WrittenAt(self.stack, row, rows_at)


class _Parts:
    """The stream at one position as the sum of its named parts; a name may come twice."""

    def __init__(self) -> None:
        self.names: list[tuple[Any, ...]] = []
        self.rows: list[Tensor] = []  # (n, C) each

    def add(self, names: list[tuple[Any, ...]], values: Tensor) -> None:
        """values: (C,) of one name, or (n, C)."""
        self.names += names
        self.rows.append(values.view(len(names), -1))

    def pass_norm(self, norm: nn.Module | None, shift: tuple[Any, ...]) -> None:
        """Put each part through the norm, with the scale that it has for their sum."""
        if not isinstance(norm, nn.LayerNorm | RMSNorm):
            raise ValueError(f"contributions need LayerNorm or RMSNorm; got {type(norm).__name__}")
        parts = torch.cat(self.rows)
        if isinstance(norm, nn.LayerNorm):
            parts = parts - parts.mean(dim=1, keepdim=True)
        size = parts.sum(dim=0).square().mean()
        gain = norm.weight if isinstance(norm, nn.LayerNorm) else norm.scale
        self.rows = [gain.double() / (size + norm.eps).sqrt() * parts]
        if isinstance(norm, nn.LayerNorm) and norm.bias is not None:
            self.add([shift], norm.bias.double())

    def pass_map(self, linear: nn.Linear, shift: tuple[Any, ...]) -> None:
        """Put each part through a linear map, and add its bias as another part."""
        self.rows = [torch.cat(self.rows) @ linear.weight.double().T]
        if linear.bias is not None:
            self.add([shift], linear.bias.double())

    def along(self, weight: Tensor) -> dict[tuple[Any, ...], float]:
        """The dot product of each name's parts with a vector (C,)."""
        sums: dict[tuple[Any, ...], float] = defaultdict(float)
        for name, value in zip(self.names, (torch.cat(self.rows) @ weight).tolist(), strict=True):
            sums[name] += value
        return sums


def _read_in(parts: _Parts, network: Any, written: WrittenAt) -> None:
    """Add the stack's input: the token's vector and, if positions are added, the position's."""
    here = written.stack
    parts.add([("token",)], written.kept[Point("embed", here)])
    position = written.kept[Point("pos_embed", here)]
    if bool(position.any()):
        parts.add([("position",)], position)
    embedding = network.embeddings[here]
    if embedding.norm is not None:
        parts.pass_norm(embedding.norm, ("embedding norm",))
    if embedding.project is not None:
        parts.pass_map(embedding.project, ("embedding projection",))


def _add_layer(
    parts: _Parts, made: Any, layer: int, written: WrittenAt, neurons: Tensor | None = None
) -> None:
    """Add the outputs of a layer's sub-layers in order. made: the layer. neurons: (F, C), parts of
    what its feed-forward writes."""

    def add(residual: Residual, added: _Parts) -> None:
        if residual.output_norm is not None:
            added.pass_norm(residual.output_norm, ("biases", layer))
        parts.add(added.names, torch.cat(added.rows) * residual.scale)
        if residual.placement.of_sum:
            parts.pass_norm(residual.norm, ("biases", layer))

    for kind in ("self", "cross") if made.crosses else ("self",):
        output = getattr(made, f"{kind}_attention").output
        heads = written.kept[Point("z", written.stack, layer, kind)]  # (H, D)
        maps = output.weight.double().unflatten(1, heads.shape)  # (C, H, D)
        names = [(kind, layer, head) for head in range(len(heads))]
        added = _Parts()
        added.add(names, torch.einsum("chd,hd->hc", maps, heads))
        if output.bias is not None:
            added.add([("biases", layer)], output.bias.double())
        add(getattr(made, f"{kind}_residual"), added)
    added = _Parts()
    output = written.kept[Point("mlp_out", written.stack, layer)]
    if neurons is not None:
        added.add([("neuron", index) for index in range(len(neurons))], neurons)
        output = output - neurons.sum(dim=0)
    added.add([("feed_forward", layer)], output)
    add(made.feed_forward_residual, added)


def _sorted(
    config: ModelConfig,
    position: int,
    target: int,
    logit: float,
    added: Mapping[tuple[Any, ...], float],
) -> LogitContribution:
    """Group the numbers by kind of part."""
    layers, n_heads = range(config.output_n_layers), config.n_heads
    kinds = [kind for kind in ("self", "cross") if (kind, 0, 0) in added]

    def numbers(values: list[Any]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device="cpu")

    return LogitContribution(
        position=position,
        target=target,
        logit=logit,
        heads={
            kind: numbers([[added[kind, at, head] for head in range(n_heads)] for at in layers])
            for kind in kinds
        },
        feed_forward=numbers([added["feed_forward", layer] for layer in layers]),
        biases=numbers([added.get(("biases", layer), 0.0) for layer in layers]),
        others={key[0]: value for key, value in added.items() if len(key) == 1},
    )
