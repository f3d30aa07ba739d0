"""Where the next token's logits come from: for a batch the network, for one row its engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.buffers import Greedy
from transformer.messages import invalid
from transformer.model.cache import KeyValueCache
from transformer.model.transformer import DecoderOnly, EncoderDecoder


class LogitSource(Protocol):
    """Reads rows that grow by one token between two calls of `logits`."""

    cache: KeyValueCache | None

    def logits(self) -> Tensor:
        """(B, V), for the token after each row."""

    def starts(self) -> list[int]:
        """Where in each row begins what the network sees."""

    @property
    def full(self) -> bool:
        """Whether no further token fits."""


def pad(rows: Sequence[Sequence[int]], padding_id: int) -> Tensor:
    """Rows of ids as one (B, T) int64, padded on the right."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[padding_id] * (width - len(row))] for row in rows])


def text_in(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor | None:
    """Which ids of `pad(rows)` are text: (B, T) bool, or None where all are."""
    lengths = torch.tensor([len(row) for row in rows], device=device)
    is_text = torch.arange(int(lengths.max()), device=device) < lengths[:, None]
    return None if bool(is_text.all()) else is_text


def logit_source_of(
    model: DecoderOnly | EncoderDecoder,
    rows: list[list[int]],
    sources: Sequence[Sequence[int]] | None,
    session: DecodeSession | None = None,
    greedy: Greedy | None = None,
) -> LogitSource:
    """What reads these rows. session: decodes a single row faster. greedy: how that row goes on, if
    the likeliest token is always taken.

    Raises ValueError for rows that the model cannot read together.
    """
    plain = _network_source(model, rows, sources)
    source = list(sources[0]) if sources else []
    read = rows[0][1:] if model.config.padded_start else rows[0]
    padded = model.config.output_padding_id in read or model.config.padding_id in source
    if session is None or len(rows) > 1 or padded:
        return plain
    return _SessionSource(plain, session, rows[0], source, greedy)


def _network_source(
    model: DecoderOnly | EncoderDecoder,
    rows: list[list[int]],
    sources: Sequence[Sequence[int]] | None,
) -> _DecoderSource | _EncoderDecoderSource:
    if isinstance(model, DecoderOnly):
        return _DecoderSource(model, rows)
    if not isinstance(model, EncoderDecoder):
        raise invalid(
            "a {family} model cannot generate; it has no decoder", family=model.config.family
        )
    if sources is None or len(sources) != len(rows) or not all(sources):
        raise invalid("an encoder-decoder needs one source of at least one token for each prompt")
    return _EncoderDecoderSource(model, rows, [list(source) for source in sources])


class _DecoderSource:
    """Reads a batch of rows with a decoder-only network, keeping keys and values.

    While all rows fit the network, each call reads one new token a row. Past max_len the window
    slides: every position changes, so nothing of the past can be kept and the window is read anew.
    """

    def __init__(self, model: DecoderOnly, rows: list[list[int]]) -> None:
        self.model, self.rows = model, rows
        self.cache: KeyValueCache | None = KeyValueCache()
        self.begun = False  # the cache holds all but each row's last token

    def logits(self) -> Tensor:
        """(B, V), for the token after each row."""
        longest = max(map(len, self.rows))
        if self.cache is None or longest > self.model.config.max_len:
            self.cache = None
            seen = [row[start:] for row, start in zip(self.rows, self.starts(), strict=True)]
            return self._read(seen)[:, -1]
        fresh = [row[-1:] for row in self.rows] if self.begun else self.rows
        self.begun = True
        return self._read(fresh)[:, -1]

    def starts(self) -> list[int]:
        """Where in each row begins what the network sees."""
        return [max(0, len(row) - self.model.config.max_len) for row in self.rows]

    def _read(self, rows: list[list[int]]) -> Tensor:
        """Logits of rows as a batch, padded on the left."""
        reverse = [row[::-1] for row in rows]
        ids = pad(reverse, self.model.config.padding_id or 0).to(self.model.device)
        is_text = text_in(reverse, ids.device)
        if is_text is not None:
            is_text = is_text.flip(-1)
        return self.model(ids.flip(-1), is_text=is_text, cache=self.cache)

    @property
    def full(self) -> bool:
        """A window can always slide on."""
        return False


class _EncoderDecoderSource:
    """Reads targets with an encoder-decoder; the sources are encoded once."""

    def __init__(
        self,
        model: EncoderDecoder,
        rows: list[list[int]],
        sources: list[list[int]],
    ) -> None:
        self.model, self.rows = model, rows
        self.source = pad(sources, model.config.padding_id or 0).to(model.device)
        self.is_text = text_in(sources, model.device)
        self.memory: Tensor | None = None  # encoded when first needed
        self.cache: KeyValueCache | None = KeyValueCache()

    def logits(self) -> Tensor:
        """(B, V), for the token after each row; rows are all of one length."""
        assert self.cache is not None
        if self.memory is None:
            self.memory = self.model.encode(self.source, src_is_text=self.is_text)
        target = torch.tensor([row[self.cache.length :] for row in self.rows])
        target = target.to(self.model.device)
        decoded = self.model.decode(
            target, self.memory, self.source, src_is_text=self.is_text, cache=self.cache
        )
        return decoded[:, -1]

    def starts(self) -> list[int]:
        """All of each row is seen: an encoder-decoder's window does not slide."""
        return [0] * len(self.rows)

    @property
    def full(self) -> bool:
        """No further token fits."""
        return len(self.rows[0]) > self.model.config.output_max_len


class _SessionSource:
    """One row, decoded by a fast engine as far as it fits the network.

    Where a decoder-only window slides, the network takes over.
    """

    cache: KeyValueCache | None = None

    def __init__(
        self,
        plain: LogitSource,
        session: DecodeSession,
        row: list[int],
        source: list[int],
        greedy: Greedy | None = None,
    ) -> None:
        self.plain, self.session, self.row, self.source = plain, session, row, source
        self.begun = False
        self.greedy, self.longest = greedy, len(row) + (greedy.most if greedy else 0)

    def logits(self) -> Tensor:
        """(1, V), for the token after the row."""
        if len(self.row) > self.session.engine.network.config.output_max_len:
            return self.plain.logits()
        if not self.begun:
            self.begun = True
            self.session.begin(self.row, self.source)
        place = len(self.session.ids)
        if place < len(self.row):
            left = self.greedy and self.greedy._replace(most=self.longest - place)
            self.session.read(*self.row[place:], greedy=left)
        return self.session.logits[None]

    def starts(self) -> list[int]:
        """Where in the row begins what the network sees."""
        return self.plain.starts()

    @property
    def full(self) -> bool:
        """Whether no further token fits."""
        return self.plain.full
