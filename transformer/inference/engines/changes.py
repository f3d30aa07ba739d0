"""Find out whether a network has changed since an engine read its weights.

The engine keeps addresses and copies of weights. Between two texts the network may be trained, get
other weights or another module; no run may use the old weights.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter, methodcaller
from typing import Any
from weakref import WeakKeyDictionary

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transformer.model.transformer import build_transformer

# Of each network, what its weights were (a Fingerprint; not on the CPU, addresses and counts of
# changes), and their digest.
_digests: WeakKeyDictionary[nn.Module, tuple[Any, str]] = WeakKeyDictionary()
_versions = attrgetter("_version")
_values = methodcaller("values")
_MAY_BE_COUNTED = ("", "encoder", "decoder")


class Fingerprint:
    """A network's modules and weights at one moment.

    Compares modules, parameters, buffers, addresses, and PyTorch's count of changes in place.
    Uncounted changes (`parameter.data`, NumPy, optimizers with fused=True) are found in a sample of
    the copied weights, see `_sampled`; one of fewer numbers than a row or a column may be missed.
    5.4 million weights took 0.1 ms of processor time.
    """

    def __init__(self, network: nn.Module, copied: Sequence[Tensor]) -> None:
        tables: list[tuple[dict[str, Any], ...]] = [
            (module._modules, module._parameters, module._buffers) for module in network.modules()
        ]
        self._parts = [table for table in chain(*tables) if table]
        self._hooks = [
            hooks
            for name, module in network.named_modules()
            if name not in _MAY_BE_COUNTED
            for hooks in (module._forward_hooks, module._forward_pre_hooks)
        ]
        # Kept alive, so that no address is reused.
        self._held: list[Any] = [*chain.from_iterable(map(_values, self._parts))]
        self._ids = [*map(id, self._held)]
        tensors = [*network.parameters(), *network.buffers()]
        self._tensors, self._storages = tensors, [tensor.detach() for tensor in tensors]
        self._counted = [tensor for tensor in tensors if not tensor.is_inference()]
        self._counts = [*map(_versions, self._counted)]
        self._addresses = [*map(Tensor.data_ptr, tensors)]
        samples = [_bits(_sampled(weight.detach())) for weight in copied]
        self._samples = [(sample, sample.tobytes()) for sample in samples]

    @property
    def same_parts(self) -> bool:
        """Whether no module, parameter or buffer was replaced."""
        return [*map(id, chain.from_iterable(map(_values, self._parts)))] == self._ids

    @property
    def same(self) -> bool:
        """Whether nothing was changed."""
        return (
            self.same_parts
            and [*map(_versions, self._counted)] == self._counts
            and [*map(Tensor.data_ptr, self._tensors)] == self._addresses
            and all(sample.tobytes() == seen for sample, seen in self._samples)
        )

    @property
    def is_hooked(self) -> bool:
        """Whether a PyTorch forward hook may alter the output of a layer or a part of it. (Hooks of
        the network and its stacks are assumed to count passes.)"""
        return any(self._hooks)


@torch.no_grad()
def digest(network: nn.Module) -> str:
    """A short name of a network's weights, from a sample of each, see `_sampled`. It misses changes
    as `Fingerprint` does, and on a GPU those that PyTorch does not count.
    """
    before, name = _digests.get(network, (None, ""))
    if isinstance(before, Fingerprint) and before.same:
        return name
    weights = [*network.parameters()]
    on_cpu = all(weight.device.type == "cpu" for weight in weights)
    now = [] if on_cpu else [(weight.data_ptr(), weight._version) for weight in weights]
    if on_cpu or before != now:
        numbers = torch.cat([_sampled(weight.detach()).flatten().float() for weight in weights])
        name = hashlib.blake2b(numbers.cpu().numpy().tobytes(), digest_size=8).hexdigest()
        _digests[network] = Fingerprint(network, weights) if on_cpu else now, name
    return name


def is_as_configured(network: nn.Module) -> bool:
    """Whether a network has the modules and sizes of its configuration."""
    with torch.device("meta"):
        new = build_transformer(network.config)  # type: ignore[arg-type]
    return _outline(network) == _outline(new)


def _outline(network: nn.Module) -> list[tuple[Any, ...]]:
    types: list[tuple[Any, ...]] = [(name, type(part)) for name, part in network.named_modules()]
    named = network.named_parameters(remove_duplicate=False)
    return types + [(name, parameter.shape) for name, parameter in named]


def _bits(sample: Tensor) -> NDArray[Any]:
    """A view of numbers as NumPy has them, bfloat16 as whole numbers."""
    return (sample.view(torch.int16) if sample.dtype == torch.bfloat16 else sample).numpy()


def _sampled(weight: Tensor) -> Tensor:
    """A view of some numbers: all of a vector; of (R, C) at least one in each row and column."""
    if weight.dim() == 2 and not weight.is_contiguous():
        weight = weight.T
    if weight.dim() != 2 or not weight.is_contiguous():
        return weight
    n_rows, width = weight.shape
    if width % n_rows == 0:  # some neighbours in each row: few lines of the CPU's cache
        side = width // n_rows
        return weight.as_strided((n_rows, side), (width + side, 1))
    step = min(n_rows, width)
    while math.gcd(step, width) > 1:
        step -= 1
    return weight.view(-1)[::step]
