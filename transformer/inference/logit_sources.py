"""Sources of the next token's logits: the network for a batch, an engine for one row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.compiled import Greedy
from transformer.interventions.hooks import are_local, continued
from transformer.model.cache import KeyValueCache
from transformer.model.functional import on_device
from transformer.model.hooks import Hook
from transformer.model.transformer import DecoderOnly, EncoderDecoder


class LogitSource(ABC):
    """Reads rows that grow by one token between two calls of `logits`.

    A decoder-only network's window slides; an encoder-decoder's does not.
    """

    def __init__(self, model: DecoderOnly | EncoderDecoder, rows: list[list[int]]) -> None:
        self.rows, self.slides = rows, not isinstance(model, EncoderDecoder)
        self.most = model.config.output_max_len

    @abstractmethod
    def logits(self) -> Tensor:
        """(B, V), for the token after each row."""

    def starts(self) -> list[int]:
        """The index in each row of the first token that the network sees."""
        return [max(0, len(row) - self.most) if self.slides else 0 for row in self.rows]

    @property
    def full(self) -> bool:
        """Whether no further token fits."""
        return not self.slides and len(self.rows[0]) > self.most


def pad(rows: Sequence[Sequence[int]], padding_id: int) -> Tensor:
    """Rows of ids as one (B, T) int64, padded on the right."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[padding_id] * (width - len(row))] for row in rows], device="cpu")


def text_in(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor | None:
    """Which ids of `pad(rows)` are text: (B, T) bool, or None where all are."""
    lengths = [len(row) for row in rows]
    if len(set(lengths)) == 1:
        return None
    return on_device(
        torch.arange(max(lengths), device="cpu") < torch.tensor(lengths, device="cpu")[:, None],
        device,
    )


def logit_source_of(
    model: DecoderOnly | EncoderDecoder,
    rows: list[list[int]],
    sources: Sequence[Sequence[int]] | None,
    session: DecodeSession | None = None,
    greedy: Greedy | None = None,
    hooks: Sequence[Hook] = (),
) -> LogitSource:
    """A reader of these rows. session: decodes a single row faster. greedy: how that row continues
    if the likeliest token is always taken. hooks: alter the network, for a single row.

    Raises ValueError for rows that the model cannot read together.
    """
    plain = _network_source(model, rows, sources, hooks)
    source = list(sources[0]) if sources else []
    if hooks and not are_local(hooks):
        return _RereadingSource(model, rows[0], source, hooks)
    if hooks or session is None or len(rows) > 1 or not session.engine.refresh():
        return plain
    return _SessionSource(plain, session, source, greedy)


def _network_source(
    model: DecoderOnly | EncoderDecoder,
    rows: list[list[int]],
    sources: Sequence[Sequence[int]] | None,
    hooks: Sequence[Hook],
) -> _DecoderSource | _EncoderDecoderSource:
    if isinstance(model, DecoderOnly):
        return _DecoderSource(model, rows, hooks)
    if not isinstance(model, EncoderDecoder):
        raise ValueError(f"a {model.config.family} model cannot generate; it has no decoder")
    if sources is None or len(sources) != len(rows) or not all(sources):
        raise ValueError(
            "an encoder-decoder needs one source of at least one token for each prompt"
        )
    return _EncoderDecoderSource(model, rows, [list(source) for source in sources], hooks)


class _DecoderSource(LogitSource):
    """Reads a batch of rows with a decoder-only network, keeping keys and values.

    While all rows fit the network, each call reads one new token per row. Past max_len the window
    slides: every position changes, so that the cache is useless and the whole window is read.
    """

    def __init__(self, model: DecoderOnly, rows: list[list[int]], hooks: Sequence[Hook]) -> None:
        super().__init__(model, rows)
        self.model, self.hooks = model, hooks
        self.cache: KeyValueCache | None = None  # of all but each row's last token

    def logits(self) -> Tensor:
        """(B, V), for the token after each row."""
        n_before = 0
        if max(map(len, self.rows)) > self.most:
            self.cache, starts = None, self.starts()
            fresh = [row[start:] for row, start in zip(self.rows, starts, strict=True)]
            n_before = starts[0]  # hooks are for a single row
        elif self.cache is None:
            self.cache, fresh = KeyValueCache(), self.rows
        else:
            n_before, fresh = self.cache.length, [row[-1:] for row in self.rows]
        return self._read(fresh, continued(self.hooks, n_before))[:, -1]

    def _read(self, rows: list[list[int]], hooks: Sequence[Hook]) -> Tensor:
        """Logits of rows as a batch, padded on the left."""
        reverse = [row[::-1] for row in rows]
        ids = on_device(pad(reverse, 0), self.model.device)
        is_text = text_in(reverse, ids.device)
        if is_text is not None:
            is_text = is_text.flip(-1)
        return self.model(ids.flip(-1), is_text=is_text, cache=self.cache, hooks=hooks)


class _EncoderDecoderSource(LogitSource):
    """Reads targets with an encoder-decoder; the sources are encoded once."""

    def __init__(
        self,
        model: EncoderDecoder,
        rows: list[list[int]],
        sources: list[list[int]],
        hooks: Sequence[Hook],
    ) -> None:
        super().__init__(model, rows)
        self.model, self.hooks = model, hooks
        self.source = pad(sources, 0).to(model.device)
        self.is_text = text_in(sources, model.device)
        self.memory: Tensor | None = None  # encoded when first needed
        self.cache = KeyValueCache()

    def logits(self) -> Tensor:
        """(B, V), for the token after each row; rows are all of one length."""
        if self.memory is None:
            self.memory = self.model.encode(self.source, src_is_text=self.is_text, hooks=self.hooks)
        target = torch.tensor([row[self.cache.length :] for row in self.rows], device="cpu")
        target = on_device(target, self.model.device)
        decoded = self.model.decode(
            target, self.memory, self.source, src_is_text=self.is_text, cache=self.cache,
            hooks=continued(self.hooks, self.cache.length),
        )  # fmt: skip
        return decoded[:, -1]


class _SessionSource(LogitSource):
    """One row, decoded by a fast engine while it fits the network.

    When a decoder-only window slides, the network takes over.
    """

    def __init__(
        self,
        plain: LogitSource,
        session: DecodeSession,
        source: list[int],
        greedy: Greedy | None = None,
    ) -> None:
        super().__init__(session.engine.network, plain.rows)
        self.plain, self.session, self.source = plain, session, source
        (self.row,) = plain.rows
        self.begun = False
        self.greedy, self.longest = greedy, len(self.row) + (greedy.most if greedy else 0)

    def logits(self) -> Tensor:
        """(1, V), for the token after the row."""
        if len(self.row) > self.most:
            return self.plain.logits()
        if not self.begun:
            self.begun = True
            self.session.begin(self.row, self.source)
        position = len(self.session.ids)
        if position < len(self.row):
            left = self.greedy and self.greedy._replace(most=self.longest - position)
            self.session.read(*self.row[position:], greedy=left)
        return self.session.logits[None]


class _RereadingSource(LogitSource):
    """Reads one row with a network that hooks alter, the whole row again for each token.

    A hook that is not local may let a position read the future, or average over the text, so keys
    and values of the past cannot be kept.
    """

    def __init__(
        self,
        network: DecoderOnly | EncoderDecoder,
        row: list[int],
        source: list[int],
        hooks: Sequence[Hook],
    ) -> None:
        super().__init__(network, [row])
        self.network, self.row, self.hooks = network, row, hooks
        if isinstance(network, EncoderDecoder):
            self.source = torch.tensor([source], device=network.device)
            self.memory = network.encode(self.source, hooks=hooks)

    def logits(self) -> Tensor:
        """(1, V), for the token after the row."""
        (start,) = self.starts()
        ids = on_device(torch.tensor([self.row[start:]], device="cpu"), self.network.device)
        hooks = continued(self.hooks, start)
        if isinstance(self.network, EncoderDecoder):
            logits = self.network.decode(ids, self.memory, self.source, hooks=hooks)
        else:
            logits = self.network(ids, hooks=hooks)
        return logits[:, -1]
