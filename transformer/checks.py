"""What a caller may give: names, numbers, texts, files; all else is refused in one sentence."""

from __future__ import annotations

import numbers
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from transformer.messages import invalid, numeral, say

MOST_BYTES = 200_000_000  # of a file that is read at once; the largest tokenizers take 35 MB


def is_number(got: Any) -> TypeGuard[float]:
    """Whether it is a real number, NumPy's scalars among them; a truth value is none."""
    return isinstance(got, numbers.Real) and not isinstance(got, bool | np.bool_)


def is_whole(got: Any) -> TypeGuard[int]:
    """Whether it is a whole number, NumPy's scalars among them; a truth value is none."""
    return isinstance(got, numbers.Integral) and not isinstance(got, bool | np.bool_)


def check_number(
    name: str, got: Any, lowest: float, highest: float, *, above: bool = False
) -> None:
    """Raise ValueError unless got is a number in the range (its lower end out if `above`)."""
    if not is_number(got) or not lowest <= got <= highest or (above and got == lowest):  # NaN too
        values = {"lowest": numeral(lowest, "g"), "highest": numeral(highest, "g")}
        values |= {"name": name, "got": shortened(got)}
        if above:
            raise invalid(
                "{name} must be a number above {lowest} to {highest}; got {got}", **values
            )
        raise invalid("{name} must be a number from {lowest} to {highest}; got {got}", **values)


def check_whole(name: str, got: Any, lowest: int, highest: int) -> int:
    """The whole number that got is. Raises ValueError unless it is one in the range."""
    if not is_whole(got) or not lowest <= got <= highest:
        raise invalid(
            "{name} must be a whole number from {lowest} to {highest}; got {got}",
            name=name,
            lowest=numeral(lowest),
            highest=numeral(highest),
            got=shortened(got),
        )
    return int(got)


def check_least(name: str, got: Any, least: int) -> None:
    """Raise ValueError unless got is a whole number of Python's own, at least `least`."""
    if not isinstance(got, int) or isinstance(got, bool) or got < least:
        raise invalid(
            "{name} must be a whole number of at least {least}; got {got}",
            name=name,
            least=least,
            got=shortened(got),
        )


def check_choice(name: str, got: Any, allowed: Collection[str] | Collection[int]) -> None:
    """Raise ValueError, listing what is allowed, for anything but these strings or numbers."""
    if not isinstance(got, str | int) or isinstance(got, bool) or got not in allowed:
        raise invalid(
            "{name} must be one of {allowed}; got {got}",
            name=name,
            allowed=list(allowed),
            got=shortened(got),
        )


def check_flag(name: str, got: Any) -> None:
    """Raise ValueError unless got is True or False."""
    if not isinstance(got, bool):
        raise invalid("{name} must be true or false; got {got}", name=name, got=shortened(got))


def check_names(name: str, given: Mapping[str, Any], allowed: Collection[str]) -> None:
    """Raise ValueError for an argument of another name."""
    for got in given:
        if got not in allowed:
            raise invalid(
                "{name} takes {allowed}; got {got}",
                name=name,
                allowed=sorted(allowed) or say("nothing"),
                got=shortened(got),
            )


def shortened(got: Any) -> str:
    """A wrong value as an error tells it back: no longer than a line."""
    text = repr(got)
    return text if len(text) <= 60 else f"{text[:60]}…"


def check_text(text: Any) -> None:
    """Raise ValueError unless it is a text with something in it."""
    if not isinstance(text, str):
        raise invalid("the text must be a string; got {got}", got=type(text).__name__)
    if not text.strip():
        raise invalid("the text is empty: write something in it first")


def check_texts(texts: Any) -> None:
    """Raise ValueError unless these are several texts, each with something in it."""
    if isinstance(texts, str):
        raise invalid(
            "a list of texts is needed; got one string, {texts}: put it in []",
            texts=shortened(texts),
        )
    if not isinstance(texts, Sequence):
        raise invalid("a list of texts is needed; got {got}", got=type(texts).__name__)
    if not texts:
        raise invalid("at least one text is needed; got an empty list")
    check_each(texts)


def check_each(texts: Sequence[Any], check: Callable[[Any], Any] = check_text) -> None:
    """Check every text of a batch; the ValueError says which one is at fault."""
    for place, text in enumerate(texts):
        try:
            check(text)
        except ValueError as error:
            raise invalid(
                "text {place} of {n_texts}, counted from 0: {error}",
                place=place,
                n_texts=len(texts),
                error=error,
            ) from error


def needs_package(what: str, package: str) -> str:
    """Which package is not installed, and the command that installs it. what: what needs it."""
    command = f"pip install {shlex.quote(package)}"
    return say(
        "{what} needs the package {package}: {command}", what=what, package=package, command=command
    )


def check_file(path: Path) -> None:
    """Raise OSError unless it is a regular file (a pipe would block) of a reasonable size."""
    if not path.exists():
        return  # opening the file reports the error
    if not path.is_file():
        raise OSError(say("{path} is no plain file", path=path))
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise OSError(
            say(
                "it takes {size} MB; allowed: at most {most} MB",
                size=numeral(size / 1e6, ",.0f"),
                most=numeral(MOST_BYTES / 1e6, ",.0f"),
            )
        )


def text_of(path: Path, errors: str = "strict") -> str:
    """A file's text, UTF-8, without a byte-order mark. Raises OSError as `check_file` does, and
    ValueError for other bytes."""
    check_file(path)
    return path.read_text(encoding="utf-8-sig", errors=errors)
