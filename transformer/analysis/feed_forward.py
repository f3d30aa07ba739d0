"""What one feed-forward does at one token: what it adds to the next, what would follow without it,
and the neurons that do most there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from transformer.analysis.continuation import written_with
from transformer.analysis.logit_contribution import WrittenAt, neuron_contributions
from transformer.analysis.text_before import TextBefore, altered, check_run
from transformer.checks import check_whole
from transformer.inference.loaded import LoadedModel
from transformer.interventions.descriptions import Ablate, Intervention
from transformer.interventions.hooks import hooks_of
from transformer.model.hooks import Point
from transformer.model.transformer import EncoderDecoder
from transformer.runs.run import Run

N_NEURONS = 5
N_WRITTEN = 3  # tokens that a neuron writes
MAX_SKIPPED = 100  # likelier ones that people cannot read


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Neuron:
    """A neuron of a feed-forward at one token.

    activation: at that token. activations: (T,), at every token that is read. adds: what it adds to
    the logit of the target; None where a logit is no sum of parts. writes: ids of the tokens, among
    those that people can read, whose logits its output raises most, without the norms' scales;
    empty for a network whose head is more than a linear map.
    """

    index: int
    activation: float
    activations: Tensor
    adds: float | None
    writes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FeedForwardAt:
    """A feed-forward at the token at `position` of a run's ids, with the run's interventions.

    logits: (V,) of what follows without it. written: ids that the network would write without it,
    or with it where the run has switched it off. n_neurons: how many the layer has. neurons: those
    that add most to the target's logit, up or down; where that is unknown, those that write the
    longest vectors; and one that was asked for. Empty for an encoder before a decoder, and for a
    feed-forward that is altered.
    """

    position: int
    target: int
    logits: Tensor
    written: tuple[int, ...]
    n_neurons: int
    neurons: tuple[Neuron, ...]


@torch.no_grad()
def feed_forward_at(
    model: LoadedModel,
    run: Run,
    stack: str,
    layer: int,
    position: int | None = None,
    target: int | None = None,
    neuron: int | None = None,
) -> FeedForwardAt:
    """One feed-forward for the token at `position`, None = `model.last_read`, and the target, None
    = the likeliest. neuron: one that is to be among its neurons.

    Raises ValueError for an unknown stack, layer, id or neuron, and for a position that the network
    does not read.
    """
    check_run(model, run)
    off = Ablate(stack, layer, part="mlp_out")
    off.check(model.config)
    if neuron is not None:
        check_whole("neuron", neuron, 0, model.config.d_ff - 1)
    position = model.last_read(run) if position is None else position
    text = TextBefore.up_to(model, run, position)
    others = altered(model, run)
    without = _without(text, run, others, off, model)
    written = WrittenAt(text.network.last_stack.name, text.at)
    seen = _Neurons(Point("mlp_post", stack, layer))
    logits = text.logits([*others, written, seen])[0]
    target = int(logits.argmax()) if target is None else target
    target = check_whole("target", target, 0, len(logits) - 1)
    return FeedForwardAt(
        position=int(position),
        target=target,
        logits=without.cpu(),
        written=written_with(model, run, int(position), switched(run.request.interventions, off)),
        n_neurons=run.config.d_ff,
        neurons=_neurons(model, text, written, seen, target, float(logits[target]), neuron),
    )


def switched(made: Sequence[Intervention], off: Ablate) -> tuple[Intervention, ...]:
    """Interventions with an ablation added, or removed if it is among them."""
    left = tuple(change for change in made if change != off)
    return left if len(left) < len(made) else (*left, off)


def _without(
    text: TextBefore, run: Run, others: Sequence[Any], off: Ablate, model: LoadedModel
) -> Tensor:
    """(V,) of what follows without the feed-forward."""
    hooks = hooks_of([off], model.config)
    recorded = run.trace.residuals and not isinstance(text.network, EncoderDecoder)
    if others or not recorded:
        return text.logits([*others, *hooks])[0]
    return text.from_layer(run, off.layer, hooks)[0]


@dataclass(slots=True, eq=False)
class _Neurons:
    """A hook that keeps the neurons of one feed-forward at every row, (T, F)."""

    fused: ClassVar[bool] = True
    point: Point
    rows: Tensor = dataclasses.field(init=False)

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point == self.point:
            self.rows = value[0].double()
        return value


def _neurons(
    model: LoadedModel,
    text: TextBefore,
    written: WrittenAt,
    seen: _Neurons,
    target: int,
    logit: float,
    neuron: int | None,
) -> tuple[Neuron, ...]:
    """The neurons of FeedForwardAt."""
    _, stack, layer, _ = seen.point
    if stack != text.network.last_stack.name:
        return ()
    block: Any = text.network.last_stack.layers[layer]
    contract = block.feed_forward.contract
    here = seen.rows[text.at]
    outputs = here[:, None] * contract.weight.double().T  # (F, C)
    added = outputs.sum(dim=0) + (0 if contract.bias is None else contract.bias.double())
    neurons = written.kept[Point("mlp_out", stack, layer)]
    if not torch.allclose(added, neurons, rtol=1e-3, atol=1e-4):
        return ()
    adds = neuron_contributions(model, written, layer, outputs, target, logit)
    strength = outputs.norm(dim=1) if adds is None else adds.abs()
    best = strength.topk(min(N_NEURONS, len(strength))).indices.tolist()
    if neuron is not None and neuron not in best:
        best.append(neuron)
    writes = _written_by(model, outputs[best])
    return tuple(
        Neuron(
            index=index,
            activation=float(here[index]),
            activations=seen.rows[:, index].float().cpu(),
            adds=None if adds is None else float(adds[index]),
            writes=tokens,
        )
        for index, tokens in zip(best, writes, strict=True)
    )


def _written_by(model: LoadedModel, outputs: Tensor) -> list[tuple[int, ...]]:
    """The tokens whose logits each of n vectors (n, C) in the stream raises most."""
    network, norm = model.network, model.network.last_stack.norm
    if network.transform is not None:
        return [()] * len(outputs)
    if isinstance(norm, nn.LayerNorm):
        outputs = outputs - outputs.mean(dim=1, keepdim=True)
    gain = getattr(norm, "weight", getattr(norm, "scale", None))
    raised = (outputs if gain is None else outputs * gain.double()) @ network.head.weight.double().T
    likeliest = raised.topk(min(MAX_SKIPPED + N_WRITTEN, raised.shape[1])).indices.tolist()
    return [tuple(filter(partial(_is_read, model), row))[:N_WRITTEN] for row in likeliest]


def _is_read(model: LoadedModel, token: int) -> bool:
    """Whether a token is text that people read: not special, and not part of a character."""
    return not model.tokenizer.is_special(token) and "‹" not in model.tokenizer.label(token)
