"""What the project says to people, in their language. The English sentence itself is the key.

    raise invalid("top_k must be 0 to {most}; got {got}", most=size, got=shortened(k))

A placeholder is a name in braces and nothing more; how a number is written says `numeral`. What is
declared where the module is read (titles, words, helps) is marked with `mark` there, and said where
it is shown. What only a command says is plain English, as its --help is.
`python -m transformer.messages update` puts new sentences into the catalogues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from transformer.checks import InvalidRequest
from transformer.messages.catalogues import ENGLISH, Catalogue, catalogue, languages

__all__ = [
    "ENGLISH", "Catalogue", "Invalid", "catalogue", "chosen", "filled", "invalid", "language",
    "languages", "mark", "numeral", "say", "say_error", "say_n", "signs", "speaking",
]  # fmt: skip

_PLACEHOLDER = re.compile(r"(?<!%)\{([a-z]\w*)\}")  # %{x} is Plotly's
# Placeholders whose values are words of ours ("decoder", "self", "weights"): they are said too.
OURS = {"stack", "kind", "sort", "stage"}
_LANGUAGE: ContextVar[str] = ContextVar("language", default=ENGLISH)


def say(sentence: str, /, **values: object) -> str:
    """The sentence in the language of this request, its placeholders filled in."""
    known = catalogue(_LANGUAGE.get())
    own = {name: known.one(str(values[name])) for name in OURS & values.keys()}
    return filled(known.one(sentence), values | own)


def say_n(one: str, many: str, n: int, /, **values: object) -> str:
    """The sentence for n things; {n} is the number. English has two forms, others have more."""
    known = catalogue(_LANGUAGE.get())
    own = {name: known.one(str(values[name])) for name in OURS & values.keys()}
    return filled(known.form(one, many, n), {"n": numeral(n)} | values | own)


class Invalid(ValueError):
    """A wrong value. Its sentence is in the language of whoever reads it: str() says it."""

    def __init__(self, sentence: str, /, **values: object) -> None:
        super().__init__(sentence)
        self.sentence, self.values = sentence, values

    def __str__(self) -> str:
        return say(self.sentence, **self.values)


def invalid(sentence: str, /, **values: object) -> Invalid:
    """The error to raise for an invalid value. Other errors may be among the values."""
    return Invalid(sentence, **values)


def say_error(error: BaseException) -> str:
    """An error's text in the language of this request; English unless it is an InvalidRequest."""
    if isinstance(error, InvalidRequest):
        return error.translated(catalogue(_LANGUAGE.get()).one, numeral)
    return str(error)


def mark(sentence: str) -> str:
    """The sentence itself: it is collected here, and said where it is shown."""
    return sentence


def numeral(value: Any, form: str = ",") -> str:
    """A number as text, as Python's format specifier says, with the signs of this language."""
    return catalogue(_LANGUAGE.get()).number(format(value, form))


def signs() -> str:
    """This language's decimal sign and the one between groups of digits, as Plotly has them."""
    known = catalogue(_LANGUAGE.get())
    return known.decimal + known.group


def filled(sentence: str, values: dict[str, object]) -> str:
    """The sentence with its placeholders' values; a placeholder without one stays."""
    if not values:
        return sentence
    return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), sentence)


def language() -> str:
    """The language of this request, such as "fr"."""
    return _LANGUAGE.get()


@contextmanager
def speaking(name: str) -> Iterator[None]:
    """Everything said inside, in this thread or task, is in this language."""
    token = _LANGUAGE.set(name)
    try:
        yield
    finally:
        _LANGUAGE.reset(token)


def chosen(accepted: str) -> str:
    """The language that an Accept-Language header likes best of those that there are."""
    known, best, found = languages(), 0.0, ENGLISH
    for part in accepted[:200].split(","):
        name, _, weight = part.strip().lower().partition(";q=")
        try:
            liked = float(weight or 1)
        except ValueError:
            continue
        near = name if name in known else name.partition("-")[0]
        if near in known and liked > best:
            best, found = liked, near
    return found
