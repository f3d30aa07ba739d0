"""Read the catalogues, LANGUAGE.po in this folder, and translate HTML templates and scripts.

English needs no catalogue.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cache
from gettext import c2py
from pathlib import Path
from typing import Any

from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

FOLDER = Path(__file__).parent
_MORE: list[Path] = []  # see add_catalogues
GLOSSARIES = FOLDER / "glossary"
ENGLISH = "en"
TAGS = {"zh": "zh-CN"}  # HTML's and CLDR's name of a language, where it differs from the short one
GROUPED_FROM = {"es": 5}  # CLDR's minimumGroupingDigits + 3, which Babel lacks
OF_SCRIPTS = "page"  # comments a sentence that the page's scripts may say


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalogue:
    """One language.

    messages: the English sentence to its translation, or to its plural forms. scripts: the
    sentences that the page's scripts say. forms: the plural form of 0 to 199, one digit each; from
    200 on as from 100 on; empty: English's. name: in the language itself. tag: HTML's. decimal,
    group: the signs in a number; group_from: how many digits before the decimal sign are grouped.
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
        """The plural form for n things."""
        found = self.messages.get(one)
        if not isinstance(found, list) or not self.forms:
            return one if n == 1 else many
        return found[int(self.forms[n if n < 100 else 100 + n % 100])]

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
    return [path for one in (FOLDER, *_MORE) if (path := one / f"{language}.po").is_file()]


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
            given = message.string or ""
            texts = [given] if isinstance(given, str) else list(given)
            if message.id and all(texts) and not message.fuzzy:
                key = message.id if isinstance(message.id, str) else message.id[0]
                messages[key] = texts[0] if isinstance(message.id, str) else texts
                if path.parent != FOLDER or OF_SCRIPTS in message.auto_comments:
                    scripts.add(key)
    tag = TAGS.get(language, language)
    of = (f"{locale.language}_{locale.script}", locale.language)
    name = next((locale.languages[one] for one in of if one in locale.languages), tag)
    signs, form = locale.number_symbols["latn"], c2py(read.plural_expr)
    return Catalogue(
        messages=messages, scripts=frozenset(scripts),
        forms="".join(str(form(n)) for n in range(200)), name=name[:1].upper() + name[1:], tag=tag,
        decimal=signs["decimal"], group=signs["group"], group_from=GROUPED_FROM.get(language, 4),
    )  # fmt: skip


def read_catalog(path: Path) -> Catalog:
    """Read a LANGUAGE.po."""
    with path.open("rb") as file:
        return read_po(file, locale=str(locale_of(path.stem)))


def locale_of(language: str) -> Locale:
    """CLDR's data on a language."""
    return Locale.parse(TAGS.get(language, language), sep="-")


@cache
def glossary(language: str) -> dict[str, dict[str, Any]]:
    """The field's terms in a language, or in English: {term: {"words", "says", "other"?}}."""
    path = GLOSSARIES / f"{language}.toml"
    if not path.is_file():
        path = GLOSSARIES / f"{ENGLISH}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


# ---- HTML templates and scripts ----

# A whole script or style; or a text between two tags, with the space around it.
_PART = re.compile(r"<(script|style)\b.*?</\1>|(?<=>)(\s*)([^<>]*?)(\s*)(?=<)", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{2}")
_PLACEHOLDER = re.compile(r"/\*\w+\*/")
_SPACE = re.compile(r"\s+")


def html_sentences(text: str) -> Iterator[str]:
    """Every text between two tags of a template, with single spaces; none is marked."""
    for part in _PART.finditer(text):
        if _WORD.search(_PLACEHOLDER.sub("", part[3] or "")):
            yield _SPACE.sub(" ", part[3])


def translate_html(text: str, language: str) -> str:
    """A template in another language; sentences missing from the catalogue stay English."""
    known = catalogue(language).messages

    def part_of(part: re.Match[str]) -> str:
        found = known.get(_SPACE.sub(" ", part[3] or ""))
        return f"{part[2]}{found}{part[4]}" if isinstance(found, str) else part[0]

    return _PART.sub(part_of, text)


def glossary_element(language: str) -> str:
    """The <script> element with a language's glossary, which terms.js reads."""
    content = json_in_script(glossary(language))
    return f'<script type="application/json" id="glossary">{content}</script>'


def json_in_script(content: object) -> str:
    """JSON that cannot close the <script> element it is put into."""
    return json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")


def script_catalogue(language: str, sentences: Set[str]) -> dict[str, Any]:
    """A language as messages.js takes it: how it writes numbers, and its translations of these
    sentences, where it has any."""
    known = catalogue(language)
    return {
        "forms": known.forms,
        "decimal": known.decimal,
        "group": known.group,
        "group_from": known.group_from,
        "messages": {
            key: known.messages[key] for key in sorted(sentences) if key in known.messages
        },
    }


def translate_page(text: str, language: str) -> str:
    """A whole HTML page in another language."""
    tag = f'lang="{catalogue(language).tag}"'
    return translate_html(text, language).replace('lang="en"', tag, 1)
