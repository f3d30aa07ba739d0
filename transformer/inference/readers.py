"""How the next token's logits are read: a batch by the network, one row by its packing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from transformer.inference.engine import PackedDecoder, Reading
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
    packed: PackedDecoder | None = None,
) -> Reader:
    """What reads these rows. packed: the model's packing, used for a single row.

    Raises ValueError for rows that the model cannot read together.
    """
    plain = _plain_reader(model, rows, sources, end_id)
    return plain if packed is None or len(rows) > 1 else _PackedReader(plain, packed, rows[0])


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
        self.fed = 0  # columns already in the cache

    def logits(self) -> Tensor:
        """(B, V), for the token after each row."""
        longest = max(map(len, self.rows))
        if self.cache is None or longest > self.model.config.max_len:
            self.cache = None
            return self.model(self._columns(self.windows()))[:, -1]
        columns = self._columns(self.rows)
        fresh = columns[:, self.fed :]
        self.fed = columns.shape[1]
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
        self.memory = model.encode(self.source)
        self.cache: KeyValueCache | None = KeyValueCache()

    def logits(self) -> Tensor:
        """(B, V), for the token after each row; rows are all of one length."""
        assert self.cache is not None
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


class _PackedReader:
    """One row: the network reads the prompt, the packing each further token.

    Where a decoder-only window slides, the network takes over again.
    """

    def __init__(self, plain: Reader, packed: PackedDecoder, row: list[int]) -> None:
        self.plain, self.packed, self.row = plain, packed, row
        self.cache = plain.cache
        self.reading: Reading | None = None

    def logits(self) -> Tensor:
        """(1, V), for the token after the row."""
        if self.reading is not None and len(self.row) <= self.packed.network.config.max_len:
            return self.reading.read(self.row[-1])[None]
        logits = self.plain.logits()
        cache = self.plain.cache
        self.reading = None if cache is None else Reading(self.packed, cache)
        return logits

    def windows(self) -> list[list[int]]:
        """What of the row the network sees."""
        return self.plain.windows()

    @property
    def full(self) -> bool:
        """Whether no further token fits."""
        return self.plain.full
