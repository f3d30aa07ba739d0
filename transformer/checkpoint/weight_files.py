"""Weights in safetensors files, each read from disk when it is looked up."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from transformer.checks import shortened, text_of

DTYPES = {
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}  # as safetensors calls them
# What torch.compile, DataParallel and FSDP put into the names of a network that they wrap.
_WRAPPERS = re.compile(
    r"^(module\.)+|\b_(orig_mod|fsdp_wrapped_module|checkpoint_wrapped_module)\."
)
_SHARD = re.compile(r"[\w.-]{1,188}\.safetensors")


class WeightFiles(Mapping[str, Tensor]):
    """Name -> tensor, of one checkpoint's files.

    Nothing is cached: each look-up reads the tensor into new memory, so a caller that converts
    tensors one by one holds little more than the result. (safetensors' own tensors share one map
    of the file, which stays open as long as any of them.)

    Raises ValueError for an unreadable file; a look-up raises it for a tensor whose type is not in
    DTYPES, or whose numbers are not finite.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        _check_room(paths)
        self._entries: dict[str, _Entry] = {}
        for path in paths:
            try:
                self._entries |= _entries(path)
            except (SafetensorError, OSError, ValueError, RuntimeError) as error:
                raise _unreadable(path, error) from error

    @property
    def n_numbers(self) -> int:
        """The number of elements of all tensors."""
        return sum(entry.n_numbers for entry in self._entries.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, name: str) -> Tensor:
        entry = self._entries[name]
        try:
            tensor = entry.read()
        except OSError as error:
            raise _unreadable(entry.path, error) from error
        ends = torch.stack(tensor.aminmax()) if tensor.numel() else tensor  # without a copy
        if not bool(ends.isfinite().all()):
            raise ValueError(f"{entry.path.parent} has numbers in {name} that are not finite")
        return tensor


class _Entry:
    """A tensor's place in a file, from the file's header."""

    def __init__(self, path: Path, name: str, about: dict[str, Any], start: int) -> None:
        self.path, self.name = path, name
        self._kind, self._shape = about["dtype"], about["shape"]
        self._start = start + about["data_offsets"][0]
        self.n_numbers = math.prod(self._shape)

    def read(self) -> Tensor:
        """The tensor, from the file."""
        if self._kind not in DTYPES:
            raise ValueError(
                f"{self.path.parent} has {self._kind} numbers in {self.name}; allowed: "
                f"{', '.join(DTYPES)}"
            )
        tensor = torch.empty(self._shape, dtype=DTYPES[self._kind], device="cpu")
        with self.path.open("rb") as file:
            file.seek(self._start)
            n_read = file.readinto(tensor.view(-1).view(torch.uint8).numpy().data)
        if n_read != tensor.nbytes:
            raise OSError("it ended too early")
        return tensor


def _entries(path: Path) -> dict[str, _Entry]:
    """A file's tensors, after safetensors has checked the header."""
    if path.exists() and not path.is_file():  # a pipe would block
        raise OSError(f"{path} is not a regular file")
    with safe_open(path, "pt"):
        pass
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return {plain_name(name): _Entry(path, name, about, 8 + size) for name, about in header.items()}


def plain_name(name: str) -> str:
    """A weight's name in the network itself, whatever wrapped it when it was saved."""
    return _WRAPPERS.sub("", name)


def shard_names(index: Path) -> list[str]:
    """The files that a model.safetensors.index.json names. Raises ValueError."""
    try:
        content = json.loads(text_of(index))
        named = {Path(name).name for name in content["weight_map"].values()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{index} must be JSON that names the file of each weight under 'weight_map'"
        ) from error
    for name in named:
        if not _SHARD.fullmatch(name):
            raise ValueError(
                f"{index} names the file {shortened(name)}; allowed: names of at most 200 "
                "characters that end in .safetensors"
            )
    return sorted(named)


def _check_room(paths: Sequence[Path]) -> None:
    """Raise ValueError for files larger than this machine's memory."""
    size = sum(path.stat().st_size for path in paths if path.is_file())
    if size > (memory := memory_bytes()):
        raise ValueError(
            f"the weights in {paths[0].parent} take {size / 1e9:,.1f} GB, and this machine has "
            f"{memory / 1e9:,.1f} GB of memory"
        )


def memory_bytes() -> float:
    """The memory of this machine; infinite if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return math.inf


def _unreadable(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} is not a readable safetensors file: {error}")
