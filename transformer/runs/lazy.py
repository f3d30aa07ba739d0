"""Lazily computed parts of a run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

T = TypeVar("T")


class LazyTuple(Sequence[T]):
    """A lazily computed tuple; pickled, it is that tuple."""

    @abstractmethod
    def all(self) -> tuple[T, ...]:
        """Every element."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.all()[index]

    def __len__(self) -> int:
        return len(self.all())

    def __iter__(self) -> Iterator[T]:
        return iter(self.all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazyTuple | tuple) and self.all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self.all())

    def __repr__(self) -> str:
        return repr(self.all())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.all(),)


class LazyLabels(Mapping[int, str]):
    """id -> label; `ids` names the keys, called when all are asked for; pickled, a dict."""

    def __init__(self, label: Callable[[int], str], ids: Callable[[], set[int]]) -> None:
        self._label, self._ids = label, ids

    def __getitem__(self, token: int) -> str:
        return self._label(token)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._ids()))

    def __len__(self) -> int:
        return len(self._ids())

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)
