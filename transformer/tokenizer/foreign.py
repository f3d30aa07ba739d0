"""The base class of tokenizers that other projects trained."""

from __future__ import annotations

import copy
import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from transformer.checks import check_choice, text_of
from transformer.messages import say
from transformer.tokenizer import Tokenizer

SPACE = "▁"  # SentencePiece's
BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a single byte
# A language as in mBART or NLLB, and in M2M-100: en_XX, eng_Latn; __en__.
_LANGUAGE = re.compile(r"[a-z]{2,3}_[A-Z]{2}|[a-z]{3}_[A-Z][a-z]{3}|__[a-z]{2,3}__")


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialIds:
    """start: what a decoder continues if the prompt is empty. ends: they end a text.

    padding: fills up the rows of a batch, or None. mask: hides a token; None if no file names it.
    then: they follow the start of a target: its language, or what the network was trained with.
    source_language: replaces the language that the tokenizer adds to a source. forced_end: the last
    of the most new tokens, in a network that was trained so.
    """

    start: int
    ends: frozenset[int]
    padding: int | None
    mask: int | None = None
    then: tuple[int, ...] = ()
    source_language: int | None = None
    forced_end: int | None = None


class TheirTokenizer(Tokenizer):
    """Base class of tokenizers that other projects trained.

    names: by id, the tokenizer's own spelling of the token, "" for an unused id. raw: by id, the
    bytes it decodes to, none for a special token. A special token's name in a text is ordinary
    text.
    """

    def __init__(
        self, ids: SpecialIds, names: Sequence[str], raw: Sequence[bytes], specials: Iterable[int]
    ) -> None:
        self.ids, self.names = ids, names
        self._bytes, self._by_character = list(raw), False
        self._known: frozenset[str] = frozenset()
        self._specials = {index: names[index] for index in specials}
        self.start_id, self.end_id = ids.start, min(ids.ends, default=ids.start)
        self.padding_id = min(ids.ends, default=0) if ids.padding is None else ids.padding

    @property
    @abstractmethod
    def _frame(self) -> tuple[list[int], list[int]]:
        """The special ids that it adds before and after a text."""

    @property
    def target_start(self) -> list[int]:
        """The start token, and those that follow it in every target."""
        return [self.start_id, *self.ids.then]

    @cached_property
    def languages(self) -> dict[str, int]:
        """The special tokens that name a language, by name."""
        return {name: at for at, name in self._specials.items() if _LANGUAGE.fullmatch(name)}

    def read_languages(self, settings: dict[str, Any]) -> None:
        """Those that tokenizer_config.json names, unless others were chosen."""
        source, target = (settings.get(name) for name in ("src_lang", "tgt_lang"))
        if self.ids.source_language is None and source in self.languages:
            self.ids = replace(self.ids, source_language=self.languages[source])
        if not self.ids.then and target in self.languages:
            self.ids = self._to(target, self.ids)
            self.start_id = self.ids.start

    def between(self, source: str | None, target: str | None) -> Tokenizer:
        """This tokenizer from one of its languages to another; None = unchanged."""
        if not self.languages:
            return super().between(source, target)
        for name in (source, target):
            if name is not None:
                check_choice("language", name, self.languages)
        chosen = self.ids
        if source is not None:
            chosen = replace(chosen, source_language=self.languages[source])
        if target is not None:
            chosen = self._to(target, chosen)
        other = copy.copy(self)
        other.ids, other.start_id = chosen, chosen.start
        return other

    def _to(self, target: str, ids: SpecialIds) -> SpecialIds:
        """Targets begin with a language, or with another token and a language."""
        language = self.languages[target]
        if ids.start in self.languages.values():
            return replace(ids, start=language)
        return replace(ids, then=(language,))

    @property
    def mask_id(self) -> int | None:
        """The token that hides another from an encoder, or None."""
        return self.ids.mask

    def reads_as_token(self, name: str) -> bool:
        """Whether a typed name is encoded as the special token of that name."""
        return name in (self.names[index] for index in self.encode(name))

    @property
    def end_ids(self) -> frozenset[int]:
        """The ids that end a text."""
        return self.ids.ends

    @property
    def forced_end(self) -> int | None:
        """The id that ends a text of maximum length, whatever the network predicts."""
        return self.ids.forced_end

    def label(self, index: int) -> str:
        """A token for display; ‹no token 7› for an unused id."""
        if not self.names[index]:
            return say("‹no token {index}›", index=index)
        return super().label(index)

    def whole(self, ids: Iterable[int]) -> bytes:
        """The bytes of a whole text, without the space that the first word carries."""
        return self.to_bytes(ids).removeprefix(b" ")

    def added(self, before: Sequence[int], ids: Sequence[int]) -> bytes:
        """The bytes that more ids add to the text of the ids before them."""
        return self.to_bytes(ids) if any(map(self.token_bytes, before)) else self.whole(ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, as transformers' tokenizers decode them without their special tokens and
        without `clean_up_tokenization_spaces`."""
        return self.whole(self.checked(ids)).decode("utf-8", errors="replace")

    def document(self, ids: Sequence[int]) -> list[int]:
        """A whole text's ids with the special ones that the tokenizer adds."""
        before, behind = self._frame
        return [*before, *ids, *behind]

    def _framed(self, text: str) -> list[int]:
        return self.document(self._encoded(text)) or [self.start_id]

    def target(self, ids: Sequence[int]) -> list[int]:
        """A whole translation's ids: what a decoder predicts after `target_start`."""
        before, _ = self._frame
        added = {*self.target_start, *self.languages.values()}
        return [*(index for index in before if index not in added), *ids, self.end_id]

    def source(self, ids: Sequence[int]) -> list[int]:
        """A text's ids as an encoder reads them, with the special ones that the tokenizer adds."""
        language, codes = self.ids.source_language, self.languages.values()
        before, behind = (
            [index if language is None or index not in codes else language for index in part]
            for part in self._frame
        )
        return [*before, *ids, *behind]


def settings_file(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json; empty without a readable one."""
    try:
        settings = json.loads(text_of(folder / "tokenizer_config.json"))
    except (OSError, ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}
