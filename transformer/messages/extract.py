"""Every sentence of the sources.

Babel's own extractors overlook one within another's arguments or within an f-string.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Container, Iterator
from functools import cache
from pathlib import Path

from transformer.messages import markup
from transformer.messages.catalogues import FOLDER

NETWORK = FOLDER.parent / "model"
_WORDS = ("title", "does", "short")  # fields of the network's tables that the page shows
_FIRST, _SECOND = slice(1), slice(1, 2)
# Which arguments of each are sentences.
SAYING = {
    "say": _FIRST, "invalid": _FIRST, "lazy_text": _FIRST, "mark": _FIRST,
    "say_n": slice(2), "InvalidRequest": _SECOND, "RunExpired": _SECOND, "NothingShared": _SECOND,
}  # fmt: skip
# JavaScript: literals, or several of them with "+" between.
_LITERAL = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
_TEXT = rf"{_LITERAL}(?:\s*\+\s*{_LITERAL})*"
_CALL = re.compile(rf"\b(say|sayWith|sayN)\(\s*({_TEXT})(?:\s*,\s*({_TEXT}))?")


def sources() -> list[Path]:
    """The files that say something."""
    found = (path for path in FOLDER.parent.rglob("*") if path.suffix in _OF)
    return sorted(path for path in found if path.parent != FOLDER and "vendor" not in path.parts)


def sentences(path: Path) -> Iterator[str | tuple[str, ...]]:
    """What one file says: sentences, and pairs of one thing and of many."""
    text = path.read_text(encoding="utf-8")
    yield from _OF[path.suffix](text)
    if path.parent == NETWORK:
        yield from _of_tables(text)


@cache
def of_scripts() -> set[str]:
    """What the page's scripts may say: their own sentences, and what is declared for them."""
    found: list[str | tuple[str, ...]] = []
    for path in sources():
        if path.suffix == ".py":
            found += _of_python(path.read_text(encoding="utf-8"), ("mark",))
        elif path.suffix != ".html":
            found += sentences(path)
    return {one if isinstance(one, str) else one[0] for one in found}


def _of_python(text: str, saying: Container[str] = SAYING) -> Iterator[str | tuple[str, ...]]:
    for node in ast.walk(ast.parse(text)):
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in saying:
            given = node.args[SAYING[name]]
            said = [str(one.value) for one in given if isinstance(one, ast.Constant)]
            if said and len(said) == len(given):
                yield said[0] if len(said) == 1 else tuple(said)


def _of_tables(text: str) -> Iterator[str]:
    """What the network's tables say of their entries."""
    for node in ast.walk(ast.parse(text)):
        for given in node.keywords if isinstance(node, ast.Call) else ():
            if given.arg in _WORDS and isinstance(given.value, ast.Constant):
                words = str(given.value.value)
                if re.search("[a-z]{2}", words):  # ReLU is a name
                    yield words


def of_script(text: str) -> Iterator[str | tuple[str, ...]]:
    """What a module says."""
    for name, one, many in _CALL.findall(text):
        said = ["".join(map(ast.literal_eval, re.findall(_LITERAL, each))) for each in (one, many)]
        yield tuple(said) if name == "sayN" else said[0]


def _of_cards(text: str) -> Iterator[str]:
    """The words of a tour's cards; other files of this kind say nothing."""
    cards = tomllib.loads(text).get("card")
    for card in cards if isinstance(cards, list) else []:
        yield from (card[word] for word in ("title", "says", "look", "start") if word in card)


_OF: dict[str, Callable[[str], Iterator[str | tuple[str, ...]]]] = {
    ".py": _of_python,
    ".js": of_script,
    ".html": markup.sentences,
    ".toml": _of_cards,
}
