"""Beam search: the likeliest texts rather than the likeliest next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from transformer.inference.generation import pad
from transformer.inference.sampling import check_number, check_whole
from transformer.model.attention import KeyValueCache
from transformer.model.transformer import EncoderDecoder

MAX_BEAMS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """A finished text, the end token included if it was reached.

    score: the sum of the tokens' log-probabilities. normalised: score / length ** length_penalty,
    by which hypotheses are ranked.
    """

    ids: tuple[int, ...]
    score: float
    normalised: float
    ended: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class BeamNode:
    """A hypothesis at one step: its newest token and where it came from.

    parent: index in the step before (-1 at the first). state: "alive", "ended" (it took the end
    token) or "cut" (extended no further: others were better).
    """

    token: int
    parent: int
    score: float
    state: str


@dataclass(slots=True, eq=False)
class BeamResult:
    """What a search found for one source, best first, and the tree that it grew."""

    hypotheses: list[Hypothesis] = field(default_factory=list)
    steps: list[list[BeamNode]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Row:
    """One source's search: live hypotheses, finished ones, and the tree."""

    result: BeamResult
    alive: list[tuple[int, ...]]
    nodes: list[int]  # the live hypotheses' places in the tree's last step
    done: bool = False


@torch.inference_mode()
def beam_search(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    *,
    start_id: int,
    end_id: int,
    beams: int,
    max_new_tokens: int,
    length_penalty: float = 1.0,
) -> list[BeamResult]:
    """Search for each source, all of them in one batch; a row's result is that which it gets alone.

    At each step every live hypothesis is extended by every token and the `beams` best go on. One
    that takes the end token is finished. A row stops when `beams` hypotheses are finished, so that
    one beam is greedy decoding. Raises ValueError for settings out of range.
    Source: Graves 2012; the length penalty as in Wu et al. 2016, with plain length.
    """
    check_whole("beams", beams, 1, MAX_BEAMS)
    check_number("length_penalty", length_penalty, 0.0, 5.0)
    if not sources or not all(sources):
        raise ValueError("beam search needs at least one source, each of at least one token")
    search = _Search(model, sources, start_id, end_id, beams, length_penalty)
    for _ in range(min(max_new_tokens, model.config.max_len)):
        if all(row.done for row in search.rows):
            break
        search.step()
    return search.finish()


class _Search:
    """The batch under way: B rows of K beams, flattened to B * K rows of the network."""

    def __init__(
        self,
        model: EncoderDecoder,
        sources: Sequence[Sequence[int]],
        start_id: int,
        end_id: int,
        beams: int,
        length_penalty: float,
    ) -> None:
        padding_id = model.config.padding_id
        if padding_id is None and len({len(source) for source in sources}) > 1:
            raise ValueError(
                "sources of unequal length need a model with a padding_id; it has none"
            )
        source = pad(sources, padding_id or 0).to(model.device)
        repeat = torch.arange(len(source), device=model.device).repeat_interleave(beams)
        self.model, self.beams, self.end_id = model, beams, end_id
        self.length_penalty = length_penalty
        self.source, self.memory = source[repeat], model.encode(source)[repeat]
        self.cache = KeyValueCache()
        self.rows = [_Row(BeamResult(), [()] * beams, [-1] * beams) for _ in source]
        # All beams start equal: only the first may branch, or each branch would come K times.
        self.scores = torch.full((len(source), beams), -torch.inf, dtype=torch.float64)
        self.scores[:, 0] = 0.0
        self.last = torch.full((len(repeat), 1), start_id, device=model.device)

    def step(self) -> None:
        """Extend, rank, sort into live and finished."""
        logits = self.model.decode(self.last, self.memory, self.source, cache=self.cache)[:, -1]
        log_probabilities = logits.double().log_softmax(dim=-1).cpu()
        if self.model.config.padding_id is not None:  # as in generation: padding is not text
            log_probabilities[:, self.model.config.padding_id] = -torch.inf
        n_tokens = log_probabilities.shape[-1]
        totals = self.scores[..., None] + log_probabilities.view(len(self.rows), self.beams, -1)
        # Twice as many as beams, so that enough remain when the best ones take the end token.
        count = min(2 * self.beams, self.beams * n_tokens)
        best, places = totals.flatten(1).topk(count, dim=-1)
        origins = torch.zeros(len(self.rows), self.beams, dtype=torch.int64)
        tokens = torch.full((len(self.rows), self.beams), self.end_id)
        for index, row in enumerate(self.rows):
            if row.done:
                continue
            chosen = [
                (place // n_tokens, place % n_tokens, score)
                for place, score in zip(places[index].tolist(), best[index].tolist(), strict=True)
            ]
            kept = self._advance(row, chosen)
            for slot, (beam, token, score) in enumerate(kept):
                origins[index, slot], tokens[index, slot] = beam, token
                self.scores[index, slot] = score
            self.scores[index, len(kept) :] = -torch.inf
        self._move(origins, tokens)

    def _advance(
        self, row: _Row, chosen: list[tuple[int, int, float]]
    ) -> list[tuple[int, int, float]]:
        """Sort a row's best extensions (beam, token, score) into finished and live ones."""
        kept: list[tuple[int, int, float]] = []
        nodes: list[BeamNode] = []
        places: list[int] = []
        for rank, (beam, token, score) in enumerate(chosen):
            if score == -torch.inf:
                continue
            ended = token == self.end_id
            if ended and rank < self.beams:
                self._finish(row, (*row.alive[beam], token), score, ended=True)
            if not ended and len(kept) < self.beams:
                places.append(len(nodes))
                kept.append((beam, token, score))
                state = "alive"
            else:
                state = "ended" if ended and rank < self.beams else "cut"
            nodes.append(BeamNode(token=token, parent=row.nodes[beam], score=score, state=state))
        row.result.steps.append(nodes)
        row.alive = [(*row.alive[beam], token) for beam, token, _ in kept]
        row.nodes = places
        row.done = len(row.result.hypotheses) >= self.beams
        return kept

    def _move(self, origins: Tensor, tokens: Tensor) -> None:
        """Let each slot of the network go on from the hypothesis that now stands there."""
        first = torch.arange(len(self.rows))[:, None] * self.beams
        self.cache.select((first + origins).flatten().to(self.model.device))
        self.last = tokens.flatten()[:, None].to(self.model.device)

    def _finish(self, row: _Row, ids: tuple[int, ...], score: float, *, ended: bool) -> None:
        normalised = score / max(1, len(ids)) ** self.length_penalty
        row.result.hypotheses.append(
            Hypothesis(ids=ids, score=score, normalised=normalised, ended=ended)
        )

    def finish(self) -> list[BeamResult]:
        """Rows that ran out of tokens finish as they stand; all ranked, the best first."""
        for row, scores in zip(self.rows, self.scores.tolist(), strict=True):
            if not row.done:
                for ids, score in zip(row.alive, scores, strict=False):
                    self._finish(row, ids, score, ended=False)
            row.result.hypotheses.sort(key=lambda hypothesis: -hypothesis.normalised)
            del row.result.hypotheses[self.beams :]
        return [row.result for row in self.rows]
