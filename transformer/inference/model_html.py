"""A model as HTML for a notebook: one line of facts, and a row for each of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from transformer.inference.loaded import LoadedModel
from transformer.model.summary import Block, blocks

_HEADINGS = ("part", "what passes through it", "layers", "parameters")
_CELL = "padding:1px 10px 1px 0;text-align:left"


def html(model: LoadedModel) -> str:
    """The parts in the order of the data. It has no script and no colours: the notebook's theme
    stays."""
    rows = [_row("th", _HEADINGS), *(_row("td", cells) for cells in _cells(model))]
    about = f"{escape(repr(model))}<br>{escape(repr(model.tokenizer))}"
    return f"<div><p>{about}</p><table>{''.join(rows)}</table></div>"


def _cells(model: LoadedModel) -> Iterator[tuple[str, ...]]:
    for block in blocks(model.config):
        layers = str(block.times) if block.in_layer else ""
        count = f"as of {block.shared_with}" if block.shared_with else f"{block.n_parameters:,}"
        yield block.name, _shapes(block), layers, count


def _shapes(block: Block) -> str:
    return " → ".join(" × ".join(map(str, shape)) for shape in block.inside)


def _row(kind: str, cells: tuple[str, ...]) -> str:
    row = (f'<{kind} style="{_CELL}">{escape(cell)}</{kind}>' for cell in cells)
    return f"<tr>{''.join(row)}</tr>"
