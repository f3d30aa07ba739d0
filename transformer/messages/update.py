"""A LANGUAGE.po with every sentence of the sources, and what is wrong with one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import write_po

from transformer.messages.catalogues import OF_SCRIPTS, locale_of, read_catalog
from transformer.messages.extract import of_scripts, sentences, sources

HOLE = re.compile(r"(?<!%)\{([a-z]\w*)\}")
HEADER = """msgid ""
msgstr ""
"Language: {language}\\n"
"Plural-Forms: {forms}\\n"
"Content-Type: text/plain; charset=utf-8\\n"

"""
# What stands in a translation as it stands in English: tags, entities, Plotly's places, code.
FIXED = re.compile(r"</?[a-zA-Z][^>]*>|&[a-z]+;|%\{[^}]*\}|`[^`]*`")


def updated(path: Path) -> str:
    """A LANGUAGE.po with every sentence of the sources, the new ones still to be translated, and
    without those that are no longer said."""
    old, new = read_catalog(path), Catalog(locale=locale_of(path.stem))
    scripts = of_scripts()
    for first, one in _all().items():
        new.add(one, auto_comments=[OF_SCRIPTS] if first in scripts else ())
    for message in new:
        before = old.get(message.id) if message.id else None
        if before is not None and before.id == message.id:
            message.string = before.string
    file = BytesIO()
    write_po(file, new, omit_header=True, sort_output=True, width=100)
    return HEADER.format(language=path.stem, forms=old.plural_forms) + file.getvalue().decode()


def problems(path: Path) -> Iterator[str]:
    """What is wrong with a LANGUAGE.po: missing and obsolete sentences, and such as do not fit."""
    catalog = read_catalog(path)
    there = {_key(message): message for message in catalog if message.id}
    wanted, scripts = _all(), of_scripts()
    yield from (f"missing: {key}" for key in sorted(wanted.keys() - there.keys()))
    yield from (f"obsolete: {key}" for key in sorted(there.keys() - wanted.keys()))
    number = Catalog(locale=locale_of(path.stem)).num_plurals
    if catalog.num_plurals != number:
        yield f"{catalog.num_plurals} plural forms, not {number}"
    for key in sorted(wanted.keys() & there.keys()):
        english = wanted[key]
        forms = (english,) if isinstance(english, str) else english
        if (key in scripts) != (OF_SCRIPTS in there[key].auto_comments):
            yield f'the comment "{OF_SCRIPTS}" is not where it belongs: {key}'
        yield from (f"{fault}: {key}" for fault in _faults(forms, there[key]))


def _faults(english: tuple[str, ...], message: Message) -> Iterator[str]:
    texts = _texts(message)
    if message.fuzzy:
        yield "fuzzy"
    if not all(text.strip() for text in texts):
        yield "not translated"
    else:
        counted = {"n"} if len(english) > 1 else set()
        holes = [set(HOLE.findall(text)) | counted for text in (*english, *texts)]
        if any(found != holes[-1] for found in holes):
            yield "other placeholders"
        fixed = [Counter(FIXED.findall(text)) for text in (*english, *texts)]
        if any(found != fixed[0] for found in fixed):
            yield "other tags, entities or code"


@cache
def _all() -> dict[str, str | tuple[str, ...]]:
    """Every sentence, by its only or first form."""
    said = (one for path in sources() for one in sentences(path))
    return {one if isinstance(one, str) else one[0]: one for one in said}


def _key(message: Message) -> str:
    return message.id if isinstance(message.id, str) else message.id[0]


def _texts(message: Message) -> list[str]:
    given = message.string or ""
    return [given] if isinstance(given, str) else list(given)
