"""Text to ids and back: byte-level BPE, and how a token is shown to people."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer as BPETokenizer
from tokenizers import decoders, models, pre_tokenizers, trainers

PADDING = "<|padding|>"
START = "<|start|>"
END = "<|endoftext|>"
SPECIALS = (PADDING, START, END)  # ids 0, 1, 2 in every vocabulary of ours

_VISIBLE = {" ": "␣", "\n": "⏎", "\t": "⇥"}
# Letters, marks and symbols that draw nothing, and the sign that stands for broken text elsewhere.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffd")


class Tokenizer:
    """Byte-level BPE: every string has ids, and they decode to exactly that string.

    A special token's name typed by a visitor is ordinary text: only the program puts in the
    special ids `padding_id`, `start_id` and `end_id`.
    """

    def __init__(self, bpe: BPETokenizer) -> None:
        bpe.encode_special_tokens = True
        self._bpe = bpe
        self.padding_id = self._special(PADDING)
        self.start_id = self._special(START)
        self.end_id = self._special(END)
        self._specials = {self.padding_id: PADDING, self.start_id: START, self.end_id: END}
        names = {index: name for name, index in bpe.get_vocab().items()}
        if set(names) != set(range(len(names))):
            raise ValueError(f"its {len(names)} ids must count up from 0; highest: {max(names)}")
        self._bytes = [
            b"" if index in self._specials else _to_bytes(names[index])
            for index in range(len(names))
        ]

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> Tokenizer:
        """Learn merges from texts. vocab_size counts the 256 bytes and the three specials."""
        smallest = 256 + len(SPECIALS)
        if vocab_size < smallest:
            raise ValueError(f"vocab_size must be at least {smallest}; got {vocab_size}")
        bpe = BPETokenizer(models.BPE())
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        bpe.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=list(SPECIALS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        bpe.train_from_iterator(texts, trainer)
        return cls(bpe)

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Read a tokenizer.json. Raises ValueError if it is not one of ours."""
        try:
            bpe = BPETokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise ValueError(f"{path} is not a readable tokenizer file: {error}") from error
        try:
            return cls(bpe)
        except ValueError as error:
            raise ValueError(f"{path} is not a tokenizer of this project: {error}") from error

    def save(self, path: Path) -> None:
        """Write tokenizer.json."""
        self._bpe.save(str(path))

    @property
    def vocab_size(self) -> int:
        """Number of ids, specials included."""
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without specials. Raises ValueError for half of a surrogate pair."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"the text holds half of a surrogate pair at character {error.start}, which is not "
                "valid Unicode; allowed: any valid Unicode text"
            ) from error
        return self._bpe.encode(text, add_special_tokens=False).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The same for many texts, on all cores."""
        return [found.ids for found in self._bpe.encode_batch_fast(texts, add_special_tokens=False)]

    def to_bytes(self, ids: Iterable[int]) -> bytes:
        """The UTF-8 bytes that ids stand for; specials stand for none."""
        return b"".join(self._bytes[index] for index in ids)

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids. Bytes that end in the middle of a character become U+FFFD."""
        return self.to_bytes(ids).decode("utf-8", errors="replace")

    def label(self, index: int) -> str:
        """A token as shown to people: spaces and controls visible, broken characters as bytes."""
        if index in self._specials:
            return self._specials[index]
        return show(self._bytes[index])

    def labels(self, ids: Iterable[int]) -> list[str]:
        """`label` for each id."""
        return [self.label(index) for index in ids]

    def _special(self, name: str) -> int:
        index = self._bpe.token_to_id(name)
        if index is None:
            raise ValueError(f"the tokenizer has no {name} token; needed: {list(SPECIALS)}")
        return index


def show(raw: bytes) -> str:
    """Bytes as a label: ␣ ⏎ ⇥ for white space, ‹E2 82› for part of a character.

    Other control and invisible characters are written ‹U+200B›, so that no token looks empty and
    none can turn the direction of the page's text.
    """
    text = raw.decode("utf-8", errors="surrogateescape")
    shown: list[str] = []
    broken: list[str] = []
    for character in text:
        if "\udc80" <= character <= "\udcff":
            broken.append(f"{ord(character) - 0xDC00:02X}")
            continue
        _flush(broken, shown)
        shown.append(_show_character(character, first=not shown))
    _flush(broken, shown)
    return "".join(shown)


def _flush(broken: list[str], shown: list[str]) -> None:
    if broken:
        shown.append(f"‹{' '.join(broken)}›")
        broken.clear()


def _show_character(character: str, *, first: bool) -> str:
    if character in _VISIBLE:
        return _VISIBLE[character]
    category = unicodedata.category(character)[0]
    hidden = category in "CZ" or character in _UNSEEN  # control, format, unassigned; separators
    if hidden or (first and category == "M"):  # a mark with no letter of this token to stand on
        return f"‹U+{ord(character):04X}›"
    return character


@lru_cache(maxsize=1)
def _byte_of_character() -> dict[str, int]:
    """The byte-level alphabet: printable bytes stand for themselves, the rest from U+0100 up.

    Source: Radford et al. 2019 (GPT-2), whose table the tokenizers library uses.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in set(printable)]
    return table | {chr(0x100 + place): byte for place, byte in enumerate(others)}


def _to_bytes(name: str) -> bytes:
    table = _byte_of_character()
    try:
        return bytes(table[character] for character in name)
    except KeyError as error:
        raise ValueError(f"token {name!r} is not byte-level; needed: a byte-level BPE") from error
