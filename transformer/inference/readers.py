"""How the next token's logits are read: a batch by the network, one row by its engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from transformer.inference.reading import Reading
from transformer.model.attention import KeyValueCache
from transformer.model.transformer import DecoderOnly, EncoderDecoder


class Reader(Protocol):
    """Reads rows that grow by one token between two calls of `logits`."""

    cache: KeyValueCache | None

    def logits(self) -> Tensor:
        """(B, V), for the token after each row."""

    def windows(self) -> list[list[int]]:
        """What of each row the network sees."""

    @property
    def full(self) -> bool:
        """Whether no further token fits."""


def pad(rows: Sequence[Sequence[int]], padding_id: int) -> Tensor:
    """Rows of ids as one (B, T) int64, padded on the right."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[padding_id] * (width - len(row))] for row in rows])


def reader_of(
    model: DecoderOnly | EncoderDecoder,
    rows: list[list[int]],
    sources: Sequence[Sequence[int]] | None,
    end_id: int,
    reading: Reading | None = None,
) -> Reader:
    """What reads these rows. reading: what reads a single row faster.

    Raises ValueError for rows that the model cannot read together.
    """
    plain = _plain_reader(model, rows, sources, end_id)
    source = list(sources[0]) if sources else []
    if reading is None or len(rows) > 1 or model.config.padding_id in [*rows[0], *source]:
        return plain
    return _FastReader(plain, reading, rows[0], source)


def _plain_reader(
    model: DecoderOnly | EncoderDecoder,
    rows: list[list[int]],
    sources: Sequence[Sequence[int]] | None,
    end_id: int,
) -> _DecoderReader | _EncoderDecoderReader:
    padding_id = model.config.padding_id
    if padding_id is None:
        if len({len(row) for row in rows}) > 1:
            raise ValueError(
                "prompts of unequal length need a model with a padding_id; it has none"
            )
        padding_id = end_id  # never looked at: no row is padded
    if isinstance(model, DecoderOnly):
        return _DecoderReader(model, rows, padding_id)
    if not isinstance(model, EncoderDecoder):
        raise ValueError(f"a {model.config.family} model cannot generate; it has no decoder")
    if sources is None or len(sources) != len(rows) or not all(sources):
        raise ValueError(
            "an encoder-decoder needs one source of at least one token for each prompt"
        )
    return _EncoderDecoderReader(model, rows, [list(source) for source in sources], padding_id)


class _DecoderReader:
    """Reads a batch of rows with a decoder-only network, keeping keys and values.

    While all rows fit the network, each call reads one new token a row. Past max_len the window
    slides: every position changes, so nothing of the past can be kept and the window is read anew.
    """

    def __init__(self, model: DecoderOnly, rows: list[list[int]], padding_id: int) -> None:
        self.model, self.rows, self.padding_id = model, rows, padding_id
        self.cache: KeyValueCache | None = KeyValueCache()
        self.begun = False  # the cache holds all but each row's last token

    def logits(self) -> Tensor:
        """(B, V), for the token after each row."""
        longest = max(map(len, self.rows))
        if self.cache is None or longest > self.model.config.max_len:
            self.cache = None
            return self.model(self._columns(self.windows()))[:, -1]
        fresh = self._columns([row[-1:] for row in self.rows] if self.begun else self.rows)
        self.begun = True
        return self.model(fresh, cache=self.cache)[:, -1]

    def windows(self) -> list[list[int]]:
        """What of each row the network sees."""
        return [row[-self.model.config.max_len :] for row in self.rows]

    def _columns(self, rows: list[list[int]]) -> Tensor:
        """Rows of unequal length as a batch, padded on the left."""
        width = max(map(len, rows))
        padded = [[self.padding_id] * (width - len(row)) + row for row in rows]
        return torch.tensor(padded, device=self.model.device)

    @property
    def full(self) -> bool:
        """A window can always slide on."""
        return False


class _EncoderDecoderReader:
    """Reads targets with an encoder-decoder; the sources are encoded once."""

    def __init__(
        self,
        model: EncoderDecoder,
        rows: list[list[int]],
        sources: list[list[int]],
        padding_id: int,
    ) -> None:
        self.model, self.rows = model, rows
        self.source = pad(sources, padding_id).to(model.device)
        self.memory: Tensor | None = None  # encoded when first needed
        self.cache: KeyValueCache | None = KeyValueCache()

    def logits(self) -> Tensor:
        """(B, V), for the token after each row; rows are all of one length."""
        assert self.cache is not None
        if self.memory is None:
            self.memory = self.model.encode(self.source)
        target = torch.tensor([row[self.cache.length :] for row in self.rows])
        target = target.to(self.model.device)
        return self.model.decode(target, self.memory, self.source, cache=self.cache)[:, -1]

    def windows(self) -> list[list[int]]:
        """All of each row: an encoder-decoder's window does not slide."""
        return self.rows

    @property
    def full(self) -> bool:
        """No further token fits."""
        return len(self.rows[0]) > self.model.config.max_len


class _FastReader:
    """One row, read by a fast engine as far as it fits the network.

    Where a decoder-only window slides, the network takes over.
    """

    cache: KeyValueCache | None = None

    def __init__(self, plain: Reader, reading: Reading, row: list[int], source: list[int]) -> None:
        self.plain, self.reading, self.row, self.source = plain, reading, row, source
        self.begun = False

    def logits(self) -> Tensor:
        """(1, V), for the token after the row."""
        if len(self.row) > self.reading.engine.network.config.max_len:
            return self.plain.logits()
        if not self.begun:
            self.begun = True
            self.reading.begin(self.row, self.source)
        while len(self.reading.ids) < len(self.row):
            self.reading.read(self.row[len(self.reading.ids)])
        return self.reading.logits[None]

    def windows(self) -> list[list[int]]:
        """What of the row the network sees."""
        return self.plain.windows()

    @property
    def full(self) -> bool:
        """Whether no further token fits."""
        return self.plain.full
