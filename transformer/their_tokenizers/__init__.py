"""Tokenizers of other people's networks, shown and used as ours are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformer.messages import invalid
from transformer.their_tokenizers.fast import FastTokenizer, SpecialIds
from transformer.their_tokenizers.marian import MarianTokenizer

__all__ = ["FastTokenizer", "MarianTokenizer", "SpecialIds", "from_settings", "read", "settings_of"]


def read(folder: Path, ids: SpecialIds, vocab_size: int) -> FastTokenizer | MarianTokenizer:
    """What a folder holds: tokenizer.json, or Marian's source.spm, target.spm and vocab.json.

    vocab_size: ids that the network has, some of which may stand for nothing. Raises ValueError.
    """
    if (folder / "source.spm").is_file():
        return MarianTokenizer(folder, ids, vocab_size)
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise invalid(
            "{folder} holds no tokenizer.json; needed: one, or Marian's source.spm, target.spm "
            "and vocab.json (transformers writes it: AutoTokenizer.from_pretrained(...)"
            ".save_pretrained(...))",
            folder=folder,
        )
    return FastTokenizer(path, ids, vocab_size)


def settings_of(tokenizer: FastTokenizer | MarianTokenizer) -> dict[str, Any]:
    """Its special ids as plain values, for a checkpoint's metadata."""
    ids = tokenizer.ids
    return {"start": ids.start, "ends": sorted(ids.ends), "padding": ids.padding}


def from_settings(folder: Path, settings: Any, vocab_size: int) -> FastTokenizer | MarianTokenizer:
    """The inverse of `settings_of` and `save`. Raises ValueError."""
    try:
        ids = SpecialIds(
            start=int(settings["start"]),
            ends=frozenset(map(int, settings["ends"])),
            padding=None if settings["padding"] is None else int(settings["padding"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise invalid(
            "the ids under 'tokenizer' must be start, ends and padding; got {got}",
            got=repr(settings),
        ) from error
    return read(folder, ids, vocab_size)
