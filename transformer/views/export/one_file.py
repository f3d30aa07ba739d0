"""A page as one HTML file: its parts are texts in it, which `browser/page/one_file.js` opens."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from transformer.messages import language
from transformer.messages.templates import translate_html
from transformer.views.export.bundle import bundle, read_module

TEMPLATE = "browser/page/page.html"
OPENER = "browser/page/one_file.js"
NOTES = "browser/page/unopened.html"  # why it does not open
HOLE = re.compile(r"/\*(\w+)\*/")
ALPHABET = bytes(code for code in range(33, 127) if chr(code) not in '<&"')  # no markup
NOTHING: Mapping[str, str] = MappingProxyType({})
PACKED_GROUPS = 1 << 16  # of 13 bytes, which are packed at a time


def filled(parts: Mapping[str, str]) -> str:
    """The page's template with its parts by name: "languages", "version", "door" (what it needs
    first) and "opens" (what starts it)."""
    return HOLE.sub(lambda hole: parts.get(hole[1], hole[0]), read_module(TEMPLATE))


def door(style: str, schema: str) -> str:
    """The part "door". schema: of `json_in_script`."""
    data = f'<script type="application/json" id="view-schema">{schema}</script>'
    return f"<style>{style}</style>\n{data}"


def opener(
    texts: Mapping[str, str], imports: Mapping[str, str], later: Mapping[str, str] = NOTHING
) -> str:
    """The part "opens". texts: of `as_text`, by file; imports: the names by which scripts import
    some of the files; later: texts without which the page opens, so that a browser reads them
    after that. They are templates: browsers read those in two thirds of a script's time."""
    notes = translate_html(read_module(NOTES), language())
    script = f"<script>\n{bundle(OPENER)}</script>"
    return "\n".join([notes + _held(texts, imports), script, _held(later)])


def _held(texts: Mapping[str, str], imports: Mapping[str, str] = NOTHING) -> str:
    named = {file: f' data-import="{name}"' for file, name in imports.items()}
    return "\n".join(
        f'<template data-file="{file}"{named.get(file, "")}>{text}</template>'
        for file, text in texts.items()
    )


def as_text(content: bytes, *, is_float16: bool = False, level: int = 9) -> str:
    """gzip as text: 13 bits in two of 91 characters, 23 % more than the bytes (base64: 33 %), after
    the number of bytes too many that the last bits make. is_float16: all first bytes come before
    all second ones, of which gzip makes 7 % less. level: of gzip."""
    if is_float16:
        content = content[::2] + content[1::2]
    data = np.frombuffer(gzip.compress(content, level, mtime=0), np.uint8)
    parts = b"".join(part.tobytes() for part in _letters(data))
    n_bits = 13 * (len(parts) // 2)
    return f"{n_bits // 8 - len(data)}{parts.decode('ascii')}"


def _letters(data: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """The characters of bytes, two for 13 bits; the last bits are followed by zeros."""
    letters = np.frombuffer(ALPHABET, np.uint8)
    for start in range(0, len(data), 13 * PACKED_GROUPS):
        bits = np.unpackbits(data[start : start + 13 * PACKED_GROUPS])
        groups = np.pad(bits, (0, -len(bits) % 13)).reshape(-1, 13)
        whole = groups @ (1 << np.arange(12, -1, -1, dtype=np.int32))
        yield np.stack([letters[whole // 91], letters[whole % 91]], axis=1)
