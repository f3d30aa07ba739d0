"""Weights in safetensors files, each read when it is asked for."""

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
from transformer.messages import invalid, numeral, say

READ = {
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}  # as safetensors calls them
_SHARD = re.compile(r"[\w.-]{1,188}\.safetensors")


class WeightFiles(Mapping[str, Tensor]):
    """Name -> tensor, of one checkpoint's files.

    Nothing is kept: each asking reads the tensor anew into memory of its own, so that whoever
    converts one and lets go what it was made of holds little more than the result. (The library's
    own tensors all point into one map of the file, which stays as long as any of them.)

    Raises ValueError, in one sentence, for a file that is not readable; asking raises it for a
    tensor of other numbers than READ, or of numbers that are not finite.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        _check_room(paths)
        self._places: dict[str, _Place] = {}
        for path in paths:
            try:
                self._places |= _places(path)
            except (SafetensorError, OSError, ValueError, RuntimeError) as error:
                raise _unreadable(path, error) from error

    @property
    def n_numbers(self) -> int:
        """How many numbers all tensors have."""
        return sum(place.n_numbers for place in self._places.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, name: str) -> Tensor:
        place = self._places[name]
        try:
            tensor = place.read()
        except OSError as error:
            raise _unreadable(place.path, error) from error
        ends = torch.stack(tensor.aminmax()) if tensor.numel() else tensor  # needs no room
        if not bool(ends.isfinite().all()):
            raise invalid(
                "{folder} has numbers in {name} that are not finite",
                folder=place.path.parent,
                name=name,
            )
        return tensor


class _Place:
    """Where a tensor lies in a file, from its header's entry."""

    def __init__(self, path: Path, name: str, about: dict[str, Any], start: int) -> None:
        self.path, self.name = path, name
        self._kind, self._shape = about["dtype"], about["shape"]
        self._start = start + about["data_offsets"][0]
        self.n_numbers = math.prod(self._shape)

    def read(self) -> Tensor:
        """The tensor, from the file."""
        if self._kind not in READ:
            raise invalid(
                "{folder} has {dtype} numbers in {name}; allowed: {allowed}",
                folder=self.path.parent,
                dtype=self._kind,
                name=self.name,
                allowed=", ".join(READ),
            )
        tensor = torch.empty(self._shape, dtype=READ[self._kind])
        with self.path.open("rb") as file:
            file.seek(self._start)
            n_read = file.readinto(tensor.view(-1).view(torch.uint8).numpy().data)
        if n_read != tensor.nbytes:
            raise OSError(say("it ended too early"))
        return tensor


def _places(path: Path) -> dict[str, _Place]:
    """Where a file's tensors lie, once the library has checked all that its header says."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise OSError(say("{path} is no plain file", path=path))
    with safe_open(path, "pt"):
        pass
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return {name: _Place(path, name, about, 8 + size) for name, about in header.items()}


def shard_names(index: Path) -> list[str]:
    """The files that a model.safetensors.index.json names. Raises ValueError."""
    try:
        content = json.loads(text_of(index))
        named = {Path(name).name for name in content["weight_map"].values()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise invalid(
            "{path} must be JSON that names the file of each weight under 'weight_map'", path=index
        ) from error
    for name in named:
        if not _SHARD.fullmatch(name):
            raise invalid(
                "{path} names the file {name}; allowed: names of at most 200 characters that end "
                "in .safetensors",
                path=index,
                name=shortened(name),
            )
    return sorted(named)


def _check_room(paths: Sequence[Path]) -> None:
    """Raise ValueError for files that this machine's memory does not hold."""
    size = sum(path.stat().st_size for path in paths if path.is_file())
    if size > (memory := memory_bytes()):
        raise invalid(
            "the weights in {folder} take {size} GB, and this machine has {memory} GB of memory",
            folder=paths[0].parent,
            size=numeral(size / 1e9, ",.1f"),
            memory=numeral(memory / 1e9, ",.1f"),
        )


def memory_bytes() -> float:
    """The memory of this machine; infinite where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return math.inf


def _unreadable(path: Path, error: Exception) -> ValueError:
    return invalid("{path} is not a readable safetensors file: {error}", path=path, error=error)
