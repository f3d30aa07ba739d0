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
# How many sentences each takes.
SAYING = {"say": 1, "invalid": 1, "unusable": 1, "wording": 1, "mark": 1, "say_n": 2}
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
        yield from _of_network(text)


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
            given = node.args[: SAYING[name]]
            said = [str(one.value) for one in given if isinstance(one, ast.Constant)]
            if len(said) == SAYING[name]:
                yield said[0] if len(said) == 1 else tuple(said)


def errors_of_network() -> set[str]:
    """The sentences of the network's errors, which are plain f-strings, with a placeholder for each
    value. `messages.translated` translates them."""
    calls = (one for path in NETWORK.glob("*.py") for one in _calls(path.read_text("utf-8")))
    return {_template(one.args[0]) for one in calls if _raises(one)}


def _of_network(text: str) -> Iterator[str]:
    """Its errors, and what its tables say of their entries."""
    for node in _calls(text):
        if _raises(node):
            yield _template(node.args[0])
        for given in node.keywords:
            if given.arg in _WORDS and isinstance(given.value, ast.Constant):
                text = str(given.value.value)
                if re.search("[a-z]{2}", text):  # ReLU is a name
                    yield text


def _calls(text: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))


def _raises(node: ast.Call) -> bool:
    return getattr(node.func, "id", "") == "ValueError" and bool(node.args)


def _template(node: ast.expr) -> str:
    """f"got {config.d_model}" as "got {d_model}"; another value of the same name is d_model2."""
    parts, names = [], dict[str, str]()
    for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
        if not isinstance(part, ast.FormattedValue):
            parts.append(str(ast.literal_eval(part)))
            continue
        name, value = _name_of(part.value), ast.unparse(part.value)
        count = sum(one.rstrip("0123456789") == name for one in names.values())
        names.setdefault(value, name if not count else f"{name}{count + 1}")
        parts.append(f"{{{names[value]}}}")
    return "".join(parts)


def _name_of(node: ast.expr) -> str:
    """The name of a value: `d_model` of config.d_model, `presets` of list(PRESETS)."""
    if isinstance(node, ast.Call):
        node = node.args[0] if node.args else node.func
        return _name_of(node)
    if isinstance(node, ast.Subscript):
        return _name_of(node.value)
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "value")
    return name.lstrip("_").lower()


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
