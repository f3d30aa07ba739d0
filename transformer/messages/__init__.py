"""Translate what the page says. The English sentence itself is the key of the catalogues, which
are LANGUAGE.po in this folder; English needs none.

    say("the encoder read {n_tokens} tokens", n_tokens=numeral(12))

A placeholder is a name in braces and nothing more; `numeral` writes numbers. Sentences declared
when a module is imported (titles, words, helps) are marked with `mark`, and said where they are
shown. Commands and library errors are English.
`python -m transformer.messages update` puts new sentences into the catalogues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, wraps
from gettext import c2py
from pathlib import Path
from typing import Any, ParamSpec

from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from transformer.checks import InvalidRequest

FOLDER = Path(__file__).parent
_MORE: list[Path] = []  # see add_catalogues
ENGLISH = "en"
TAGS = {"zh": "zh-CN"}  # HTML's and CLDR's name of a language, where it differs from the short one
GROUPED_FROM = {"es": 5}  # CLDR's minimumGroupingDigits + 3, which Babel lacks
OF_SCRIPTS = "page"  # comments a sentence that the page's scripts may say
HOLE = re.compile(r"(?<!%)\{([a-z]\w*)\}")  # %{x} is Plotly's
_LANGUAGE: ContextVar[str] = ContextVar("language", default=ENGLISH)
_P = ParamSpec("_P")


# ---- languages ----


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalogue:
    """What is said in a language.

    messages: the English sentence to its translation, or to its plural forms. scripts: the
    sentences that the page's scripts say. forms: the plural form of 0 to 199, one digit each; from
    200 on as from 100 on; empty: English's. tag: HTML's. decimal, group: the signs in a number;
    group_from: how many digits before the decimal sign are grouped.
    """

    messages: dict[str, str | list[str]] = field(default_factory=dict)
    scripts: frozenset[str] = frozenset()
    forms: str = ""
    tag: str = ENGLISH
    decimal: str = "."
    group: str = ","
    group_from: int = 4

    def one(self, sentence: str) -> str:
        """The sentence in this language; without an entry, itself."""
        translation = self.messages.get(sentence, sentence)
        return translation if isinstance(translation, str) else translation[0]

    def form(self, one: str, many: str, n: int) -> str:
        """The plural form for n things."""
        forms = self.messages.get(one)
        if not isinstance(forms, list) or not self.forms:
            return one if n == 1 else many
        return forms[int(self.forms[n if n < 100 else 100 + n % 100])]

    def number(self, text: str) -> str:
        """Rewrite a number in English notation with this language's signs."""
        if (self.decimal, self.group) == (".", ","):
            return text
        whole = text.partition(".")[0]
        group = self.group if sum(map(str.isdigit, whole)) >= self.group_from else ""
        return text.translate({ord("."): self.decimal, ord(","): group})


@cache
def languages() -> tuple[str, ...]:
    """Every language with a catalogue, English first."""
    return (ENGLISH, *sorted(path.stem for path in FOLDER.glob("*.po")))


def add_catalogues(folder: Path) -> None:
    """Read the LANGUAGE.po of a view's folder too; scripts may say all of its sentences."""
    if any(folder.glob("*.po")):
        _MORE.append(folder)
        catalogue.cache_clear()


def files_of(language: str) -> list[Path]:
    """The existing LANGUAGE.po files; the first, the project's, overrides the others."""
    return [path for folder in (FOLDER, *_MORE) if (path := folder / f"{language}.po").is_file()]


@cache
def catalogue(language: str) -> Catalogue:
    """A language's catalogue; English's for an unknown language."""
    if language not in languages() or language == ENGLISH:
        return Catalogue()
    locale = locale_of(language)
    messages: dict[str, str | list[str]] = {}
    scripts = set()
    for path in reversed(files_of(language)):
        read = read_catalog(path)
        for message in read:
            string = message.string or ""
            texts = [string] if isinstance(string, str) else list(string)
            if message.id and all(texts) and not message.fuzzy:
                key = message.id if isinstance(message.id, str) else message.id[0]
                messages[key] = texts[0] if isinstance(message.id, str) else texts
                if path.parent != FOLDER or OF_SCRIPTS in message.auto_comments:
                    scripts.add(key)
    signs, form = locale.number_symbols["latn"], c2py(read.plural_expr)
    return Catalogue(
        messages=messages, scripts=frozenset(scripts),
        forms="".join(str(form(n)) for n in range(200)), tag=TAGS.get(language, language),
        decimal=signs["decimal"], group=signs["group"], group_from=GROUPED_FROM.get(language, 4),
    )  # fmt: skip


def language_names(language: str) -> tuple[str, str]:
    """HTML's tag of a language, and its name in the language itself."""
    tag, locale = TAGS.get(language, language), locale_of(language)
    of = (f"{locale.language}_{locale.script}", locale.language)
    name = next((locale.languages[code] for code in of if code in locale.languages), tag)
    return tag, name[:1].upper() + name[1:]


def read_catalog(path: Path) -> Catalog:
    """Read a LANGUAGE.po."""
    with path.open("rb") as file:
        return read_po(file, locale=str(locale_of(path.stem)))


def locale_of(language: str) -> Locale:
    """CLDR's data on a language."""
    return Locale.parse(TAGS.get(language, language), sep="-")


# ---- saying ----


class _Later(str):
    """In place of a language: calls are written, and their sentences kept."""

    __slots__ = ("sentences",)

    def __init__(self, _: str) -> None:
        self.sentences = set[str]()


@contextmanager
def said_later() -> Iterator[set[str]]:
    """Write each call of `say` and its like instead of its text, for a script to say in any
    language (web/later.js). Yields the sentences, as they are said."""
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
        if args[:1] == ("",):
            return ""
        if function.__name__.startswith("say"):
            later.sentences.add(str(args[0]))
        named = (f"{name}={value}" for name, value in values.items())
        return "\ue000" + "\ue001".join(map(str, (function.__name__, *args, *named))) + "\ue002"

    return told


def mark(sentence: str) -> str:
    """The sentence itself: marked for the catalogues, to be said where it is shown."""
    return sentence


@_later
def say(sentence: str, /, **values: object) -> str:
    """The sentence in this request's language, with its placeholders filled in."""
    return filled(catalogue(_LANGUAGE.get()).one(sentence), values)


@_later
def say_n(one: str, many: str, n: int, /, **values: object) -> str:
    """The sentence for n things; {n} is the number. Languages have one to three forms."""
    words = catalogue(_LANGUAGE.get())
    return filled(words.form(one, many, n), {"n": numeral(n)} | values)


_LISTS = {",": mark("{before}, {part}"), ";": mark("{before}; {part}")}


def say_list(parts: Iterable[str], sign: str = ",") -> str:
    """Parts one after another, between them this language's comma, or semicolon with ";"."""
    first, *others = parts
    for part in others:
        first = say(_LISTS[sign], before=first, part=part)
    return first


def say_error(error: BaseException) -> str:
    """An error's text in this request's language; English unless it is an InvalidRequest."""
    if isinstance(error, InvalidRequest):
        return error.translated(catalogue(_LANGUAGE.get()).one, numeral)
    return str(error)


def numeral(value: Any, form: str = ",") -> str:
    """A number by a Python format specifier, with this language's decimal and group signs."""
    return _number(format(value, form))


@_later
def _number(text: str) -> str:
    return catalogue(_LANGUAGE.get()).number(text)


@_later
def signs() -> str:
    """This language's decimal and group signs, as Plotly's `separators`."""
    words = catalogue(_LANGUAGE.get())
    return words.decimal + words.group


def filled(sentence: str, values: dict[str, object]) -> str:
    """The sentence with its placeholders' values; a placeholder without a value stays."""
    if not values:
        return sentence
    return HOLE.sub(lambda match: str(values.get(match[1], match[0])), sentence)


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
    offered, best, chosen = languages(), 0.0, ENGLISH
    for part in accepted[:200].split(","):
        name, _, weight = part.strip().lower().partition(";q=")
        try:
            preference = float(weight or 1)
        except ValueError:
            continue
        near = name if name in offered else name.partition("-")[0]
        if near in offered and preference > best:
            best, chosen = preference, near
    return chosen
