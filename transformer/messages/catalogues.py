"""The catalogues beside this file: LANGUAGE.json, compiled from LANGUAGE.po. English needs none."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
GLOSSARIES = FOLDER / "glossary"
ENGLISH = "en"


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
    """Every language that there is a catalogue of, English first."""
    return (ENGLISH, *sorted(path.stem for path in FOLDER.glob("*.json")))


@cache
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language; of an unknown one, English's."""
    if language not in languages() or language == ENGLISH:
        return Catalogue()
    content = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    scripts = content.pop("scripts")
    messages = content.pop("messages") | scripts
    return Catalogue(messages=messages, scripts=frozenset(scripts), **content)


@cache
def glossary(language: str) -> dict[str, dict[str, Any]]:
    """The field's terms in a language, or in English: {term: {"words", "says", "other"?}}."""
    path = GLOSSARIES / f"{language}.toml"
    if not path.is_file():
        path = GLOSSARIES / f"{ENGLISH}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))
