"""Translate what the page says. The English sentence itself is the key.

    say("the encoder read {n_tokens} tokens", n_tokens=numeral(12))

A placeholder is a name in braces and nothing more; `numeral` writes numbers. Sentences declared
when a module is imported (titles, words, helps) are marked with `mark`, and said where they are
shown. Commands and library errors are English.
`python -m transformer.messages update` puts new sentences into the catalogues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec

from transformer.checks import InvalidRequest
from transformer.messages.catalogues import ENGLISH, Catalogue, catalogue, languages

__all__ = [
    "ENGLISH", "HOLE", "Catalogue", "capital", "catalogue", "filled", "language",
    "languages", "lines", "mark", "negotiate_language", "numeral", "said_later", "say", "say_error",
    "say_n", "signs", "speaking",
]  # fmt: skip

HOLE = re.compile(r"(?<!%)\{([a-z]\w*)\}")  # %{x} is Plotly's
_LANGUAGE: ContextVar[str] = ContextVar("language", default=ENGLISH)
_P = ParamSpec("_P")


class _Later(str):
    """In place of a language: calls are written, and their sentences kept."""

    __slots__ = ("sentences",)

    def __init__(self, _: str) -> None:
        self.sentences = set[str]()


@contextmanager
def said_later() -> Iterator[set[str]]:
    """Write each call of `say` and its like instead of its text, for a script to say in any
    language (views/export/static/later.js). Yields the sentences, as they are said."""
    later = _Later(ENGLISH)
    with speaking(later):
        yield later.sentences


def _later(function: Callable[_P, str]) -> Callable[_P, str]:
    """Let the calls of a function be written, see `said_later`: NAME, arguments, then NAME=VALUE,
    between private characters, which no label of a token has."""

    @wraps(function)
    def told(*args: _P.args, **values: _P.kwargs) -> str:
        later = _LANGUAGE.get()
        if not isinstance(later, _Later):
            return function(*args, **values)
        if function.__name__.startswith("say"):
            later.sentences.add(str(args[0]))
        named = (f"{name}={value}" for name, value in values.items())
        return "\ue000" + "\ue001".join(map(str, (function.__name__, *args, *named))) + "\ue002"

    return told


@_later
def say(sentence: str, /, **values: object) -> str:
    """The sentence in this request's language, with its placeholders filled in."""
    return filled(catalogue(_LANGUAGE.get()).one(sentence), values)


@_later
def say_n(one: str, many: str, n: int, /, **values: object) -> str:
    """The sentence for n things; {n} is the number. Languages have one to three forms."""
    known = catalogue(_LANGUAGE.get())
    return filled(known.form(one, many, n), {"n": numeral(n)} | values)


def say_error(error: BaseException) -> str:
    """An error's text in this request's language; English unless it is an InvalidRequest."""
    if isinstance(error, InvalidRequest):
        return error.translated(catalogue(_LANGUAGE.get()).one, numeral)
    return str(error)


def mark(sentence: str) -> str:
    """The sentence itself: marked for the catalogues, to be said where it is shown."""
    return sentence


def numeral(value: Any, form: str = ",") -> str:
    """A number by a Python format specifier, with this language's decimal and group signs."""
    return _number(format(value, form))


@_later
def _number(text: str) -> str:
    return catalogue(_LANGUAGE.get()).number(text)


@_later
def signs() -> str:
    """This language's decimal and group signs, as Plotly's `separators`."""
    known = catalogue(_LANGUAGE.get())
    return known.decimal + known.group


def filled(sentence: str, values: dict[str, object]) -> str:
    """The sentence with its placeholders' values; a placeholder without a value stays."""
    if not values:
        return sentence
    return HOLE.sub(lambda found: str(values.get(found[1], found[0])), sentence)


@_later
def capital(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


@_later
def lines(text: str, width: int) -> str:
    """The text in lines of at most `width` characters, for Plotly."""
    return "<br>".join(re.findall(rf"\S.{{0,{width - 1}}}(?!\S)|\S{{{width}}}", text))


def language() -> str:
    """This request's language, such as "fr"."""
    return _LANGUAGE.get()


@contextmanager
def speaking(name: str) -> Iterator[None]:
    """Use a language for everything said in this block, in this thread or task."""
    token = _LANGUAGE.set(name)
    try:
        yield
    finally:
        _LANGUAGE.reset(token)


def negotiate_language(accepted: str) -> str:
    """The available language that an Accept-Language header prefers."""
    known, best, found = languages(), 0.0, ENGLISH
    for part in accepted[:200].split(","):
        name, _, weight = part.strip().lower().partition(";q=")
        try:
            preference = float(weight or 1)
        except ValueError:
            continue
        near = name if name in known else name.partition("-")[0]
        if near in known and preference > best:
            best, found = preference, near
    return found
