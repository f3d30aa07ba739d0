"""Tokenizers of other projects, from the files in their folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as BPETokenizer

from transformer.checks import check_file, shortened, text_of
from transformer.tokenizer import around, panics_said
from transformer.tokenizer.byte_ids import CLASS, ByteTokenizer
from transformer.tokenizer.chat import FILE, read_template
from transformer.tokenizer.cost import check_cost
from transformer.tokenizer.foreign import BYTE, SpecialIds, TheirTokenizer, settings_file
from transformer.tokenizer.labels import byte_level_or_plain, show
from transformer.tokenizer.pieces import PIECE_FILES, MarianTokenizer, PieceTokenizer, deberta
from transformer.tokenizer.vocabulary_files import (
    add_tokens,
    byte_level_bpe,
    token_name,
    word_piece,
)

MASKS = ("[MASK]", "<mask>")  # usual names of the mask token


_ANCHOR = "x"  # a token that stands for the others of a text


# Files of a tokenizer -> how they are read, the first that a folder has.
TOKENIZER_FILES: dict[str, Callable[[Path, dict[str, Any]], BPETokenizer]] = {
    "tokenizer.json": lambda folder, settings: BPETokenizer.from_file(
        str(folder / "tokenizer.json")
    ),
    "vocab.txt": word_piece,
    "merges.txt": byte_level_bpe,
    "spm.model": deberta,
}


class FastTokenizer(TheirTokenizer):
    """Any tokenizer.json, or the files it is made of. Raises ValueError for unreadable ones."""

    def __init__(self, path: Path, ids: SpecialIds, vocab_size: int) -> None:
        try:
            check_file(path)
            settings = settings_file(path.parent)
            bpe = TOKENIZER_FILES[path.name](path.parent, settings)
            add_tokens(bpe, path.parent, settings, vocab_size)
            content = json.loads(bpe.to_str())
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a bare Exception, or a Rust panic
            raise ValueError(f"{path} is not a readable tokenizer file: {error}") from error
        try:
            check_cost(bpe, content)
        except ValueError as error:
            raise ValueError(f"{path} cannot be used: {error}") from error
        bpe.no_truncation()
        bpe.no_padding()
        bpe.encode_special_tokens = True
        self._bpe, self._content = bpe, content
        self._decoder = json.dumps(content["decoder"])
        self._parts: dict[tuple[int, bool, bool], bytes] = {}
        if ids.mask is None:
            ids = replace(ids, mask=_mask(path.parent, content, vocab_size))
        names, specials = _names(bpe, content, vocab_size), _specials(content, ids, vocab_size)
        super().__init__(ids, names, (), specials)
        self.read_languages(settings)
        self.chat_template = read_template(path.parent, settings)

    @property
    def kind(self) -> str:
        """A description of its tokens."""
        model = str(self._content["model"]["type"])
        steps = json.dumps([self._content[step] for step in ("pre_tokenizer", "decoder")])
        return f"byte-level {model}" if "ByteLevel" in steps else model

    def save(self, path: Path) -> None:
        """Write tokenizer.json, and the chat template with the special tokens that it may name."""
        path.write_text(json.dumps(self._content, ensure_ascii=False), encoding="utf-8")
        if (chat := self.chat_template) is not None:
            path.with_name(FILE).write_text(chat.source, encoding="utf-8")
            settings = json.dumps(dict(chat.special), ensure_ascii=False)
            path.with_name("tokenizer_config.json").write_text(settings, encoding="utf-8")

    def pair(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
        """The ids of two texts as an encoder reads them, and their token types."""
        text = self.readable("a")
        n, joined = len(part := self.encode(text)), self._bpe.encode(text, text)
        ids, types = joined.ids, joined.type_ids
        starts = [at for at in range(len(ids)) if ids[at : at + n] == part]
        a, b = starts[0], starts[-1]
        return (
            [*ids[:a], *first, *ids[a + n : b], *second, *ids[b + n :]],
            [
                *types[:a], *[types[a]] * len(first), *types[a + n : b],
                *[types[b]] * len(second), *types[b + n :],
            ],
        )  # fmt: skip

    def encode_chat(self, text: str) -> list[int]:
        """Ids of the text of a conversation, in which names of special tokens are read as these
        tokens."""
        with panics_said():
            return list(self._reading_specials.encode(text, add_special_tokens=False).ids)

    @cached_property
    def _reading_specials(self) -> BPETokenizer:
        """The tokenizer that reads names of special tokens in a text as these."""
        return BPETokenizer.from_str(self._bpe.to_str())

    def _framed(self, text: str) -> list[int]:
        return self._encoded(text, special=True) or [self.start_id]

    @cached_property
    def _frame(self) -> tuple[list[int], list[int]]:
        return around(self)

    def label(self, index: int) -> str:
        """A token for display: spaces visible, "##" before the continuation of a word."""
        if index not in self._specials and self._content["model"]["type"] == "WordPiece":
            return show(self.names[index].encode()) if self.names[index] else super().label(index)
        return super().label(index)

    @property
    def vocab_size(self) -> int:
        """The number of ids in the network."""
        return len(self.names)

    def token_bytes(self, index: int) -> bytes:
        """The bytes of one token inside a text; none for a special token."""
        return self._part(index) if self._is_text(index) else b""

    def whole(self, ids: Iterable[int]) -> bytes:
        """The bytes of a whole text, whose first and last token may decode otherwise."""
        kept = [index for index in ids if self._is_text(index)]
        if not kept:
            return b""
        first = self._part(kept[0], is_first=True, is_last=len(kept) == 1)
        last = self._part(kept[-1], is_last=True) if len(kept) > 1 else b""
        return first + self.to_bytes(kept[1:-1]) + last

    def added(self, before: Sequence[int], ids: Sequence[int]) -> bytes:
        """The bytes that more ids add to the text of the ids before them."""
        if "ByteLevel" in self._decoder:  # the same bytes at each place
            return self.to_bytes(ids)
        last = next((index for index in reversed(before) if self._is_text(index)), None)
        if last is None:
            return self.whole(ids)
        return self.whole([last, *ids])[len(self.whole([last])) :]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, as transformers' tokenizers decode them without their special tokens and
        without `clean_up_tokenization_spaces`."""
        kept = [index for index in self.checked(ids) if self._is_text(index)]
        return self._bpe.decode(kept, skip_special_tokens=False)

    def _is_text(self, index: int) -> bool:
        return index not in self._specials and self.names[index] != ""

    def _part(self, index: int, *, is_first: bool = False, is_last: bool = False) -> bytes:
        """The bytes that a token decodes to, between others or at an end of a text."""
        place = index, is_first, is_last
        if place not in self._parts:
            self._parts[place] = self._part_of(index, is_first, is_last)
        return self._parts[place]

    def _part_of(self, index: int, is_first: bool, is_last: bool) -> bytes:
        name = str(self._bpe.id_to_token(index))  # of an added word, as it is normalised
        if "ByteLevel" in self._decoder:
            return byte_level_or_plain(name)
        byte = BYTE.fullmatch(name) if "ByteFallback" in self._decoder else None
        if byte and int(byte[1], 16) > 0x7F:  # part of a character
            return bytes([int(byte[1], 16)])
        before, behind = [_ANCHOR] * (not is_first), [_ANCHOR] * (not is_last)
        text = self._joined([*before, name, *behind])
        n_behind = len(self._joined([_ANCHOR] * 2)) - len(_ANCHOR) if behind else 0
        return text[len(_ANCHOR) * (not is_first) : len(text) - n_behind].encode()

    def _joined(self, names: list[str]) -> str:
        """The text of tokens by their names."""
        decoder = self._bpe.decoder
        return " ".join(names) if decoder is None else str(decoder.decode(names))


def _names(bpe: BPETokenizer, content: dict[str, Any], vocab_size: int) -> list[str]:
    """The tokens by id. A special one may be beyond the network's: padding that was added without
    resizing the network."""
    special = {added["content"] for added in content["added_tokens"] if added["special"]}
    names = [""] * vocab_size
    for name, index in bpe.get_vocab().items():
        if index >= vocab_size and name in special:
            continue
        if index >= vocab_size:
            raise ValueError(
                f"token {shortened(name)} has the id {index}; needed: ids below the network's "
                f"vocabulary of {vocab_size}"
            )
        names[index] = name
    return names


def _specials(content: dict[str, Any], ids: SpecialIds, vocab_size: int) -> set[int]:
    """A start or an end that config.json names is none where it is a word like others, as padding
    0 or a start 1 often are in vocabularies that begin with "!": a text then has it."""
    named = {ids.start, *ids.ends, ids.padding}
    specials = {
        added["id"] for added in content["added_tokens"] if added["special"] or added["id"] in named
    }
    specials |= set() if ids.mask is None else {ids.mask}
    return {index for index in specials if index < vocab_size}


def _mask(folder: Path, content: dict[str, Any], vocab_size: int) -> int | None:
    """The mask token: named by the settings files in the folder, else by a usual name, or None."""
    named = [
        _mask_name(folder / name) for name in ("tokenizer_config.json", "special_tokens_map.json")
    ]
    added = {
        token["content"]: token["id"]
        for token in content["added_tokens"]
        if token["id"] < vocab_size
    }
    return next((added[name] for name in (*named, *MASKS) if name in added), None)


def _mask_name(path: Path) -> str | None:
    """The mask token that a settings file names, or None."""
    try:
        named = json.loads(text_of(path))["mask_token"]
        return token_name(named)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def read(folder: Path, ids: SpecialIds, vocab_size: int) -> TheirTokenizer:
    """Read a folder's tokenizer.json, vocab.txt, vocab.json and merges.txt, or SentencePiece files.

    vocab_size: the number of ids in the network, some of which may be unused. Raises ValueError.
    """
    if (folder / "source.spm").is_file():
        return MarianTokenizer(folder, ids, vocab_size)
    if settings_file(folder).get("tokenizer_class") == CLASS:
        return ByteTokenizer(folder, ids, vocab_size)
    files = (folder / name for name in (*TOKENIZER_FILES, *PIECE_FILES))
    path = next((file for file in files if file.is_file()), None)
    if path is None:
        raise ValueError(
            f"{folder} holds no tokenizer.json; needed: one, or vocab.txt, or vocab.json and "
            "merges.txt, or tokenizer.model, spiece.model or spm.model, or Marian's source.spm, "
            "target.spm and vocab.json (transformers writes it: "
            "AutoTokenizer.from_pretrained(...).save_pretrained(...))"
        )
    kind = PieceTokenizer if path.name in PIECE_FILES else FastTokenizer
    return kind(path, ids, vocab_size)


def settings_of(tokenizer: TheirTokenizer) -> dict[str, Any]:
    """Its special ids as plain values, for a checkpoint's metadata."""
    ids = tokenizer.ids
    return {
        "start": ids.start, "ends": sorted(ids.ends), "padding": ids.padding, "mask": ids.mask,
        "then": list(ids.then), "source_language": ids.source_language,
        "forced_end": ids.forced_end,
    }  # fmt: skip


def from_settings(folder: Path, settings: Any, vocab_size: int) -> TheirTokenizer:
    """The inverse of `settings_of` and `save`. Raises ValueError."""

    def optional(name: str) -> int | None:
        return None if settings[name] is None else int(settings[name])

    try:
        ids = SpecialIds(
            start=int(settings["start"]),
            ends=frozenset(map(int, settings["ends"])),
            padding=optional("padding"),
            mask=optional("mask"),
            then=tuple(map(int, settings["then"])),
            source_language=optional("source_language"),
            forced_end=optional("forced_end") if "forced_end" in settings else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            "the ids under 'tokenizer' must be start, ends, padding, mask, then and "
            f"source_language; got {shortened(settings)}"
        ) from error
    return read(folder, ids, vocab_size)
