"""Parameters of views: each with its name, range, default and words.

From one declaration the page draws a control, a share link gets a field, and a program's request is
checked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from transformer.checks import (
    InvalidCall,
    check_choice,
    check_flag,
    check_number,
    check_whole,
    is_whole,
    shortened,
)
from transformer.messages import mark
from transformer.model.sites import KINDS, STACKS

Use = Literal["control", "place", "selection", "request"]

LONGEST = 2000  # characters of a text, and of a wrong value quoted in an error


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the most that a number of a decorated view may be; see `declaration.view`."""

    least: float
    most: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter(ABC):
    """One value that a view takes.

    name: in a request, e.g. "stage"; of a function's parameter it is that one's. title: on the
    page's control. use: "control" (a control on the page and a field of a link), "place" (a field
    of a link that names a place in the shown run or batch, and is dropped with another model),
    "selection" (the page's chosen head, token or place fills it in) or "request" (only scripts and
    programs give it). link: its field in a share link; by default the view's name, a full stop and
    its own. optional: None is allowed.
    """

    name: str = ""
    title: str = ""
    default: Any = None
    help: str = ""
    use: Use = "control"
    link: str = ""
    optional: bool = False

    def check(self, got: Any) -> Any:
        """The value to use. Raises ValueError if it is not allowed."""
        return None if got is None and self.optional else self._checked(got)

    @abstractmethod
    def _checked(self, got: Any) -> Any:
        """The value if it is allowed; `check` deals with an optional None."""

    def read(self, text: str) -> Any:
        """Parse the text of a query string; `check` still validates the value."""
        if text == "" and self.optional:
            return None
        try:
            return self._parsed(text)
        except ValueError:
            return text

    def _parsed(self, text: str) -> Any:
        """The value of a text. May raise ValueError."""
        return text

    def schema(self) -> dict[str, Any]:
        """The declaration as plain values, for the page and for programs."""
        facts = {name: getattr(self, name) for name in _SCHEMA_FIELDS if hasattr(self, name)}
        return {"type": type(self).__name__.lower()} | facts


_SCHEMA_FIELDS = ("name", "title", "help", "default", "use", "optional", "options", "least", "most")


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice(Parameter):
    """One of several names; options: each with its words on the page."""

    options: Mapping[str, str] = field(default_factory=dict)

    def _checked(self, got: Any) -> str:
        check_choice(self.name, got, self.options)
        return str(got)


@dataclass(frozen=True, kw_only=True, slots=True)
class Int(Parameter):
    """A whole number. most: None where the function itself checks, as by the run's length."""

    least: int = 0
    most: int | None = None

    def _checked(self, got: Any) -> int:
        if self.most is not None:
            return check_whole(self.name, got, self.least, self.most)
        if not is_whole(got) or not self.least <= got < 2**31:
            raise InvalidCall(
                "out_of_range",
                "{name} must be a whole number from {least}; got {got}",
                name=self.name,
                least=self.least,
                got=shortened(got),
            )
        return int(got)

    def _parsed(self, text: str) -> int:
        return int(text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Number(Parameter):
    """A number from least to most."""

    least: float = 0.0
    most: float = 1.0

    def _checked(self, got: Any) -> float:
        check_number(self.name, got, self.least, self.most)
        return float(got)

    def _parsed(self, text: str) -> float:
        return float(text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bool(Parameter):
    """Yes or no."""

    default: Any = False

    def _checked(self, got: Any) -> bool:
        check_flag(self.name, got)
        return bool(got)

    def _parsed(self, text: str) -> bool | str:
        words = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
        return words.get(text.lower(), text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Text(Parameter):
    """A text, or a name that the function itself checks."""

    default: Any = ""

    def _checked(self, got: Any) -> str:
        if not isinstance(got, str) or len(got) > LONGEST:
            raise InvalidCall(
                "wrong_type",
                "{name} must be a text of at most {most} characters; got {got}",
                name=self.name,
                most=LONGEST,
                got=shortened(got),
            )
        return got


@dataclass(frozen=True, kw_only=True, slots=True)
class IntList(Parameter):
    """Several whole numbers."""

    count: int = 64  # at most

    def _checked(self, got: Any) -> list[int]:
        if (
            not isinstance(got, list | tuple)
            or len(got) > self.count
            or not all(map(is_whole, got))
        ):
            raise InvalidCall(
                "wrong_type",
                "{name} must be a list of at most {most} whole numbers; got {got}",
                name=self.name,
                most=self.count,
                got=shortened(got),
            )
        return [int(number) for number in got]

    def _parsed(self, text: str) -> list[int]:
        return [int(part) for part in text.split(",") if part.strip()]


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadOrMean(Parameter):
    """A number of a head or layer, or "mean"."""

    default: Any = 0
    use: Use = "selection"

    def _checked(self, got: Any) -> int | str:
        if got != "mean" and not is_whole(got):
            raise InvalidCall(
                "out_of_range",
                "{name} must be a whole number or 'mean'; got {got}",
                name=self.name,
                got=shortened(got),
            )
        return got if isinstance(got, str) else int(got)

    def _parsed(self, text: str) -> int:
        return int(text)


# ---- shared by many views ----

SITE = Text(title=mark("Attention"), default="decoder.0.self", use="selection")
HEAD = HeadOrMean(title="Head")
ONE_HEAD = Int(title="Head", use="selection")
STACK = Choice(
    title="Stack", options=dict(zip(STACKS, STACKS, strict=True)), default="decoder",
    use="selection",
)  # fmt: skip
KIND = Choice(
    title="Kind", options=dict(zip(KINDS, KINDS, strict=True)), default="self",
    use="selection",
)  # fmt: skip
QUERY = Int(title="Query", use="selection")
LAST_READ = Int(
    title="Last token read", help="Its place in the text; without one, the last.", use="selection"
)
TARGET = Int(
    title="Token",
    help="The id of the token that parts add to; without one, the likeliest.",
    use="request",
)
ROW = Int(title="Sentence", default=0, use="request")
# The page's selection, in its link; see web/selection.js.
SELECTION = (
    Text(name="site", use="place"),  # of the chosen head
    Int(name="head", default=0, use="place"),
    Text(name="forward", use="place"),  # the feed-forward that is looked at in place of a head
    Text(name="read", use="place"),  # the chosen token: the last one that is read
    Text(name="key", use="place"),  # the key whose weight is asked about
)
