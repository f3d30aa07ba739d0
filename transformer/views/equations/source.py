"""Our own lines that compute a formula, read from the modules themselves and tied to its symbols.

A line says itself what it computes: `outside = before >= p  # equation: top_p`. The value of that
statement, however it is written, is what the mark top_p stands for. Symbols that are smaller than a
statement are expressions within it; where an edit left no such expression, the whole value is lit.
"""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import inspect
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from transformer.messages import invalid

ROOT = Path(__file__).resolve().parents[3]  # holds the package
SHORT = 6  # lines that are shown in full; of longer code the marked lines alone
Span = tuple[int, int, int, str]  # line, first and last character, part
_MARK = re.compile(r"  # equation: (\w+)$")


class _Source(NamedTuple):
    """A definition. lines: its text without marks, whose first is number `first` of the file.

    marked: what each mark's statements compute. hidden: the lines of its docstring, and empty ones.
    """

    file: str
    first: int
    lines: list[str]
    node: Any
    marked: dict[str, list[Any]]
    hidden: set[int]


def excerpt(symbol: str, *parts: str, **inner: dict[str, str]) -> dict[str, Any]:
    """Where a formula is computed, as plain values.

    {symbol, file, lines: [{number, pieces: [[text, [part, ...]], ...]}]}
    symbol: "module.name" within `transformer`, a function, a method or a table. parts: those that
    lines are marked with. inner: of a mark, or of the definition's own name, expressions and the
    parts of each, "exponentials largest". A line without a number stands for lines that are left
    out; the parts of a piece: the narrowest first.
    """
    source = _source(symbol)
    lit = [(node, part) for part in parts for node in source.marked.get(part, ())]
    for mark, pieces in inner.items():
        whole = source.marked.get(mark, [])
        for code, names in pieces.items():
            found = _expression(whole or [source.node], code)
            lit += itertools.product(whole if found is None else [found], names.split())
    spans = [span for node, part in lit for span in _spans(source, node, part)]
    marked = {at for at, *_ in spans}
    open_lines = [at for at in range(len(source.lines)) if at not in source.hidden]
    short = len(open_lines) <= SHORT
    shown = [at for at in open_lines if short or at in marked or at == 0]
    return {
        "symbol": ".".join(symbol.split(".")[2:]),
        "file": source.file,
        "lines": list(_lines(source, shown, spans)),
    }


def _lines(source: _Source, shown: list[int], spans: list[Span]) -> Iterator[dict[str, Any]]:
    before = shown[0]
    for at in shown:
        if at > before + 1:
            yield {"number": None, "pieces": []}
        before = at
        here = [(start, stop, part) for line, start, stop, part in spans if line == at]
        yield {"number": source.first + at, "pieces": _pieces(source.lines[at], here)}


def _pieces(line: str, spans: list[tuple[int, int, str]]) -> list[list[Any]]:
    """The line cut wherever a span begins or ends, each piece with the parts that it is of."""
    cuts = sorted({0, len(line), *(edge for start, stop, _ in spans for edge in (start, stop))})
    found = []
    for start, stop in itertools.pairwise(cuts):
        around = [one for one in spans if one[0] <= start and stop <= one[1]]
        around.sort(key=lambda one: one[1] - one[0])
        found.append([line[start:stop], list(dict.fromkeys(part for *_, part in around))])
    return found


def _spans(source: _Source, node: Any, part: str) -> Iterator[Span]:
    """Where an expression stands, on each of its lines."""
    margin = source.node.col_offset
    for number in range(node.lineno, node.end_lineno + 1):
        line = source.lines[number - source.first]
        start, stop = len(line) - len(line.lstrip()), len(line)
        if number == node.lineno:
            start = node.col_offset - margin
        if number == node.end_lineno:
            stop = node.end_col_offset - margin
        yield number - source.first, start, stop, part


def _expression(within: list[Any], code: str) -> Any:
    """The first expression, argument or method's name that reads so, or None."""
    found: list[Any] = []
    for node in (one for root in within for one in ast.walk(root)):
        if isinstance(node, ast.expr | ast.keyword) and ast.unparse(node) == code:
            found.append(node)
        elif isinstance(node, ast.Attribute) and node.attr == code:
            name = copy.copy(node)
            name.lineno = node.end_lineno or node.lineno
            name.col_offset = (node.end_col_offset or 0) - len(code)
            found.append(name)
    return min(found, key=lambda node: (node.lineno, node.col_offset), default=None)


@functools.cache
def _source(symbol: str) -> _Source:
    parts = symbol.split(".")
    module = importlib.import_module(".".join(["transformer", *parts[:2]]))
    path = Path(inspect.getsourcefile(module) or "")
    text = inspect.getsource(module)
    node: Any = ast.parse(text)
    for name in parts[2:]:
        node = next((one for one in node.body if name in _names_of(one)), None)
        if node is None:
            raise invalid("there is no {symbol} in the source", symbol=symbol)
    hidden = set()
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
        said = node.body[0]
        hidden = set(range(said.lineno - node.lineno, (said.end_lineno or 0) - node.lineno + 1))
    written = text.splitlines()[node.lineno - 1 : node.end_lineno]
    return _Source(
        path.resolve().relative_to(ROOT).as_posix(),
        node.lineno,
        [_MARK.sub("", line)[node.col_offset :] for line in written],
        node,
        _marked(node, written),
        hidden | {at for at, line in enumerate(written) if not line.strip()},
    )


def _marked(node: Any, written: list[str]) -> dict[str, list[Any]]:
    """Of each mark the values of its statements, or of the argument that begins its line."""
    found: dict[str, list[Any]] = {}
    values = [
        one for one in ast.walk(node)
        if isinstance(one, ast.stmt | ast.keyword) and getattr(one, "value", None) is not None
    ]  # fmt: skip
    for number, line in enumerate(written, start=node.lineno):
        around = [one for one in values if one.lineno <= number <= (one.end_lineno or 0)]
        begun = [one for one in around if one.lineno == number]
        statements = [one for one in around if isinstance(one, ast.stmt)]
        if mark := _MARK.search(line):
            value: Any = (begun[:1] or statements[-1:])[0]
            value = value.value
            if getattr(getattr(value, "func", None), "attr", "") == "at":
                value = value.args[2]  # what is shown to hooks: `context.at(name, place, value)`
            found.setdefault(mark[1], []).append(value)
    return found


def _names_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    return [one.id for one in targets if isinstance(one, ast.Name)]
