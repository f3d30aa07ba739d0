"""Formulas as plain values, which the browser makes MathML of: [tag, part or "", *children].

A child is a text or such a list. `part`: the name by which a symbol, the code that computes it and
its numbers belong together.
"""

from __future__ import annotations

from typing import Any

Node = list[Any]


def _node(tag: str, *children: Any, part: str = "") -> Node:
    return [tag, part, *children]


def mi(name: str, part: str = "") -> Node:
    """A variable or a function's name."""
    return _node("mi", name, part=part)


def mo(sign: str) -> Node:
    """A sign between terms."""
    return _node("mo", sign)


def mn(number: Any) -> Node:
    """A number."""
    return _node("mn", str(number))


def words(text: str) -> Node:
    """Words within a formula."""
    return _node("mtext", text)


def row(*children: Node, part: str = "") -> Node:
    """Side by side."""
    return _node("mrow", *children, part=part)


def frac(over: Node, under: Node) -> Node:
    """A fraction."""
    return _node("mfrac", over, under)


def root(of: Node, part: str = "") -> Node:
    """A square root."""
    return _node("msqrt", of, part=part)


def sub(base: Node, index: Node, part: str = "") -> Node:
    """With an index."""
    return _node("msub", base, index, part=part)


def sup(base: Node, power: Node, part: str = "") -> Node:
    """To a power."""
    return _node("msup", base, power, part=part)


def total(index: Node, part: str = "") -> Node:
    """A sum over an index."""
    return _node("munder", mo("∑"), index, part=part)


def paren(*children: Node) -> Node:
    """In brackets that grow with what they hold."""
    return row(mo("("), *children, mo(")"))


def of(function: Node, *arguments: Node) -> Node:
    """A function of something."""
    return row(function, mo("\u2061"), paren(*arguments))


def equal(left: Node, *right: Node) -> Node:
    """left = right, one line of a formula."""
    return row(left, mo("="), *right)


def cases(*lines: tuple[Node, Node]) -> Node:
    """One of several values, each with its condition."""
    rows = (_node("mtr", _node("mtd", value), _node("mtd", when)) for value, when in lines)
    return row(mo("{"), _node("mtable", *rows))
