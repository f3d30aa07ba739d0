"""A second device for machines without a GPU: flows run on it as on one, and give the same numbers.

Its tensors compute on the CPU and are said to be on "meta". As on a GPU, an operation with tensors
of two devices raises, and the CPU waits where it reads a tensor's value.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("meta")
aten = torch.ops.aten
# The CPU reads a number, or how many results there are.
READS = {aten._local_scalar_dense, aten.equal, aten.nonzero, aten.masked_select, aten._unique2}
INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
COPIES = {aten._to_copy, aten.copy_}


class OnDevice(Tensor):
    """A tensor on the device. on_cpu: its numbers, on the CPU."""

    on_cpu: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Any:
        with torch.inference_mode(False):
            made = Tensor._make_wrapper_subclass(
                cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(),
                dtype=inner.dtype, device=DEVICE,
            )  # fmt: skip
        made.on_cpu = inner
        return made

    def tolist(self) -> Any:
        """PyTorch's own copies to the CPU too, but not from a subclass."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, *_: Any) -> Any:
        raise AssertionError(f"{func} outside of a pretended device")


class _Computing(TorchDispatchMode):
    """Computes on the device. waits: how often the CPU read from it, by operation."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func.overloadpacket, dict(kwargs or {})
        with self:
            parts = func.decompose(*args, **kwargs)  # into operations that PyTorch's backends have
        if parts is not NotImplemented:
            return parts
        tensors: list[Tensor] = []

        def unpacked(x: Tensor) -> Tensor:
            tensors.append(x)
            return getattr(x, "on_cpu", x)

        inner = _mapped((args, kwargs), unpacked)
        there = [isinstance(x, OnDevice) for x in tensors]
        device = kwargs.get("device")
        is_there = any(there) if device is None else device == DEVICE
        if device is not None:
            inner[1]["device"] = torch.device("cpu")
        if name in COPIES:
            is_there = there[0] if name is aten.copy_ else is_there
            self._count(name, there[-1] and not is_there)
        elif any(there):
            self._check(name, args, tensors)
        result = func(*inner[0], **inner[1])
        if not is_there:
            return result
        changed = {id(x.on_cpu): x for x in tensors if isinstance(x, OnDevice)}  # in place
        return _mapped(result, lambda x: changed[id(x)] if id(x) in changed else OnDevice(x))

    def _check(self, name: Any, args: Any, tensors: list[Tensor]) -> None:
        """Raise RuntimeError where devices mix; count what the CPU reads."""
        indices = [x for x in args[1] if x is not None] if name in INDEXING else []
        self._count(name, name in READS or any(x.dtype is torch.bool for x in indices))
        if any(x.dim() and not isinstance(x, OnDevice) for x in tensors):
            raise RuntimeError(f"{name} of a tensor on the CPU, or a list, and one on the device")

    def _count(self, name: Any, is_read: bool) -> None:
        if is_read:
            self.waits[str(name)] += 1


def _mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """Nested values with a function applied to each tensor."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(each, change) for name, each in value.items()}
    return type(value)(_mapped(x, change) for x in value) if type(value) in (list, tuple) else value


@contextmanager
def pretended_device() -> Iterator[Counter[str]]:
    """A block in which "meta" computes; yields how often the CPU has read from it, by operation."""
    made = torch.tensor

    def tensor(values: Any, *, device: Any = None, **options: Any) -> Tensor:
        """Moved once it is made: PyTorch makes one on "meta" without its numbers."""
        return made(values, **options).to(device or "cpu")

    with patch.object(torch, "tensor", tensor), _Computing() as computing:
        yield computing.waits
