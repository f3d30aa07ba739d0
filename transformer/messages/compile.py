"""A LANGUAGE.po as the page reads it, LANGUAGE.json; and what is wrong with one.

Needs the package babel, which the page does not.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from gettext import c2py
from io import BytesIO
from pathlib import Path
from typing import Any

from babel import Locale
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po, write_po

from transformer.messages.extract import of_scripts, sentences, sources

TAGS = {"zh": "zh-CN"}  # what HTML and CLDR call a language, where that is not its short name
GROUPED_FROM = {"es": 5}  # CLDR's minimumGroupingDigits, which babel does not tell, and 3
HOLE = re.compile(r"(?<!%)\{([a-z]\w*)\}")
HEADER = """msgid ""
msgstr ""
"Language: {language}\\n"
"Plural-Forms: {forms}\\n"
"Content-Type: text/plain; charset=utf-8\\n"

"""
# What stands in a translation as it stands in English: tags, entities, Plotly's places, code.
FIXED = re.compile(r"</?[a-zA-Z][^>]*>|&[a-z]+;|%\{[^}]*\}|`[^`]*`")


def compiled(path: Path) -> str:
    """LANGUAGE.json of a LANGUAGE.po: what is translated, and how numbers are written."""
    catalog, scripts = _read(path), of_scripts()
    said: dict[str, dict[str, Any]] = {"messages": {}, "scripts": {}}
    for message in catalog:
        key, texts = _key(message), _texts(message)
        if key and all(texts) and not message.fuzzy:
            one = texts[0] if isinstance(message.id, str) else texts
            said["scripts" if key in scripts else "messages"][key] = one
    form = c2py(catalog.plural_expr)
    facts = {"forms": "".join(str(form(n)) for n in range(200)), **_of_locale(path.stem)}
    ordered = {name: dict(sorted(messages.items())) for name, messages in said.items()}
    return json.dumps(facts | ordered, ensure_ascii=False, indent=1) + "\n"


def updated(path: Path) -> str:
    """A LANGUAGE.po with every sentence of the sources, the new ones still to be translated, and
    without those that are no longer said."""
    old, new = _read(path), Catalog(locale=_locale(path.stem))
    for one in _all():
        new.add(one)
    for message in new:
        before = old.get(message.id) if message.id else None
        if before is not None and before.id == message.id:
            message.string = before.string
    file = BytesIO()
    write_po(file, new, omit_header=True, sort_output=True, width=100)
    return HEADER.format(language=path.stem, forms=old.plural_forms) + file.getvalue().decode()


def problems(path: Path) -> Iterator[str]:
    """What is wrong with a LANGUAGE.po: missing and obsolete sentences, and such as do not fit."""
    catalog = _read(path)
    there = {_key(message): message for message in catalog if message.id}
    wanted = {one if isinstance(one, str) else one[0]: one for one in _all()}
    yield from (f"missing: {key}" for key in sorted(wanted.keys() - there.keys()))
    yield from (f"obsolete: {key}" for key in sorted(there.keys() - wanted.keys()))
    number = Catalog(locale=_locale(path.stem)).num_plurals
    if catalog.num_plurals != number:
        yield f"{catalog.num_plurals} plural forms, not {number}"
    for key in sorted(wanted.keys() & there.keys()):
        english = wanted[key]
        forms = (english,) if isinstance(english, str) else english
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


def _read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=str(_locale(path.stem)))


def _locale(language: str) -> Locale:
    return Locale.parse(TAGS.get(language, language), sep="-")


def _of_locale(language: str) -> dict[str, Any]:
    tag = TAGS.get(language, language)
    locale = _locale(language)
    of = (f"{locale.language}_{locale.script}", locale.language)
    name = next((locale.languages[one] for one in of if one in locale.languages), tag)
    signs = locale.number_symbols["latn"]
    return {
        "name": name[:1].upper() + name[1:],
        "tag": tag,
        "decimal": signs["decimal"],
        "group": signs["group"],
        "group_from": GROUPED_FROM.get(language, 4),
    }


def _all() -> Iterator[str | tuple[str, ...]]:
    return (one for path in sources() for one in sentences(path))


def _key(message: Message) -> str:
    return message.id if isinstance(message.id, str) else message.id[0]


def _texts(message: Message) -> list[str]:
    given = message.string or ""
    return [given] if isinstance(given, str) else list(given)
