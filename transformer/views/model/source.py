"""The lines of our source that compute a formula, found by the names in them.

The network needs no marks for it, and an argument may be renamed.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]  # contains the package
SHORT = 6  # a function of fewer lines is shown in full, of others the lines with a part
Span = tuple[int, int, int, str]  # line, first and last character, part


def excerpt(function: Callable[..., Any], **parts: str) -> dict[str, Any]:
    """The lines of a function that compute the parts of a formula, as plain values.

    {symbol, file, lines: [{number, pieces: [[text, [part, ...]], ...]}]}
    parts: for each the names of its expressions. A name means the values assigned to it, else its
    calls, else each mention; "return" what is returned. "z:pattern" is `pattern` within z,
    "wide/gate" those values of `wide` that mention `gate`. A line without a number marks
    omitted lines; the parts of a piece: the narrowest first. Raises LookupError for a missing name.
    """
    source, start = inspect.getsourcelines(function)
    text = textwrap.dedent("".join(source)).splitlines()
    node = ast.parse("\n".join(text)).body[0]
    assert isinstance(node, ast.FunctionDef)
    file = Path(inspect.getfile(function)).resolve().relative_to(ROOT).as_posix()
    spans: list[Span] = []
    for part, names in parts.items():
        for name in names.split():
            found = _expressions(node, name)
            if not found:
                raise LookupError(
                    f"{file}: {function.__qualname__} has no `{name}`, which the equations show as "
                    f"{part}; name its replacement in transformer/views/model"
                )
            spans += [span for value in found for span in _spans(text, value, part)]

    first = node.body[ast.get_docstring(node) is not None].lineno
    body = {at for at in range(first, len(text) + 1) if text[at - 1].strip()}
    lit = {at for at, *_ in spans}
    lines: list[dict[str, Any]] = []
    before = node.lineno
    for at in sorted({node.lineno} | (body if len(body) < SHORT else lit)):
        if at > before + 1 and not (before == node.lineno and at == first):
            lines.append({"number": None, "pieces": []})
        here = [span[1:] for span in spans if span[0] == at]
        lines.append({"number": start + at - 1, "pieces": _pieces(text[at - 1], here)})
        before = at
    return {"symbol": function.__qualname__, "file": file, "lines": lines}


def _expressions(node: ast.AST, name: str) -> list[Any]:
    """What a name of `excerpt` means."""
    for sign in ":/":
        outer, has_sign, inner = name.partition(sign)
        if has_sign:
            pairs = [(value, _named(value, inner)) for value in _named(node, outer)]
            if sign == "/":
                return [value for value, mentions in pairs if mentions]
            return [mention for _, mentions in pairs for mention in mentions]
    return _named(node, name)


def _named(node: ast.AST, name: str) -> list[Any]:
    """The values assigned to a name within a node, else its calls, else its mentions."""
    assigned, called, mentioned = [], [], []
    for one in ast.walk(node):
        match one:
            case ast.Return(value=ast.expr() as value) if name == "return":
                assigned.append(value)
            case ast.Assign(targets=[target], value=value):
                if name in _targets(target) and not _is_hook(value):
                    assigned.append(value)
            case ast.Call(func=ast.Name(id=found) | ast.Attribute(attr=found)) if found == name:
                called.append(one)
            case ast.Name(id=found) | ast.Attribute(attr=found) | ast.keyword(arg=found):
                mentioned += [one] * (found == name)
    return assigned or called or mentioned


def _targets(target: ast.expr) -> set[str]:
    """The variables of an assignment's left side; of `matrix[:, 0::2]` it is `matrix`."""
    each = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [one.value if isinstance(one, ast.Subscript) else one for one in each]
    return {one.id for one in names if isinstance(one, ast.Name)}


def _is_hook(value: ast.expr) -> bool:
    """Whether it is `context.at("scores", site, scores)`, which computes nothing."""
    return isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "at"


def _spans(text: list[str], node: Any, part: str) -> list[Span]:
    """The characters of an expression, on each of its lines."""
    numbers = range(node.lineno, node.end_lineno + 1)
    starts = {node.lineno: node.col_offset}
    stops = {node.end_lineno: node.end_col_offset}
    return [
        (at, starts.get(at, len(line) - len(line.lstrip())), stops.get(at, len(line)), part)
        for at in numbers
        for line in [text[at - 1]]
    ]


def _pieces(line: str, spans: list[tuple[int, int, str]]) -> list[list[Any]]:
    """The line cut wherever a span begins or ends, each piece with its parts."""
    edges = {edge for start, stop, _ in spans for edge in (start, stop)}
    pieces = []
    for start, stop in itertools.pairwise(sorted({0, len(line)} | edges)):
        around = [span for span in spans if span[0] <= start and stop <= span[1]]
        around.sort(key=lambda span: span[1] - span[0])
        pieces.append([line[start:stop], list(dict.fromkeys(part for *_, part in around))])
    return pieces
