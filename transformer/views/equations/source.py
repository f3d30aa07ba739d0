"""Our own lines that compute a formula, read from the modules themselves and tied to its symbols.

A line says itself what it computes: `outside = before >= p  # equation: top_p`; the value of that
statement is then lit with the symbol top_p, however it is written. What is smaller than a
statement is marked by a piece of its line with the symbol's own part in «»: "return «q» @ k". Where
the source moves on, so that the piece stands there no longer or twice, the line is shown unlit.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from transformer.messages import invalid

ROOT = Path(__file__).resolve().parents[3]  # holds the package
SHORT = 6  # lines that are shown in full; of longer code the marked lines alone
Span = tuple[int, int, int, str]  # line, first and last character, part
Mark = str | tuple[str, str]
_NAMED = re.compile(r"  # equation: (\w+)$")

Line = dict[str, Any]


def excerpt(symbol: str, *marks: Mark) -> dict[str, Any]:
    """Where a formula is computed, as plain values.

    {symbol, file, lines: [{number, pieces: [[text, [part, ...]], ...]}]}
    symbol: "module.name" within `transformer`, a function, a method or a table. marks: a part that
    a line of the source names, or (part, piece). A line without a number stands for lines that are
    left out; the parts of a piece: the narrowest first.
    """
    file, first, lines, hidden, named = _source(symbol)
    found = (
        named.get(mark) if isinstance(mark, str) else _found(lines, hidden, *mark)
        for mark in marks
    )  # fmt: skip
    spans = [span for span in found if span is not None]
    marked = {at for at, *_ in spans}
    open_lines = [at for at in range(len(lines)) if at not in hidden]
    short = len(open_lines) <= SHORT
    shown = [at for at in open_lines if short or at in marked or at == 0]
    return {
        "symbol": ".".join(symbol.split(".")[2:]),
        "file": file,
        "lines": list(_lines(lines, shown, spans, first)),
    }


def _lines(lines: list[str], shown: list[int], spans: list[Span], first: int) -> Any:
    before = shown[0]
    for at in shown:
        if at > before + 1:
            yield {"number": None, "pieces": []}
        before = at
        here = [(start, stop, part) for line, start, stop, part in spans if line == at]
        yield {"number": first + at, "pieces": _pieces(lines[at], here)}


def _pieces(line: str, spans: list[tuple[int, int, str]]) -> list[list[Any]]:
    """The line cut wherever a span begins or ends, each piece with the parts that it is of."""
    cuts = sorted({0, len(line), *(edge for start, stop, _ in spans for edge in (start, stop))})
    found = []
    for start, stop in itertools.pairwise(cuts):
        around = [one for one in spans if one[0] <= start and stop <= one[1]]
        around.sort(key=lambda one: one[1] - one[0])
        found.append([line[start:stop], [part for *_, part in around]])
    return found


def _found(lines: Sequence[str], hidden: set[int], part: str, piece: str) -> Span | None:
    before, _, rest = piece.partition("«")
    lit, _, after = rest.partition("»")
    text = before + lit + after
    places = [
        (at, place.start() + len(before))
        for at, line in enumerate(lines)
        if at not in hidden
        for place in re.finditer(re.escape(text), line)
    ]
    if len(places) != 1:
        return None
    ((at, start),) = places
    return at, start, start + len(lit), part


@functools.cache
def _source(symbol: str) -> tuple[str, int, list[str], set[int], dict[str, Span]]:
    """(file, number of the first line, lines without their common margin and without the parts that
    they name, which of them to hide, the spans of these parts)"""
    module, names = _module_of(symbol)
    path = Path(inspect.getsourcefile(module) or "")
    text = inspect.getsource(module)
    node: Any = ast.parse(text)
    for name in names:
        node = next((one for one in node.body if name in _names_of(one)), None)
        if node is None:
            raise invalid("there is no {symbol} in the source", symbol=symbol)
    written = text.splitlines()[node.lineno - 1 : node.end_lineno]
    margin = len(written[0]) - len(written[0].lstrip())
    return (
        path.resolve().relative_to(ROOT).as_posix(),
        node.lineno,
        [_NAMED.sub("", line)[margin:] for line in written],
        _docstring(node) | {at for at, line in enumerate(written) if not line.strip()},
        dict(_spans(node, written, margin)),
    )


def _spans(node: ast.AST, written: Sequence[str], margin: int) -> Iterator[tuple[str, Span]]:
    """Of each part that a line names: where the value stands that its statement has there."""
    first: int = node.lineno  # type: ignore[attr-defined]
    statements = (one for one in ast.walk(node) if isinstance(one, ast.stmt))
    values = {one.lineno - first: getattr(one, "value", None) for one in statements}
    for at, line in enumerate(written):
        name, value = _NAMED.search(line), values.get(at)
        if name and value is not None and value.lineno == first + at:
            code = _NAMED.sub("", line)
            stop = value.end_col_offset if value.end_lineno == value.lineno else len(code)
            yield name[1], (at, value.col_offset - margin, stop - margin, name[1])


def _module_of(symbol: str) -> tuple[Any, list[str]]:
    """The module of "model.blocks.Residual.added", and the names within it."""
    parts = symbol.split(".")
    module = importlib.import_module(".".join(["transformer", *parts[:2]]))
    return module, parts[2:]


def _names_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    return [one.id for one in targets if isinstance(one, ast.Name)]


def _docstring(node: Any) -> set[int]:
    """The lines of its docstring, counted from its first."""
    if not isinstance(node, ast.FunctionDef) or ast.get_docstring(node) is None:
        return set()
    said = node.body[0]
    return set(range(said.lineno - node.lineno, (said.end_lineno or 0) - node.lineno + 1))
