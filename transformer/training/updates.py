"""The update loop of every training, the loss, and the optimizers over flattened parameters: AdamW,
and Muon for matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from transformer.checks import InvalidRequest
from transformer.inference.logit_sources import pad, text_in
from transformer.model.config import ModelConfig
from transformer.model.hooks import Hook, unchanged
from transformer.model.network import IGNORED
from transformer.training.data import Example
from transformer.training.recipe import Settings

CHUNK_LOGITS = 2**20  # at a time: 4 MB of float32 nearly stay in a core's cache
Batch = tuple[int, int, list[Example]]  # the epoch, the batch's place in it, its rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """One update. step: from 1. loss: nats per token. norm: of the gradients, before they were
    clipped. stopping: whether a process asked to stop."""

    step: int
    epoch: int
    index: int
    tokens: int
    loss: float
    norm: float
    stopping: bool


def updates(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    settings: Settings,
    batches: Iterable[Batch],
    padding_id: int,
    *,
    dtype: torch.dtype = torch.float32,
    first: int = 0,
    rank: int = 0,
    n_processes: int = 1,
    backward: Callable[[Tensor], Any] = Tensor.backward,
    add: Callable[[Tensor], Tensor] = lambda values: values,
    before: Callable[[int], None] = lambda step: None,
    stopping: Callable[[], bool] = lambda: False,
    hooks: Sequence[Hook] = (),
) -> Iterator[Update]:
    """Yields after each update; to stop the training, stop iterating.

    first: the steps that were made before. dtype: what matrices are multiplied in. rank: of this
    one of the processes that train together. backward: fills the gradients of a loss, averaged over
    them; add: sums values over them. before: called with the step ahead of each, for a seed where
    the network draws. stopping: whether this process is to stop, asked once a step; the update that
    all of them make is the last. hooks: changes of the network, which it is trained with. Raises
    ValueError where the loss is no longer a number.
    """
    updated = updated_by(optimizer)
    device, narrow = updated[0].device.type, dtype != torch.float32
    # A hook keeps attention from the fused kernel, whose gradient in bfloat16 on a CPU is slow: a
    # whole training step took 1.1 to 1.3 times as long with it.
    hooks = hooks or ([unchanged] if narrow and device == "cpu" else [])
    for step, (epoch, index, rows) in zip(range(first, settings.steps), batches, strict=False):
        total = sum(row.n_wanted for row in rows)
        own = rows[rank::n_processes]
        weight = 1.0 if own else 0.0  # more processes than rows: join in with nothing
        ending = stopping()
        before(step)
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate_at(step)
        with torch.autocast(device, dtype, enabled=narrow):
            logits, wanted, _ = predictions(network, own or rows[:1], padding_id, hooks)
            nats = summed_nats(logits, wanted, settings.label_smoothing) * weight
        # Processes average their gradients; this makes the average that of the global batch.
        backward(nats * n_processes / total)
        norm = clip_grad_norm_(updated, settings.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        stats = torch.stack([nats.detach().float(), nats.new_tensor(float(ending)).float()])
        all_nats, n_ending = add(stats).tolist()
        loss = all_nats / total
        if not math.isfinite(loss):
            raise InvalidRequest(
                "training_diverged",
                "the loss became {loss} at step {step}; lower learning_rate",
                loss=loss,
                step=step,
            )
        yield Update(
            step=step + 1, epoch=epoch, index=index, tokens=total, loss=loss, norm=float(norm),
            stopping=n_ending > 0,
        )  # fmt: skip
        if n_ending > 0:
            return


def predictions(
    network: nn.Module, rows: Sequence[Example], padding_id: int, hooks: Sequence[Hook] = ()
) -> tuple[Tensor, Tensor, Tensor]:
    """(logits (N, V), wanted ids (N,), their positions in the rows: (B, T) bool)."""
    device = next(network.parameters()).device
    whole = [row.whole for row in rows]
    targets = [row.read for row in whole]
    read: dict[str, list[Sequence[int]]] = {"": [*targets]}
    if whole[0].source:
        read = {"src_": [row.source for row in whole], "tgt_": [*targets]}
    texts = [pad(some, padding_id).to(device) for some in read.values()]
    is_text = {f"{side}is_text": text_in(some, device) for side, some in read.items()}
    if not hooks and _config_of(network).family != "encoder":
        is_text[[*read][-1] + "is_text"] = None  # right of a decoder's text: hidden as its future
    wanted = pad([row.wanted or () for row in whole], IGNORED).to(device)
    where = wanted != IGNORED
    logits = network(*texts, **is_text, where=where, hooks=hooks)
    return logits, wanted[where], where


def _config_of(network: nn.Module) -> ModelConfig:
    """The configuration of a network, also one wrapped for several processes."""
    inner: Any = getattr(network, "module", network)
    config: ModelConfig = inner.config
    return config


def summed_nats(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """The summed cross-entropy of (N, V) logits and (N,) token ids, in nats; a float32 scalar.

    smoothing: the share of each target spread evenly over all V tokens (Szegedy et al. 2016).
    The sums are float32 whatever the logits' dtype; the gradient has the logits' dtype.
    """
    n_rows = max(1, CHUNK_LOGITS // logits.shape[1])
    parts = [
        F.cross_entropy(rows.float(), wanted, reduction="sum", label_smoothing=smoothing)
        for rows, wanted in zip(logits.split(n_rows), targets.split(n_rows), strict=True)
    ]
    return torch.stack(parts).sum()


# ---- the optimizers ----

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # coefficients of Jordan et al.
NEWTON_SCHULZ_STEPS = 5


def orthogonalise(matrices: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Push all singular values of matrices (..., R, C) to about 1 (0.7 to 1.2), matrix by matrix;
    multiplies in dtype."""
    a, b, c = NEWTON_SCHULZ
    wide = matrices.shape[-2] <= matrices.shape[-1]
    x = (matrices if wide else matrices.mT).to(dtype)
    x = x.reshape(-1, *x.shape[-2:])  # (N, the smaller side, the larger)
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = x @ x.mT
        gram = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, gram, x, beta=a)
    return (x if wide else x.mT).reshape(matrices.shape).to(matrices.dtype)


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised, for `matrices`, each (R, C) or many of them, (N, R, C); Adam
    without weight decay for `others`.

    One learning rate serves both: an orthogonalised update is scaled to AdamW's usual size,
    0.2 * sqrt(the larger side). dtype: what the orthogonalisation multiplies in.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        others: Iterable[nn.Parameter],
        *,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.99),
        dtype: torch.dtype = torch.float32,
    ) -> None:
        groups = [
            {"params": list(matrices), "muon": True, "weight_decay": weight_decay},
            {"params": list(others), "muon": False, "weight_decay": 0.0},
        ]
        self.dtype = dtype
        super().__init__(groups, {"lr": lr, "momentum": momentum, "betas": betas, "eps": 1e-8})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            step = self._step_matrix if group["muon"] else self._step_adam
            for parameter in group["params"]:
                if parameter.grad is not None:
                    step(parameter, group)

    def _step_matrix(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        state, gradient = self.state[parameter], parameter.grad
        assert gradient is not None
        if "mean" not in state:
            state["mean"] = torch.zeros_like(parameter)
        state["mean"].lerp_(gradient, 1 - group["momentum"])
        ahead = gradient.lerp(state["mean"], group["momentum"])  # Nesterov's look-ahead
        update = orthogonalise(ahead, self.dtype)
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.sub_(update, alpha=group["lr"] * 0.2 * max(parameter.shape[-2:]) ** 0.5)

    def _step_adam(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        state, gradient = self.state[parameter], parameter.grad
        assert gradient is not None
        if "step" not in state:
            state["step"] = torch.zeros(())
            state["mean"] = torch.zeros_like(parameter)
            state["square"] = torch.zeros_like(parameter)
        first, second = group["betas"]
        state["step"] += 1
        count = float(state["step"])
        state["mean"].lerp_(gradient, 1 - first)
        state["square"].lerp_(gradient.square(), 1 - second)
        mean = state["mean"] / (1 - first**count)
        root = (state["square"] / (1 - second**count)).sqrt_().add_(group["eps"])
        parameter.addcdiv_(mean, root, value=-group["lr"])


def flatten_params(parameters: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    """A tensor (n, *shape) for the n parameters of each shape; they and their gradients become
    parts of it, in place. Gradients are from then on set to zero, not to None."""
    by_shape: dict[torch.Size, list[nn.Parameter]] = {}
    for parameter in parameters:
        by_shape.setdefault(parameter.shape, []).append(parameter)
    joined = []
    for parts in by_shape.values():
        whole = nn.Parameter(torch.stack([part.detach() for part in parts]))
        gradients = torch.zeros_like(whole)
        for part, value, gradient in zip(parts, whole.detach(), gradients, strict=True):
            part.data, part.grad = value, gradient
        whole.grad = gradients
        joined.append(whole)
    return joined


def updated_by(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    """The parameters that an optimizer updates, in its order."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def check_gradients(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    """A hook before an optimizer's step. Raises RuntimeError if gradients were set to None."""
    if any(parameter.grad is None for parameter in updated_by(optimizer)):
        raise RuntimeError(
            "flattened gradients were set to None; call zero_grad(set_to_none=False)"
        )


def make_optimizer(
    network: nn.Module, settings: Settings, dtype: torch.dtype = torch.float32
) -> torch.optim.Optimizer:
    """The recipe's optimizer; weights decay in the matrices between activations alone.

    Embeddings, norms and biases do not decay, and under "muon" Adam updates them. Its parameters
    are those of `flatten_params`: reset their gradients with zero_grad(set_to_none=False).
    """
    embeddings = {id(m.weight) for m in network.modules() if isinstance(m, nn.Embedding)}
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for parameter in filter(lambda each: each.requires_grad, network.parameters()):
        decays = parameter.dim() >= 2 and id(parameter) not in embeddings
        (matrices if decays else others).append(parameter)
    wholes, rest = flatten_params(matrices), flatten_params(others)
    decay, betas = settings.weight_decay, settings.betas
    optimizer: torch.optim.Optimizer
    if settings.optimizer == "muon":
        optimizer = Muon(wholes, rest, weight_decay=decay, betas=betas, dtype=dtype)
    else:
        groups = [{"params": wholes, "weight_decay": decay}, {"params": rest, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, betas=betas, fused=True)
    optimizer.register_step_pre_hook(check_gradients)
    return optimizer
