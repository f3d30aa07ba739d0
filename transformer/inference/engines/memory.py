"""Memory that `step.c` reads and writes, which takes every address for 4-byte floats.

Nothing here depends on PyTorch's default dtype or device, which other libraries change.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

FLOATS = (torch.float32,)


def new_floats(*shape: int) -> Tensor:
    """Uninitialized numbers: float32, on the CPU, in one piece."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def address_of(
    tensor: Tensor, n_numbers: int | None = None, types: Sequence[torch.dtype] = FLOATS
) -> int:
    """The address of a tensor of at least this many numbers; None: of any size.

    Raises ValueError for another type or device, for numbers that do not lie in one piece, and for
    fewer of them.
    """
    if tensor.dtype not in types or tensor.device.type != "cpu":
        raise ValueError(
            f"the compiled step needs float32 weights on a CPU; got {tensor.dtype} on "
            f"{tensor.device.type}"
        )
    if not tensor.is_contiguous():
        raise ValueError("the compiled step needs weights that lie in one piece; got a view")
    if n_numbers is not None and tensor.numel() < n_numbers:
        raise ValueError(
            f"the compiled step needs memory for {n_numbers} numbers; got {tensor.numel()}"
        )
    return tensor.data_ptr()
