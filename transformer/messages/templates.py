"""What a page in a language is sent with: HTML templates, scripts' sentences, the glossary."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Set
from functools import cache
from hashlib import sha256
from typing import Any

from transformer.messages import ENGLISH, FOLDER, catalogue

GLOSSARIES = FOLDER / "glossary"

# A whole script or style; or a text between two tags, with the space around it.
_PART = re.compile(r"<(script|style)\b.*?</\1>|(?<=>)(\s*)([^<>]*?)(\s*)(?=<)", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{2}")
_PLACEHOLDER = re.compile(r"/\*\w+\*/")
_SPACE = re.compile(r"\s+")


@cache
def glossary(language: str) -> dict[str, dict[str, Any]]:
    """The field's terms in a language, or in English: {term: {"words", "says", "other"?}}."""
    path = GLOSSARIES / f"{language}.toml"
    if not path.is_file():
        path = GLOSSARIES / f"{ENGLISH}.toml"
    entries: dict[str, dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return {term: _without(entry, "made_from") for term, entry in entries.items()}


def late_terms(language: str) -> Iterator[str]:
    """Terms whose English has changed since this language's sentence was made from it, each with
    the stamp, made_from, that says that it follows again."""
    path = GLOSSARIES / f"{language}.toml"
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    for term, english in glossary(ENGLISH).items():
        stamp = sha256(english["says"].encode()).hexdigest()[:4]
        if entries.get(term, {}).get("made_from") != stamp:
            yield f'glossary, {term}: made_from = "{stamp}"'


def _without(entry: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != name}


def html_sentences(text: str) -> Iterator[str]:
    """Every text between two tags of a template, with single spaces; none is marked."""
    for part in _PART.finditer(text):
        if _WORD.search(_PLACEHOLDER.sub("", part[3] or "")):
            yield _SPACE.sub(" ", part[3])


def translate_html(text: str, language: str) -> str:
    """A template in another language; sentences missing from the catalogue stay English."""
    translations = catalogue(language).messages

    def part_of(part: re.Match[str]) -> str:
        translation = translations.get(_SPACE.sub(" ", part[3] or ""))
        return f"{part[2]}{translation}{part[4]}" if isinstance(translation, str) else part[0]

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
    words = catalogue(language)
    return {
        "forms": words.forms,
        "decimal": words.decimal,
        "group": words.group,
        "group_from": words.group_from,
        "messages": {
            key: words.messages[key] for key in sorted(sentences) if key in words.messages
        },
    }


def translate_page(text: str, language: str) -> str:
    """A whole HTML page in another language."""
    tag = f'lang="{catalogue(language).tag}"'
    return translate_html(text, language).replace('lang="en"', tag, 1)
