"""The lines of our source that compute a formula, found by the code's own names.

A part of a formula is the value of a named hook point (`context.at("scores", …)`), of an assignment
(`outside = …`) or of a `return`, in whichever function below a module or class has them all: so
the network needs no marks, and an argument may be renamed.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import itertools
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[3]  # holds the package
SHORT = 6  # a function with at most so many lines is shown in full, of others the lit lines
Span = tuple[int, int, int, str]  # line of the file, first and last character, part


def excerpt(where: Any, **parts: str) -> dict[str, Any]:
    """Where a formula is computed, as plain values.

    {symbol, file, lines: [{number, pieces: [[text, [part, ...]], ...]}]}
    where: a function, or the class or module whose function has all parts. parts: for each the
    names of its values, "scores": "scores/mask" keeps those values that mention `mask`,
    "scores:mask" is `mask` within them (the whole value if nothing has that name). A line without
    a number stands for lines that are left out; the parts of a piece: the narrowest first.
    """
    module = where if inspect.ismodule(where) else inspect.getmodule(where)
    assert module is not None
    symbol, node, lit = _function(module, getattr(where, "__qualname__", ""), parts)
    text = inspect.getsource(module).splitlines()
    spans = [span for value, part in lit for span in _spans(text, value, part)]
    return {
        "symbol": symbol,
        "file": Path(str(module.__file__)).resolve().relative_to(ROOT).as_posix(),
        "lines": list(_lines(text, node, spans)),
    }


def _function(
    module: ModuleType, within: str, parts: dict[str, str]
) -> tuple[str, ast.FunctionDef, list[tuple[Any, str]]]:
    """The first function within a name of the module that has all parts, and their values."""
    for symbol, node in _functions(module).items():
        if not within or symbol == within or symbol.startswith(f"{within}."):
            found = [
                (_values(node, name), part) for part, names in parts.items()
                for name in names.split()
            ]  # fmt: skip
            if all(values for values, _ in found):
                return symbol, node, [(value, part) for values, part in found for value in values]
    raise LookupError(module.__name__, within, parts)  # no function has all parts


@functools.cache
def _functions(module: ModuleType) -> dict[str, ast.FunctionDef]:
    """Functions and methods of a module by their qualified names."""
    found = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                found[prefix + node.name] = node
            elif isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")

    visit(ast.parse(inspect.getsource(module)).body, "")
    return found


def _values(function: ast.FunctionDef, name: str) -> list[Any]:
    """The expressions that a name of `excerpt` stands for."""
    for sign in ":/":
        whole, found, symbol = name.partition(sign)
        if found:
            values = _computed(function, whole)
            inner = [(value, _mentions(value, symbol)) for value in values]
            if sign == "/":
                return [value for value, matches in inner if matches]
            return [match for _, matches in inner for match in matches] or values
    return _computed(function, name)


def _computed(function: ast.FunctionDef, name: str) -> list[Any]:
    """The values of a hook point, of assignments, or of `return`."""
    if name == "return":
        returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        return [value for value in returns if not isinstance(value, ast.Constant | None)]
    shown = [
        node.args[1 + _is_hook(node)]
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and len(node.args) > 1 + _is_hook(node)
        and isinstance(node.args[0], ast.Constant) and node.args[0].value == name
    ]  # fmt: skip
    if shown and not isinstance(shown[0], ast.Name):
        return shown
    assigned = shown[0].id if shown else name  # type: ignore[attr-defined]
    values = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and assigned in _targets(node)
        and not (isinstance(node.value, ast.Constant) or _is_hook(node.value))
    ]  # fmt: skip
    return values or shown


def _is_hook(node: ast.AST) -> bool:
    """Whether it is `context.at(name, place, value)`."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "at"


def _targets(node: ast.Assign) -> set[str]:
    """The names that are assigned, whole or by index."""
    first = node.targets[0]
    each = first.elts if isinstance(first, ast.Tuple) else [first]
    names = [target.value if isinstance(target, ast.Subscript) else target for target in each]
    return {target.id for target in names if isinstance(target, ast.Name)}


def _mentions(value: ast.AST, symbol: str) -> list[Any]:
    """Where a name, an attribute or a keyword argument appears in an expression."""
    found: list[Any] = []
    for node in ast.walk(value):
        if getattr(node, "id", getattr(node, "arg", None)) == symbol:
            found.append(node)
        elif isinstance(node, ast.Attribute) and node.attr == symbol:
            attribute = copy.copy(node)
            attribute.lineno = node.end_lineno or node.lineno
            attribute.col_offset = (node.end_col_offset or 0) - len(symbol)
            found.append(attribute)
    return found


def _spans(text: list[str], node: Any, part: str) -> Iterator[Span]:
    """The characters of an expression, on each of its lines."""
    for number in range(node.lineno, node.end_lineno + 1):
        line = text[number - 1]
        first, last = number == node.lineno, number == node.end_lineno
        start = node.col_offset if first else len(line) - len(line.lstrip())
        yield number, start, node.end_col_offset if last else len(line), part


def _lines(text: list[str], function: ast.FunctionDef, spans: list[Span]) -> Iterator[Any]:
    """The signature's first line and the lit lines; a short function whole, but its docstring."""
    start, stop = function.body[ast.get_docstring(function) is not None].lineno, function.end_lineno
    body = [at for at in range(start, (stop or start) + 1) if text[at - 1].strip()]
    shown = {at for at, *_ in spans} | {function.lineno}
    shown |= set(range(function.lineno, function.body[0].lineno)) if len(body) < SHORT else set()
    before = function.lineno
    for at in sorted(shown | set(body if len(body) < SHORT else ())):
        if at > before + 1:
            yield {"number": None, "pieces": []}
        before = at
        here = [(start, stop, part) for line, start, stop, part in spans if line == at]
        yield {"number": at, "pieces": _pieces(text[at - 1], function.col_offset, here)}


def _pieces(line: str, margin: int, spans: list[tuple[int, int, str]]) -> list[list[Any]]:
    """The line cut wherever a span begins or ends, each piece with its parts."""
    cuts = sorted(
        {margin, len(line), *(edge for start, stop, _ in spans for edge in (start, stop))}
    )
    pieces = []
    for start, stop in itertools.pairwise(cuts):
        around = [span for span in spans if span[0] <= start and stop <= span[1]]
        around.sort(key=lambda span: span[1] - span[0])
        pieces.append([line[start:stop], list(dict.fromkeys(part for *_, part in around))])
    return pieces
