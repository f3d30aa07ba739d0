"""HTML templates in other languages: every text between two tags is a sentence; none is marked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from transformer.messages.catalogues import catalogue, glossary

# A script or a style, as a whole; or a text, with the space around it.
_PART = re.compile(r"<(script|style)\b.*?</\1>|(?<=>)(\s*)([^<>]*?)(\s*)(?=<)", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{2}")
_FILLED_IN = re.compile(r"/\*\w+\*/")  # a placeholder that is filled in later
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
    held = json_in_script(glossary(language))
    return f'<script type="application/json" id="glossary">{held}</script>'


def json_in_script(content: object) -> str:
    """JSON that cannot end a script."""
    return json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")


def of_scripts(language: str, only: Callable[[str], bool] = bool) -> str:
    """A module beside messages.js that gives it what scripts say in a language, and how it writes
    numbers. only: which of their sentences. "" for English."""
    known = catalogue(language)
    if not known.messages:
        return ""
    signs = {
        "forms": known.forms,
        "decimal": known.decimal,
        "group": known.group,
        "group_from": known.group_from,
    }
    messages = {key: known.messages[key] for key in sorted(filter(only, known.scripts))}
    return (
        'import { known } from "./messages.js";\n'
        f"Object.assign(known, {json_in_script(signs)});\n"
        f"Object.assign(known.messages, {json_in_script(messages)});\n"
    )


def whole_page(text: str, language: str) -> str:
    """A page of its own in another language."""
    said = f'lang="{catalogue(language).tag}"'
    return translated(text, language).replace('lang="en"', said, 1)
