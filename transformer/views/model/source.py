"""The lines of our source that compute a formula, found by the names in them.

The network needs no marks for it, and an argument may be renamed.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Collection
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]  # contains the package
WHOLE_BELOW_LINES = 6  # a function of fewer lines is shown in full, of others the lines with a part


def excerpt(function: Callable[..., Any], places: str, parts: Collection[str]) -> dict[str, Any]:
    """The lines of a function that compute parts of a formula, as plain values.

    {symbol, file, lines: [{number, pieces: [[text, [part, ...]], ...]}]}, the parts of a piece with
    the narrowest first. places: "scores=return q", each a part and a name, by default the part's
    own. A name means the values assigned to it, else its calls, else each mention; "return" what is
    returned. "z:pattern" is `pattern` within z, "wide/gate" those values of `wide` that mention
    `gate`. Raises LookupError for a missing name.
    """
    function = inspect.unwrap(function)
    file, text, first, node = _source_of(function)
    lit: list[list[list[str]]] = [[[] for _ in line] for line in text]  # parts of each character
    nodes: list[tuple[int, str, Any]] = []
    for place in places.split():
        part, _, name = place.partition("=")
        values = _expressions(node, name or part) if part in parts else []
        if part in parts and not values:
            raise LookupError(
                f"{file}: {function.__qualname__} has no `{name or part}`, which is {part} in the "
                "equations of transformer/views/model"
            )
        nodes += [(len(ast.unparse(value)), part, value) for value in values]
    for _, part, value in sorted(nodes, key=itemgetter(0)):
        for at in range(value.lineno, value.end_lineno + 1):
            line = text[at - 1]
            start = value.col_offset if at == value.lineno else len(line) - len(line.lstrip())
            stop = value.end_col_offset if at == value.end_lineno else None
            for character in lit[at - 1][start:stop]:
                character.append(part)

    body = range(node.body[ast.get_docstring(node) is not None].lineno, len(text) + 1)
    is_short = sum(bool(text[at - 1].strip()) for at in body) < WHOLE_BELOW_LINES
    lines = [
        {"number": first + at - 1, "pieces": _pieces(text[at - 1], lit[at - 1])}
        for at in range(1, len(text) + 1)
        if at == node.lineno or (is_short and at in body) or any(lit[at - 1])
    ]
    return {"symbol": function.__qualname__, "file": file, "lines": lines}


@cache
def _source_of(function: Callable[..., Any]) -> tuple[str, list[str], int, ast.FunctionDef]:
    """A function's file, lines, the number of the first of them, and syntax tree."""
    source, first = inspect.getsourcelines(function)
    text = textwrap.dedent("".join(source)).splitlines()
    node = ast.parse("\n".join(text)).body[0]
    assert isinstance(node, ast.FunctionDef)
    path = Path(inspect.getfile(function)).resolve()
    file = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    return file, text, first, node


def _pieces(line: str, lit: list[list[str]]) -> list[list[Any]]:
    """The line cut wherever its characters' parts change."""
    runs = itertools.groupby(zip(line, lit, strict=True), key=itemgetter(1))
    return [["".join(text for text, _ in run), list(dict.fromkeys(parts))] for parts, run in runs]


def _expressions(node: ast.AST, place: str) -> list[Any]:
    """What a name of `excerpt` means."""
    name, sign, inner = re.split(r"([:/]|$)", place, maxsplit=1)
    values = _named(node, name)
    if sign == "/":
        return [value for value in values if _named(value, inner)]
    return [mention for value in values for mention in _named(value, inner)] if sign else values


def _named(node: ast.AST, name: str) -> list[Any]:
    """The values assigned to a name within a node, else its calls, else its mentions."""
    assigned, called, mentioned = [], [], []
    for inner in ast.walk(node):
        match inner:
            case ast.Assign(value=ast.Call(func=ast.Attribute(attr="at"))):
                pass  # `scores = context.at("scores", site, scores)`, a hook, computes nothing
            case ast.Assign(targets=[target], value=value):
                # of `a, b = ...` both, of `matrix[:, 0::2] = ...` it is `matrix`
                names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
                assigned += [value] * (name in names)
            case ast.Return(value=ast.expr() as value) if name == "return":
                assigned.append(value)
            case ast.Call(func=ast.Name(id=found) | ast.Attribute(attr=found)) if found == name:
                called.append(inner)
            case ast.Name(id=found) | ast.Attribute(attr=found) | ast.keyword(arg=found):
                mentioned += [inner] * (found == name)
    return assigned or called or mentioned
