"""HTML templates in other languages: every text between two tags is a sentence; none is marked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from transformer.messages.catalogues import catalogue, glossary

# A script or a style, as a whole; or a text, with the space around it.
_PART = re.compile(r"<(script|style)\b.*?</\1>|(?<=>)(\s*)([^<>]*?)(\s*)(?=<)", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{2}")
_FILLED_IN = re.compile(r"/\*\w+\*/")  # what stands for a value that is put in later
_SPACE = re.compile(r"\s+")


def sentences(text: str) -> Iterator[str]:
    """Every sentence of a template, white space made one."""
    for part in _PART.finditer(text):
        if _WORD.search(_FILLED_IN.sub("", part[3] or "")):
            yield _SPACE.sub(" ", part[3])


def translated(text: str, language: str) -> str:
    """A template in another language; what the catalogue does not have stays English."""
    known = catalogue(language).messages

    def part_of(part: re.Match[str]) -> str:
        own = known.get(_SPACE.sub(" ", part[3] or ""))
        return f"{part[2]}{own}{part[4]}" if isinstance(own, str) else part[0]

    return _PART.sub(part_of, text)


def glossary_element(language: str) -> str:
    """An element for a page's head, which terms.js reads: the glossary of a language."""
    return _element("glossary", glossary(language))


def _element(name: str, content: object) -> str:
    text = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


def of_scripts(language: str) -> str:
    """An element for a page's head, which messages.js reads: what scripts say in a language, and
    how it writes numbers. Nothing for English."""
    known = catalogue(language)
    if not known.messages:
        return ""
    content = {
        "forms": known.forms,
        "decimal": known.decimal,
        "group": known.group,
        "group_from": known.group_from,
        "messages": {key: known.messages[key] for key in sorted(known.scripts)},
    }
    return _element("messages", content)


def whole_page(text: str, language: str) -> str:
    """A page of its own in another language, its scripts too."""
    said = f'lang="{catalogue(language).tag}"'
    page = translated(text, language).replace('lang="en"', said, 1)
    return page.replace("</head>", f"{of_scripts(language)}</head>", 1)
