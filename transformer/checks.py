"""Check arguments (names, numbers, texts, files); errors are one sentence."""

from __future__ import annotations

import numbers
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

MOST_BYTES = 200_000_000  # of a file that is read at once; the largest tokenizers take 35 MB


class InvalidRequest(ValueError):
    """A mistake that a visitor of the page or a program of the API can make.

    code: a short name that programs can rely on, such as "too_long". sentence: English, with the
    {names} of values; the page translates it. A value may be an InvalidRequest itself.
    """

    def __init__(self, code: str, sentence: str, /, **values: object) -> None:
        super().__init__(code, sentence)
        self.code, self.sentence, self.values = code, sentence, values

    def __str__(self) -> str:
        return self.translated(str, format)

    def translated(
        self, sentence: Callable[[str], str], number: Callable[[float, str], str]
    ) -> str:
        """The error's text, given a language's translation and number format."""

        def text_of(value: object) -> str:
            if isinstance(value, InvalidRequest):
                return value.translated(sentence, number)
            if is_number(value):
                return number(value, "," if is_whole(value) else "g")
            return str(value)

        return sentence(self.sentence).format(**{k: text_of(v) for k, v in self.values.items()})


class InvalidCall(InvalidRequest):
    """A mistake that only a program of the API can make: English whatever the language."""


def is_number(got: Any) -> TypeGuard[float]:
    """Whether it is a real number, including NumPy scalars but not booleans."""
    return isinstance(got, numbers.Real) and not isinstance(got, bool | np.bool_)


def is_whole(got: Any) -> TypeGuard[int]:
    """Whether it is an integer, including NumPy's and tensors of no dimension but not booleans."""
    if isinstance(got, numbers.Integral):
        return not isinstance(got, bool | np.bool_)
    return is_scalar(got) and isinstance(got.item(), int) and not isinstance(got.item(), bool)


def is_scalar(got: Any) -> bool:
    """Whether it is a number of NumPy's, or an array or tensor of no dimension."""
    return hasattr(got, "item") and getattr(got, "ndim", None) == 0


def check_number(
    name: str, got: Any, lowest: float, highest: float, *, above: bool = False
) -> None:
    """Raise ValueError unless got is in the range (above its lower end if `above`)."""
    got = got.item() if is_scalar(got) else got
    if not is_number(got) or not lowest <= got <= highest or (above and got == lowest):  # NaN too
        values = {"name": name, "lowest": lowest, "highest": highest, "got": shortened(got)}
        if above:
            raise InvalidRequest(
                "out_of_range",
                "{name} must be a number above {lowest} to {highest}; got {got}",
                **values,
            )
        raise InvalidRequest(
            "out_of_range",
            "{name} must be a number from {lowest} to {highest}; got {got}",
            **values,
        )


def check_whole(name: str, got: Any, lowest: int, highest: int) -> int:
    """Return got as an int. Raises ValueError unless it is a whole number in the range."""
    if not is_whole(got) or not lowest <= got <= highest:
        raise InvalidRequest(
            "out_of_range",
            "{name} must be a whole number from {lowest} to {highest}; got {got}",
            name=name,
            lowest=lowest,
            highest=highest,
            got=shortened(got),
        )
    return int(got)


def check_least(name: str, got: Any, least: int) -> None:
    """Raise ValueError unless got is an int of at least `least`."""
    if not isinstance(got, int) or isinstance(got, bool) or got < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {shortened(got)}")


def check_choice(name: str, got: Any, allowed: Collection[str] | Collection[int]) -> None:
    """Raise ValueError, listing the allowed values, for any other value."""
    if not isinstance(got, str | int) or isinstance(got, bool) or got not in allowed:
        raise InvalidCall(
            "unknown_choice",
            "{name} must be one of {allowed}; got {got}",
            name=name,
            allowed=list(allowed),
            got=shortened(got),
        )


def check_flag(name: str, got: Any) -> None:
    """Raise ValueError unless got is True or False."""
    if not isinstance(got, bool):
        raise InvalidCall(
            "wrong_type", "{name} must be true or false; got {got}", name=name, got=shortened(got)
        )


def check_names(name: str, given: Mapping[str, Any], allowed: Collection[str]) -> None:
    """Raise ValueError for an argument with an unknown name."""
    for got in given:
        if got not in allowed:
            raise InvalidCall(
                "unknown_name",
                "{name} takes {allowed}; got {got}",
                name=name,
                allowed=sorted(allowed),
                got=shortened(got),
            )


def shortened(got: Any) -> str:
    """The repr of a wrong value, cut to quote it in an error."""
    text = repr(got)
    return text if len(text) <= 60 else f"{text[:60]}…"


def check_text(text: Any) -> None:
    """Raise ValueError unless it is a string that is not blank."""
    if not isinstance(text, str):
        got = type(text).__name__
        raise ValueError(f"the text must be a string; got {got}")
    if not text.strip():
        raise InvalidRequest("empty_text", "the text is empty: write something in it first")


def check_texts(texts: Any) -> None:
    """Raise ValueError unless it is a list of strings, none of them blank."""
    if isinstance(texts, str):
        raise ValueError(
            f"a list of texts is needed; got one string, {shortened(texts)}: put it in []"
        )
    if not isinstance(texts, Sequence):
        raise ValueError(f"a list of texts is needed; got {type(texts).__name__}")
    if not texts:
        raise ValueError("at least one text is needed; got an empty list")
    check_each(texts)


def check_each(texts: Sequence[Any], check: Callable[[Any], Any] = check_text) -> None:
    """Check every text of a batch; the ValueError says which text is wrong."""
    for number, text in enumerate(texts):
        try:
            check(text)
        except ValueError as error:
            raise InvalidRequest(
                getattr(error, "code", "invalid_text"),
                "text {number} of {n_texts}, counted from 0: {error}",
                number=number,
                n_texts=len(texts),
                error=error,
            ) from error


def needs_package(user: str, package: str) -> str:
    """An error text: the package that `user` needs, and the command that installs it."""
    return f"{user} needs the package {package}: pip install {shlex.quote(package)}"


def check_file(path: Path) -> None:
    """Raise OSError unless it is a regular file (a pipe would block) of a reasonable size."""
    if not path.exists():
        return  # opening the file reports the error
    if not path.is_file():
        raise OSError(f"{path} is not a regular file")
    size = path.stat().st_size
    if size > MOST_BYTES:
        most = MOST_BYTES // 10**6
        raise OSError(f"it takes {size / 1e6:,.0f} MB; allowed: at most {most:,} MB")


def text_of(path: Path, errors: str = "strict") -> str:
    """A file's text, UTF-8, without a byte-order mark. Raises OSError as `check_file` does, and
    ValueError for other bytes."""
    check_file(path)
    return path.read_text(encoding="utf-8-sig", errors=errors)
