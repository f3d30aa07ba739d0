"""Beam search: the likeliest texts rather than the likeliest next token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

import torch
from torch import Tensor

from transformer.checks import check_number, check_whole
from transformer.inference import deadline
from transformer.inference.decode_session import DecodeSession, Hypotheses
from transformer.inference.logit_sources import pad, text_in
from transformer.model.cache import KeyValueCache
from transformer.model.functional import on_device
from transformer.model.transformer import EncoderDecoder
from transformer.runs.request import MAX_BEAMS, MAX_LENGTH_PENALTY
from transformer.runs.steps import BeamNode, Hypothesis


@dataclass(slots=True, eq=False)
class BeamResult:
    """One source's hypotheses, best first, and the search tree."""

    hypotheses: list[Hypothesis] = field(default_factory=list)
    steps: list[list[BeamNode]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Live:
    """An unfinished hypothesis, and its index in the last step of the tree."""

    ids: tuple[int, ...] = ()
    score: float = 0.0
    node: int = -1


@dataclass(slots=True, eq=False)
class _Row:
    """One source's search of at most n_steps: its live hypotheses, finished ones, and the tree.

    forced_end: taken in the last step, or None.
    """

    n_steps: int
    forced_end: int | None = None
    result: BeamResult = field(default_factory=BeamResult)
    alive: list[_Live] = field(default_factory=lambda: [_Live()])
    done: bool = False


class _Move(NamedTuple):
    """A source's live hypotheses after a step: the index of each one's parent among those before,
    and its last token; none if the source is done."""

    parents: list[int]
    tokens: list[int]


@torch.inference_mode()
def beam_search(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    *,
    start: Sequence[int],
    end_ids: Collection[int],
    beams: int,
    max_new_tokens: int | Sequence[int],
    length_penalty: float = 1.0,
    forced_end: int | None = None,
    sessions: Sequence[DecodeSession] = (),
) -> list[BeamResult]:
    """Search for each source, all in one batch; a row's result does not depend on the others.

    start: the ids that every target begins with. max_new_tokens: for all sources, or one for each,
    then at least 1. forced_end: taken in a row's last step. sessions: one for each source, which
    decode faster than the network; they begin here.

    At each step every live hypothesis is extended by every token and the `beams` best continue. A
    hypothesis that takes one of end_ids is finished. A row stops when `beams` hypotheses are
    finished, so that one beam is greedy decoding. After its last step, or past the request's
    deadline, its unfinished hypotheses are ranked with the finished ones.
    Raises ValueError for settings out of range.
    Source: Graves 2012; the length penalty as in Wu et al. 2016, with plain length;
    the tokens of `start` after its first count, as in transformers.
    """
    check_whole("beams", beams, 1, MAX_BEAMS)
    check_number("length_penalty", length_penalty, 0.0, MAX_LENGTH_PENALTY)
    if not sources or not all(sources):
        raise ValueError("beam search needs at least one source, each of at least one token")
    limits = [max_new_tokens] * len(sources) if isinstance(max_new_tokens, int) else max_new_tokens
    room = model.config.output_max_len - len(start) + 1
    n_steps = [min(limit, room) for limit in limits]
    forced = [forced_end if limit <= room else None for limit in limits]
    rows = [_Row(*row) for row in zip(n_steps, forced, strict=True)]
    for session, source in zip(sessions, sources, strict=bool(sessions)):
        session.begin(start, source)
    search = _Search(
        _EngineReader(sessions, beams, n_steps)
        if sessions
        else _NetworkReader(model, sources, start),
        rows,
        end_ids=end_ids,
        padding_id=model.config.output_padding_id,
        beams=beams,
        length_penalty=length_penalty,
        n_forced=len(start) - 1,
    )
    for step in range(max(n_steps)):
        if not search.active or (step and deadline.is_over()):
            break
        search.step()
    return search.finish()


class _Reader(ABC):
    """What predicts the hypotheses of the active sources: N in all, source by source."""

    @abstractmethod
    def logits(self) -> Tensor:
        """(N, V), for the next token of each."""

    @abstractmethod
    def move(self, moves: Sequence[_Move]) -> None:
        """Let the live hypotheses be the next. moves: of each source that was active before."""


class _NetworkReader(_Reader):
    """Reads all of them with the network, as one batch."""

    def __init__(
        self, model: EncoderDecoder, sources: Sequence[Sequence[int]], start: Sequence[int]
    ) -> None:
        self.model, self.counts = model, [1] * len(sources)  # of each source's hypotheses
        self.source = pad(sources, 0).to(model.device)  # (N, Ts)
        self.is_text = text_in(sources, model.device)
        self.memory = model.encode(self.source, src_is_text=self.is_text)
        self.cache = KeyValueCache()
        self.last = torch.tensor([list(start)] * len(sources), device=model.device)

    def logits(self) -> Tensor:
        """(N, V), for the next token of each."""
        decoded = self.model.decode(
            self.last, self.memory, self.source, src_is_text=self.is_text, cache=self.cache
        )
        return decoded[:, -1].float()

    def move(self, moves: Sequence[_Move]) -> None:
        """Let the live hypotheses be the next. While row n still reads the same source, the cache
        of cross-attention, which is most of it, needs no copy."""
        last = torch.tensor([[token] for move in moves for token in move.tokens], device="cpu")
        self.last = on_device(last, self.model.device)
        origins, first = list[int](), 0
        for move, count in zip(moves, self.counts, strict=True):
            origins += [first + parent for parent in move.parents]
            first += count
        counts, before = [len(move.parents) for move in moves], self.counts
        self.counts = [count for count in counts if count]
        if origins == list(range(first)):
            return
        parents = on_device(torch.tensor(origins, device="cpu"), self.model.device)
        if counts != before:
            self.source, self.memory = self.source[parents], self.memory[parents]
            self.is_text = None if self.is_text is None else self.is_text[parents]
        self.cache.select(parents, crossing=counts != before)


class _EngineReader(_Reader):
    """Reads each source's with a fast engine, which has read the source and the start."""

    def __init__(self, sessions: Sequence[DecodeSession], beams: int, n_steps: Sequence[int]):
        self.texts = [
            Hypotheses(session, beams, max(0, n - 1))
            for session, n in zip(sessions, n_steps, strict=True)
        ]

    def logits(self) -> Tensor:
        """(N, V), for the next token of each."""
        return torch.cat([text.logits for text in self.texts])

    def move(self, moves: Sequence[_Move]) -> None:
        """Let the live hypotheses be the next."""
        left = [(text, move) for text, move in zip(self.texts, moves, strict=True) if move.tokens]
        for text, move in left:
            text.read(move.parents, move.tokens)
        self.texts = [text for text, _ in left]


class _Search:
    """The state of the batch."""

    def __init__(
        self,
        reader: _Reader,
        rows: list[_Row],
        *,
        end_ids: Collection[int],
        padding_id: int | None,
        beams: int,
        length_penalty: float,
        n_forced: int,
    ) -> None:
        self.reader, self.end_ids, self.padding_id, self.beams = reader, end_ids, padding_id, beams
        self.length_penalty, self.n_forced = length_penalty, n_forced
        self.rows = self.active = rows  # those that are not done

    def step(self) -> None:
        """Extend and rank; the remaining hypotheses are the next step's."""
        extensions, moves = self._extensions(), list[_Move]()
        first = 0
        for row in self.active:
            count = len(row.alive)
            parents = self._advance(row, extensions[first : first + count])
            tokens = [live.ids[-1] for live in row.alive]
            moves.append(_Move([], []) if row.done else _Move(parents, tokens))
            first += count
        self.active = [row for row in self.active if not row.done]
        if self.active:
            self.reader.move(moves)

    def _extensions(self) -> list[list[tuple[float, int]]]:
        """For each hypothesis its likeliest next tokens: (log-probability, token), best first.

        Twice as many as beams, so that enough remain when the best take the end token.
        """
        log_probabilities = self.reader.logits().log_softmax(dim=-1)  # (N, V)
        if self.padding_id is not None:  # as in generation: padding is not text
            log_probabilities[:, self.padding_id] = -torch.inf
        count = min(2 * self.beams, log_probabilities.shape[-1])
        best = torch.stack(log_probabilities.topk(count, dim=-1), dim=-1)  # token ids are exact
        return [[(gain, int(token)) for gain, token in row] for row in best.tolist()]

    def _advance(self, row: _Row, extensions: list[list[tuple[float, int]]]) -> list[int]:
        """Sort a row's best extensions into ended, live and cut; returns the live ones' parents."""
        is_last = len(row.result.steps) + 1 == row.n_steps
        if is_last and row.forced_end is not None:
            extensions = [[(0.0, row.forced_end)]] * len(row.alive)
        choices = [
            (live.score + gain, parent, token)
            for parent, (live, likeliest) in enumerate(zip(row.alive, extensions, strict=True))
            for gain, token in likeliest
            if gain > -torch.inf
        ]
        choices.sort(key=itemgetter(0), reverse=True)
        alive: list[_Live] = []
        parents: list[int] = []
        nodes: list[BeamNode] = []
        for rank, (score, parent, token) in enumerate(choices[: 2 * self.beams]):
            before, state = row.alive[parent], "cut"
            if token in self.end_ids:
                if rank < self.beams:
                    state = "ended"
                    self._finish(row, (*before.ids, token), score, ended=True)
            elif len(alive) < self.beams:
                state = "alive"
                alive.append(_Live((*before.ids, token), score, len(nodes)))
                parents.append(parent)
            nodes.append(BeamNode(token=token, parent=before.node, score=score, state=state))
        row.result.steps.append(nodes)
        row.alive = alive if is_last or len(row.result.hypotheses) < self.beams else []
        row.done = is_last or not row.alive
        return parents

    def _finish(self, row: _Row, ids: tuple[int, ...], score: float, *, ended: bool) -> None:
        length = max(1, self.n_forced + len(ids))
        normalised = score / length**self.length_penalty
        row.result.hypotheses.append(
            Hypothesis(ids=ids, score=score, normalised=normalised, ended=ended)
        )

    def finish(self) -> list[BeamResult]:
        """Finish rows that ran out of steps; returns all results, best hypotheses first."""
        for row in self.rows:
            for live in row.alive:
                self._finish(row, live.ids, live.score, ended=False)
            row.result.hypotheses.sort(key=lambda hypothesis: -hypothesis.normalised)
            del row.result.hypotheses[self.beams :]
        return [row.result for row in self.rows]
