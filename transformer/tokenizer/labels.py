"""A token's bytes and its readable label."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from transformer.checks import shortened

_VISIBLE = {" ": "␣", "\n": "⏎", "\t": "⇥"}
# Letters, marks and symbols that draw nothing, and the replacement character.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffd")


def show(raw: bytes) -> str:
    """Bytes as a label: ␣ ⏎ ⇥ for white space, ‹E2 82› for part of a character.

    Other control and invisible characters are written ‹U+200B›, so that no token looks empty and
    none can turn the direction of the page's text.
    """
    text = raw.decode("utf-8", errors="surrogateescape")
    parts: list[str] = []
    broken: list[str] = []
    for character in text:
        if "\udc80" <= character <= "\udcff":
            broken.append(f"{ord(character) - 0xDC00:02X}")
            continue
        _flush(broken, parts)
        parts.append(_show_character(character, first=not parts))
    _flush(broken, parts)
    return "".join(parts)


def _flush(broken: list[str], parts: list[str]) -> None:
    if broken:
        parts.append(f"‹{' '.join(broken)}›")
        broken.clear()


def _show_character(character: str, *, first: bool) -> str:
    if character in _VISIBLE:
        return _VISIBLE[character]
    category = unicodedata.category(character)[0]
    hidden = category in "CZ" or character in _UNSEEN  # control, format, unassigned; separators
    if hidden or (first and category == "M"):  # a combining mark without a letter
        return f"‹U+{ord(character):04X}›"
    return character


@lru_cache(maxsize=1)
def _byte_of_character() -> dict[str, int]:
    """The byte-level alphabet: printable bytes map to themselves, the rest to U+0100 and up.

    Source: Radford et al. 2019 (GPT-2), whose table the tokenizers library uses.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in set(printable)]
    return table | {chr(0x100 + place): byte for place, byte in enumerate(others)}


def byte_level_or_plain(name: str) -> bytes:
    """The bytes of a token in the byte-level alphabet; of any other, those of its name."""
    table = _byte_of_character()
    is_byte_level = all(character in table for character in name)
    return byte_level(name) if is_byte_level else name.encode()


def byte_level(name: str) -> bytes:
    """The bytes of a token that is written in the byte-level alphabet; ValueError for another."""
    table = _byte_of_character()
    try:
        return bytes(table[character] for character in name)
    except KeyError as error:
        raise ValueError(
            f"token {shortened(name)} is not byte-level; needed: a byte-level BPE"
        ) from error
