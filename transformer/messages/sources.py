"""Find every sentence of the sources, put new ones into the catalogues, and find faults in these.

Babel's extractors overlook a Python sentence inside an f-string (before 3.12), and a JavaScript one
inside another's arguments or inside a template of a template.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Container, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import write_po

from transformer.messages import FOLDER, HOLE, OF_SCRIPTS, locale_of, read_catalog
from transformer.messages.templates import html_sentences, late_terms

NETWORK, VIEWS = FOLDER.parent / "model", FOLDER.parent / "views"
_WORDS = ("title", "does", "short")  # fields of the network's tables that the page shows
_FIRST, _SECOND = slice(1), slice(1, 2)
# Which arguments of each function are sentences.
SAYING = {
    "say": _FIRST, "mark": _FIRST,
    "say_n": slice(2), "InvalidRequest": _SECOND, "NothingShared": _SECOND,
}  # fmt: skip
# JavaScript: literals, or several of them with "+" between.
_LITERAL = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
_TEXT = rf"{_LITERAL}(?:\s*\+\s*{_LITERAL})*"
# French has a narrow no-break space before these signs, and after «.
_FRENCH_SPACE = re.compile(r" (?=[;:?!%»])|(?<=«) ")
_CALL = re.compile(rf"\b(say|sayWith|sayN)\(\s*({_TEXT})(?:\s*,\s*({_TEXT}))?")


def sources() -> list[Path]:
    """The files that may contain sentences. A view without marked sentences has
    catalogues in its folder, or none."""
    paths = (path for path in FOLDER.parent.rglob("*") if path.suffix in _EXTRACTORS)
    views = {path: path.read_text("utf-8") for path in VIEWS.glob("*/*.py")}
    apart = {path.parent for path, text in views.items() if "\n@view(" in text}
    apart -= {path.parent for path, text in views.items() if "mark(" in text}
    return sorted(
        path for path in paths if path.parent not in {FOLDER, *apart} and "vendor" not in path.parts
    )


def sentences(path: Path) -> Iterator[str | tuple[str, ...]]:
    """The sentences of one file; a singular and its plural are a pair."""
    text = path.read_text(encoding="utf-8")
    yield from _EXTRACTORS[path.suffix](text)
    if path.parent == NETWORK:
        yield from _of_tables(text)


@cache
def script_sentences() -> set[str]:
    """The sentences that the page's scripts may say: their own, and all marked ones."""
    every: list[str | tuple[str, ...]] = []
    for path in sources():
        if path.suffix == ".py":
            every += _of_python(path.read_text(encoding="utf-8"), ("mark",))
        elif path.suffix != ".html":
            every += sentences(path)
    return {sentence if isinstance(sentence, str) else sentence[0] for sentence in every}


def _of_python(text: str, saying: Container[str] = SAYING) -> Iterator[str | tuple[str, ...]]:
    for node in ast.walk(ast.parse(text)):
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in saying:
            arguments = node.args[SAYING[name]]
            said = [
                str(argument.value) for argument in arguments if isinstance(argument, ast.Constant)
            ]
            if said and len(said) == len(arguments):
                yield said[0] if len(said) == 1 else tuple(said)


def _of_tables(text: str) -> Iterator[str]:
    """Words in the network's tables that the page shows."""
    for node in ast.walk(ast.parse(text)):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg in _WORDS and isinstance(keyword.value, ast.Constant):
                words = str(keyword.value.value)
                if re.search("[a-z]{2}", words):  # ReLU is a name
                    yield words


def of_script(text: str) -> Iterator[str | tuple[str, ...]]:
    """The sentences of a JavaScript module."""
    for name, one, many in _CALL.findall(text):
        said = ["".join(map(ast.literal_eval, re.findall(_LITERAL, each))) for each in (one, many)]
        yield tuple(said) if name == "sayN" else said[0]


def _of_cards(text: str) -> Iterator[str]:
    """The words of a tour's cards and short links; other TOML files have none."""
    tour = tomllib.loads(text)
    cards = [*tour.get("card", ()), *tour["link"]] if "link" in tour else []
    for card in cards:
        yield from (card[word] for word in ("title", "says", "look", "start") if word in card)


_EXTRACTORS: dict[str, Callable[[str], Iterator[str | tuple[str, ...]]]] = {
    ".py": _of_python,
    ".js": of_script,
    ".html": html_sentences,
    ".toml": _of_cards,
}


# ---- the catalogues ----

HEADER = """msgid ""
msgstr ""
"Language: {language}\\n"
"Plural-Forms: {forms}\\n"
"Content-Type: text/plain; charset=utf-8\\n"

"""
# Parts that a translation keeps unchanged: tags, entities, Plotly's placeholders, code.
FIXED = re.compile(r"</?[a-zA-Z][^>]*>|&[a-z]+;|%\{[^}]*\}|`[^`]*`")


def updated(path: Path) -> str:
    """A LANGUAGE.po with exactly the sentences of the sources; new ones lack a translation."""
    catalog, fresh, scripts = read_catalog(path), Catalog(), script_sentences()
    for first, sentence in _all().items():
        fresh.add(sentence, auto_comments=[OF_SCRIPTS] if first in scripts else ())
    catalog.update(fresh, no_fuzzy_matching=True)
    for message in catalog if path.stem == "fr" else ():
        texts = [_FRENCH_SPACE.sub("\u202f", text) for text in _texts(message)]
        message.string = texts[0] if isinstance(message.id, str) else tuple(texts)
    file = BytesIO()
    write_po(file, catalog, omit_header=True, sort_output=True, width=100, ignore_obsolete=True)
    return HEADER.format(language=path.stem, forms=catalog.plural_forms) + file.getvalue().decode()


def problems(path: Path) -> Iterator[str]:
    """Faults of a LANGUAGE.po: missing, obsolete and wrongly translated sentences; and terms of
    the language's glossary whose English has changed since."""
    catalog = read_catalog(path)
    messages = {_key(message): message for message in catalog if message.id}
    wanted, scripts = _all(), script_sentences()
    yield from (f"missing: {key}" for key in sorted(wanted.keys() - messages.keys()))
    yield from (f"obsolete: {key}" for key in sorted(messages.keys() - wanted.keys()))
    yield from (f"behind the English: {late}" for late in late_terms(path.stem))
    number = Catalog(locale=locale_of(path.stem)).num_plurals
    if catalog.num_plurals != number:
        yield f"{catalog.num_plurals} plural forms, not {number}"
    for key in sorted(wanted.keys() & messages.keys()):
        english = wanted[key]
        forms = (english,) if isinstance(english, str) else english
        if (key in scripts) != (OF_SCRIPTS in messages[key].auto_comments):
            yield f'the comment "{OF_SCRIPTS}" is missing or wrong: {key}'
        yield from (f"{fault}: {key}" for fault in _faults(forms, messages[key]))


def _faults(english: tuple[str, ...], message: Message) -> Iterator[str]:
    texts = _texts(message)
    if message.fuzzy:
        yield "fuzzy"
    if not all(text.strip() for text in texts):
        yield "not translated"
    else:
        counted = {"n"} if len(english) > 1 else set()
        holes = [set(HOLE.findall(text)) | counted for text in (*english, *texts)]
        if any(each != holes[-1] for each in holes):
            yield "other placeholders"
        fixed = [Counter(FIXED.findall(text)) for text in (*english, *texts)]
        if any(each != fixed[0] for each in fixed):
            yield "other tags, entities or code"


@cache
def _all() -> dict[str, str | tuple[str, ...]]:
    """Every sentence, by its singular."""
    every = (sentence for path in sources() for sentence in sentences(path))
    return {sentence if isinstance(sentence, str) else sentence[0]: sentence for sentence in every}


def _key(message: Message) -> str:
    return message.id if isinstance(message.id, str) else message.id[0]


def _texts(message: Message) -> list[str]:
    string = message.string or ""
    return [string] if isinstance(string, str) else list(string)
