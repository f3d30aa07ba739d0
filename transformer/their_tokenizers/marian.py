"""Marian's tokenizer: one SentencePiece model for each language, one vocabulary for both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer.checks import needs_package
from transformer.messages import invalid
from transformer.plain_files import check_file, text_of
from transformer.their_tokenizers.fast import SpecialIds, TheirTokenizer

FILES = ("source.spm", "target.spm", "vocab.json")
_UNKNOWN, _SPACE = "<unk>", "▁"


class MarianTokenizer(TheirTokenizer):
    """Pieces of SentencePiece, whose ids are those of vocab.json. Raises ValueError."""

    def __init__(self, folder: Path, ids: SpecialIds, vocab_size: int) -> None:
        self._folder = folder
        self._ids_of = _vocabulary(folder / "vocab.json", vocab_size)
        self._pieces = _pieces(folder / "source.spm")
        names = [""] * vocab_size
        for name, index in self._ids_of.items():
            names[index] = name
        given = {ids.start, *ids.ends, *([] if ids.padding is None else [ids.padding])}
        specials = {*given, self._ids_of[_UNKNOWN]}
        raw = [
            b"" if index in specials else name.replace(_SPACE, " ").encode()
            for index, name in enumerate(names)
        ]
        super().__init__(ids, names, raw, specials)

    @property
    def kind(self) -> str:
        """What its tokens are, in words."""
        return "SentencePiece"

    def save(self, path: Path) -> None:
        """Write its three files beside the path that is given."""
        for name in FILES:
            if self._folder.resolve() != path.parent.resolve():
                shutil.copyfile(self._folder / name, path.parent / name)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, without specials."""
        return [self.encode(text) for text in texts]

    def _encoded(self, text: str, *, specials: bool = False) -> list[int]:
        """A source's ids; a code like >>fra<< at its beginning is one token."""
        code, text = _language_code(text)
        pieces = [*code, *self._pieces.encode(text, out_type=str)]
        unknown = self._ids_of[_UNKNOWN]
        return [self._ids_of.get(piece, unknown) for piece in pieces]


def _language_code(text: str) -> tuple[list[str], str]:
    end = text.find("<<")
    if not text.startswith(">>") or end < 0:
        return [], text
    return [text[: end + 2]], text[end + 2 :]


def _vocabulary(path: Path, vocab_size: int) -> dict[str, int]:
    try:
        found = json.loads(text_of(path))
        good = isinstance(found, dict) and _UNKNOWN in found
        good = good and all(isinstance(i, int) and 0 <= i < vocab_size for i in found.values())
    except (OSError, ValueError, RecursionError) as error:
        raise invalid("{path} is not readable JSON: {error}", path=path, error=error) from error
    if not good:
        raise invalid(
            "{path} must give each piece, {unknown} among them, an id below {vocab_size}",
            path=path,
            unknown=_UNKNOWN,
            vocab_size=vocab_size,
        )
    return dict(found)


def _pieces(path: Path) -> Any:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise ValueError(needs_package(str(path), "sentencepiece")) from error
    try:
        check_file(path)
        return SentencePieceProcessor(model_file=str(path))
    except (OSError, RuntimeError) as error:
        raise invalid(
            "{path} is not a readable SentencePiece model: {error}", path=path, error=error
        ) from error
