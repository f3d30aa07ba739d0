"""Parts of a run that are worked out when somebody first looks at them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

T = TypeVar("T")


class Later(Sequence[T]):
    """A tuple that is made at the first look; pickled, it is that tuple."""

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
        return isinstance(other, Later | tuple) and self.all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self.all())

    def __repr__(self) -> str:
        return repr(self.all())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.all(),)


class Labels(Mapping[int, str]):
    """id -> label, of the ids that `ids` names when somebody asks for all; pickled, a dict."""

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
