"""The catalogues beside this file: LANGUAGE.po. English needs none."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from gettext import c2py
from pathlib import Path
from typing import Any

from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

FOLDER = Path(__file__).parent
_OTHERS: list[Path] = []  # see add_catalogues
GLOSSARIES = FOLDER / "glossary"
ENGLISH = "en"
TAGS = {"zh": "zh-CN"}  # what HTML and CLDR call a language, where that is not its short name
GROUPED_FROM = {"es": 5}  # CLDR's minimumGroupingDigits, which Babel does not tell, and 3
OF_SCRIPTS = "page"  # the comment on a sentence that the page's scripts may say


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalogue:
    """One language.

    messages: the English sentence to the language's own, or to its plural forms. scripts: those of
    them that the page's scripts say. forms: which form the numbers 0 to 199 take, one digit each;
    200 and more are as 100 and more. Empty: English's. name: the language's, in itself. tag: what
    HTML calls it. decimal, group: the signs in a number; group_from: how many digits before the
    decimal sign are put in groups of three.
    """

    messages: dict[str, str | list[str]] = field(default_factory=dict)
    scripts: frozenset[str] = frozenset()
    forms: str = ""
    name: str = "English"
    tag: str = ENGLISH
    decimal: str = "."
    group: str = ","
    group_from: int = 4

    def one(self, sentence: str) -> str:
        """The sentence in this language; without an entry, itself."""
        found = self.messages.get(sentence, sentence)
        return found if isinstance(found, str) else found[0]

    def form(self, one: str, many: str, n: int) -> str:
        """The form that n things take."""
        found = self.messages.get(one)
        if not isinstance(found, list) or not self.forms:
            return one if n == 1 else many
        return found[int(self.forms[n if n < 100 else 100 + n % 100])]

    def number(self, text: str) -> str:
        """A number that English writes so, with this language's signs."""
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
    """Read the LANGUAGE.po of another folder too: sentences of a view. A script may say them."""
    if any(folder.glob("*.po")):
        _OTHERS.append(folder)
        catalogue.cache_clear()


def files_of(language: str) -> list[Path]:
    """The LANGUAGE.po that there are; the project's own prevails and is the first."""
    return [path for one in (FOLDER, *_OTHERS) if (path := one / f"{language}.po").is_file()]


@cache
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language; of an unknown one, English's."""
    if language not in languages() or language == ENGLISH:
        return Catalogue()
    locale = locale_of(language)
    said: dict[str, str | list[str]] = {}
    scripts = set()
    for path in reversed(files_of(language)):
        read = read_catalog(path)
        for message in read:
            given = message.string or ""
            texts = [given] if isinstance(given, str) else list(given)
            if message.id and all(texts) and not message.fuzzy:
                key = message.id if isinstance(message.id, str) else message.id[0]
                said[key] = texts[0] if isinstance(message.id, str) else texts
                if path.parent != FOLDER or OF_SCRIPTS in message.auto_comments:
                    scripts.add(key)
    tag = TAGS.get(language, language)
    of = (f"{locale.language}_{locale.script}", locale.language)
    name = next((locale.languages[one] for one in of if one in locale.languages), tag)
    signs, form = locale.number_symbols["latn"], c2py(read.plural_expr)
    return Catalogue(
        messages=said, scripts=frozenset(scripts),
        forms="".join(str(form(n)) for n in range(200)), name=name[:1].upper() + name[1:], tag=tag,
        decimal=signs["decimal"], group=signs["group"], group_from=GROUPED_FROM.get(language, 4),
    )  # fmt: skip


def read_catalog(path: Path) -> Catalog:
    """A LANGUAGE.po."""
    with path.open("rb") as file:
        return read_po(file, locale=str(locale_of(path.stem)))


def locale_of(language: str) -> Locale:
    """What CLDR knows of a language."""
    return Locale.parse(TAGS.get(language, language), sep="-")


@cache
def glossary(language: str) -> dict[str, dict[str, Any]]:
    """The field's terms in a language, or in English: {term: {"words", "says", "other"?}}."""
    path = GLOSSARIES / f"{language}.toml"
    if not path.is_file():
        path = GLOSSARIES / f"{ENGLISH}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))
