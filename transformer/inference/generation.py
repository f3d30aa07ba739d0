"""Ids in, ids out, one token at a time; each step keeps what it chose from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.inference.altered import AlteredReader
from transformer.inference.engine import PackedDecoder
from transformer.inference.readers import Reader, reader_of
from transformer.inference.sampling import Sampling, draw
from transformer.model.changes import Changes
from transformer.model.transformer import DecoderOnly, EncoderDecoder

N_CANDIDATES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A token that the step could have taken.

    probability: by the network alone (softmax of the logits).
    sampling_probability: after temperature and filters, what was drawn from; 0 = cut.
    """

    id: int
    logit: float
    probability: float
    sampling_probability: float


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationStep:
    """One generated token.

    window: (start, stop) in the row's tokens; the step saw exactly these.
    candidates: the N_CANDIDATES likeliest, likeliest first; the chosen one is added at the end
    if it is not among them.
    n_kept: how many tokens of the vocabulary the filters left.
    """

    index: int
    token: int
    window: tuple[int, int]
    candidates: tuple[Candidate, ...]
    n_kept: int

    @property
    def chosen(self) -> Candidate:
        """The candidate that was taken."""
        return next(c for c in self.candidates if c.id == self.token)


_Choice = tuple[int, tuple[Candidate, ...], int]  # token, candidates, how many were possible


@torch.inference_mode()
def generate(
    model: DecoderOnly | EncoderDecoder,
    prompts: Sequence[Sequence[int]],
    *,
    sources: Sequence[Sequence[int]] | None = None,
    max_new_tokens: int,
    end_id: int,
    sampling: Sampling | None = None,
    seeds: Sequence[int] | None = None,
    packed: PackedDecoder | None = None,
    taken: Sequence[int] = (),
    changes: Changes | None = None,
) -> Iterator[list[GenerationStep | None]]:
    """Continue each prompt; yields one list a step, with None for rows that have ended.

    prompts: ids to go on from, each at least one id (for an encoder-decoder of one length, the
    start id). sources: for an encoder-decoder, what to translate. sampling None = greedy.
    seeds: one a row; a row's result does not depend on the batch that it stands in.
    packed: the model's packing, which reads a single row faster. taken: tokens that the first steps
    take whatever the network says. changes: what to alter in the network, for a single row.
    A row ends when it takes end_id; padding is never taken. To cancel, stop iterating.
    """
    rows = [list(prompt) for prompt in prompts]
    if not rows or not all(rows):
        raise ValueError(
            "generation needs at least one token to go on from in each prompt; got none"
        )
    reader: Reader
    if changes is None:
        reader = reader_of(model, rows, sources, end_id, packed)
    else:
        reader = AlteredReader(model, rows[0], sources[0] if sources else None, changes)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds or [0] * len(rows)]
    ended = [False] * len(rows)
    for index in range(max_new_tokens):
        if all(ended) or reader.full:
            return
        starts = [
            len(row) - len(window) for row, window in zip(rows, reader.windows(), strict=True)
        ]
        forced = taken[index] if index < len(taken) else None
        logits = reader.logits().float()
        chosen = _choose(logits, sampling, generators, model.config.padding_id, forced)
        yield _append(rows, ended, starts, chosen, index, end_id)


def forced_steps(logits: Tensor, tokens: Sequence[int], n_prompt: int) -> list[GenerationStep]:
    """The steps that took `tokens` after n_prompt others, chosen elsewhere (by a beam search, say).

    logits: (T, V), row t those from which tokens[t] was taken.
    """
    chosen = torch.tensor(list(tokens), device=logits.device)
    described = _describe(logits.float(), _all_on(chosen, logits.float()), chosen)
    return [
        GenerationStep(
            index=index,
            token=token,
            window=(0, n_prompt + index),
            candidates=candidates,
            n_kept=n_kept,
        )
        for index, (token, candidates, n_kept) in enumerate(described)
    ]


def _append(
    rows: list[list[int]],
    ended: list[bool],
    starts: list[int],
    chosen: list[_Choice],
    index: int,
    end_id: int,
) -> list[GenerationStep | None]:
    """Add the chosen tokens to their rows, and say what each row took; None where it has ended."""
    steps: list[GenerationStep | None] = []
    for place, (token, candidates, n_kept) in enumerate(chosen):
        row = rows[place]
        window = (starts[place], len(row))
        row.append(end_id if ended[place] else token)
        step = GenerationStep(
            index=index, token=token, window=window, candidates=candidates, n_kept=n_kept
        )
        steps.append(None if ended[place] else step)
        ended[place] = ended[place] or token == end_id
    return steps


def _choose(
    logits: Tensor,
    sampling: Sampling | None,
    generators: list[torch.Generator],
    padding_id: int | None,
    forced: int | None = None,
) -> list[_Choice]:
    """What each row of (B, V) logits takes; forced: a token that is taken in any case.

    A forced step draws too, so that the steps after it have the random numbers that they would have
    had.
    """
    allowed = logits.clone()
    if padding_id is not None:
        allowed[:, padding_id] = -math.inf  # later tokens could not attend to it
    if sampling is None:
        chosen = _forced(allowed.argmax(dim=-1), forced)
        return _describe(logits, _all_on(chosen, logits), chosen)
    filtered = sampling.filter(allowed).softmax(dim=-1)
    return _describe(logits, filtered, _forced(draw(filtered, generators), forced))


def _forced(chosen: Tensor, forced: int | None) -> Tensor:
    return chosen if forced is None else torch.full_like(chosen, forced)


def _all_on(chosen: Tensor, logits: Tensor) -> Tensor:
    """(B,) tokens -> (B, V): all probability on each."""
    return torch.zeros_like(logits).scatter(-1, chosen[:, None], 1.0)


def _describe(logits: Tensor, filtered: Tensor, chosen: Tensor) -> list[_Choice]:
    """For each row of (B, V) logits: the token taken, its candidates, how many were possible."""
    probabilities = logits.softmax(dim=-1)
    top = logits.topk(min(N_CANDIDATES, logits.shape[-1]), dim=-1).indices
    shown = torch.cat([top, chosen[:, None]], dim=-1)
    columns = [t.gather(-1, shown).tolist() for t in (logits, probabilities, filtered)]
    kept = (filtered > 0).sum(dim=-1).tolist()
    result = []
    for row, ids in enumerate(shown.tolist()):
        candidates = [
            Candidate(id=i, logit=a, probability=b, sampling_probability=c)
            for i, a, b, c in zip(ids, *(column[row] for column in columns), strict=True)
        ]
        if ids[-1] in ids[:-1]:
            candidates.pop()
        result.append((ids[-1], tuple(candidates), kept[row]))
    return result
