"""ByT5's tokenizer: each byte of a text is a token."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from transformer.tokenizer.foreign import SpecialIds, TheirTokenizer

CLASS = "ByT5Tokenizer"  # as tokenizer_config.json calls it
_SPECIALS = ("<pad>", "</s>", "<unk>")  # before the bytes


class ByteTokenizer(TheirTokenizer):
    """Bytes from id 3 on, then tokens that T5 was trained to fill in. Raises ValueError for a
    network with fewer ids than bytes."""

    def __init__(self, folder: Path, ids: SpecialIds, vocab_size: int) -> None:
        first = len(_SPECIALS)
        if vocab_size < first + 256:
            raise ValueError(
                f"{folder} has a tokenizer of bytes; needed: a vocabulary of at least "
                f"{first + 256}; got {vocab_size}"
            )
        self._folder = folder
        extra = range(vocab_size - first - 256)
        names = [*_SPECIALS, *map(chr, range(256)), *(f"<extra_id_{at}>" for at in extra)]
        raw = [b""] * first + [bytes([byte]) for byte in range(256)] + [b""] * len(extra)
        specials = [index for index, content in enumerate(raw) if not content]
        super().__init__(ids, names, raw, specials)

    @property
    def _frame(self) -> tuple[list[int], list[int]]:
        return [], [self.end_id]

    @property
    def kind(self) -> str:
        """A description of its tokens."""
        return "bytes"

    def save(self, path: Path) -> None:
        """Write its settings into the folder of `path`."""
        file = self._folder / "tokenizer_config.json"
        if file.resolve() != path.with_name(file.name).resolve():
            shutil.copyfile(file, path.with_name(file.name))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, without specials."""
        return [self.encode(text) for text in texts]

    def whole(self, ids: Iterable[int]) -> bytes:
        """The bytes of a whole text, which may begin with a space."""
        return self.to_bytes(ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, without bytes that are no character, as transformers decodes them."""
        return self.to_bytes(ids).decode("utf-8", errors="ignore")

    def _encoded(self, text: str, *, special: bool = False) -> list[int]:
        return [len(_SPECIALS) + byte for byte in text.encode("utf-8")]
