"""Formulas as text, and the MathML tree that the browser draws of them.

    "s:scores = {q:q K^T:k} / √D:root"

`_` and `^` set an index and a power, `/` a fraction, `√` a root; `//` is a plain slash. Braces
group and are not seen, `f(x)` applies a function, `cases{a & "if" b; c & d;}` is one of several
values, and "..." are words of WORDS. `:part` names what stands before it, so that a symbol, the
code that computes it and its numbers belong together.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any, NamedTuple

from transformer.messages import mark, say

WORDS = mark("if"), mark("otherwise"), mark("always"), mark("padding")
Node = list[Any]  # [tag, part or "", *children]; a child is a text or a Node
_TOKEN = re.compile(
    r"""(?P<space>\s*)(?:"(?P<mtext>[^"]*)"|(?P<mn>\d+(?:[.,\u00a0\u202f]\d+)*)
    |(?P<mi>[^\W\d_]+′?|∞)|:(?P<part>\w+)|(?P<mo>//|\S))""",
    re.VERBOSE,
)


class _Token(NamedTuple):
    kind: str
    text: str
    touches: bool  # what stands before it


Tokens = deque[_Token]


def mathml(text: str) -> Node:
    """The tree of a formula."""
    found = _TOKEN.finditer(text)
    kinds = ((str(one.lastgroup), one) for one in found)
    tokens = deque(_Token(kind, one[kind], not one["space"]) for kind, one in kinds)
    return _row(_terms(tokens))


def _row(terms: list[Node]) -> Node:
    return terms[0] if len(terms) == 1 else ["mrow", "", *terms]


def _terms(tokens: Tokens, end: str = "") -> list[Node]:
    """What stands before the sign `end`, or all that is left."""
    terms = []
    while tokens and not _takes(tokens, end):
        over = _scripted(tokens)
        slash = _takes(tokens, "/")
        terms.append(["mfrac", "", over, _scripted(tokens)] if slash else over)
    return terms


def _takes(tokens: Tokens, sign: str) -> bool:
    found = bool(tokens) and tokens[0][:2] == ("mo", sign)
    if found:
        tokens.popleft()
    return found


def _scripted(tokens: Tokens) -> Node:
    """A symbol with its index, power and part, and what it is applied to."""
    node = _atom(tokens)
    for sign, tag in (("_", "munder" if node[2] == "∑" else "msub"), ("^", "msup")):
        if _takes(tokens, sign):
            node = [tag, "", node, _atom(tokens)]
    if tokens and tokens[0].kind == "part":
        node = ["mrow", "", node] if node[1] else node
        node[1] = tokens.popleft().text
    if tokens and tokens[0].touches and _takes(tokens, "("):
        node = ["mrow", "", node, ["mo", "", "\u2061"], _fenced(tokens)]
    return node


def _atom(tokens: Tokens) -> Node:
    kind, text, _ = tokens.popleft()
    if (kind, text) == ("mo", "{"):
        return _row(_terms(tokens, "}"))
    if (kind, text) == ("mo", "("):
        return _fenced(tokens)
    if text == "√":
        return ["msqrt", "", _atom(tokens)]
    if text == "cases" and _takes(tokens, "{"):
        return _cases(tokens)
    assert text not in ("_", "^", "}", ":"), f"nothing stands before {text}"
    if kind == "mtext":
        return [kind, "", say(text)]
    return [kind, "", "/" if text == "//" else text]


def _fenced(tokens: Tokens) -> Node:
    return ["mrow", "", ["mo", "", "("], *_terms(tokens, ")"), ["mo", "", ")"]]


def _cases(tokens: Tokens) -> Node:
    rows = []
    while not _takes(tokens, "}"):
        cells = [["mtd", "", *_terms(tokens, end)] for end in "&;"]
        rows.append(["mtr", "", *cells])
    return ["mrow", "", ["mo", "", "{"], ["mtable", "", *rows]]
