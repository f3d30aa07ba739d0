"""Ids in, ids out, one token at a time; each step keeps what it chose from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.inference import patience
from transformer.inference.altered import AlteredReader
from transformer.inference.candidates import Candidate, Described, describe
from transformer.inference.readers import Reader, reader_of
from transformer.inference.reading import Reading
from transformer.inference.sampling import Sampling, draw
from transformer.model.changes import Changes
from transformer.model.transformer import DecoderOnly, EncoderDecoder


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationStep:
    """One generated token.

    window: (start, stop) in the row's tokens; the step saw exactly these.
    candidates: the N_CANDIDATES likeliest, likeliest first; the chosen one is added at the end
    if it is not among them. In a step that `generate` made they are described at the first look.
    n_kept: how many tokens of the vocabulary the filters left.
    """

    index: int
    token: int
    window: tuple[int, int]
    candidates: Sequence[Candidate]
    n_kept: int

    @property
    def chosen(self) -> Candidate:
        """The candidate that was taken."""
        return next(c for c in self.candidates if c.id == self.token)


_Choice = tuple[int, Sequence[Candidate], int]  # token, candidates, how many were possible


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
    reading: Reading | None = None,
    taken: Sequence[int] = (),
    changes: Changes | None = None,
) -> Iterator[list[GenerationStep | None]]:
    """Continue each prompt; yields one list a step, with None for rows that have ended.

    prompts: ids to go on from, each at least one id (for an encoder-decoder of one length, the
    start id). sources: for an encoder-decoder, what to translate. sampling None = greedy.
    seeds: one a row; a row's result does not depend on the batch that it stands in.
    reading: reads a single row faster, and keeps what the decoder computed. taken: tokens that the
    first steps take whatever the network says. changes: what to alter in the network, for a
    single row.
    A row ends when it takes end_id; padding is never taken. To cancel, stop iterating.
    """
    rows = [list(prompt) for prompt in prompts]
    if not rows or not all(rows):
        raise ValueError(
            "generation needs at least one token to go on from in each prompt; got none"
        )
    reader: Reader
    if changes is None:
        reader = reader_of(model, rows, sources, end_id, reading)
    else:
        reader = AlteredReader(model, rows[0], sources[0] if sources else None, changes)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds or [0] * len(rows)]
    ended, described = [False] * len(rows), Described()
    for index in range(max_new_tokens):
        if all(ended) or reader.full or patience.is_over():
            return
        starts = [
            len(row) - len(window) for row, window in zip(rows, reader.windows(), strict=True)
        ]
        forced = taken[index] if index < len(taken) else None
        logits = reader.logits().float()
        taking = _take(logits, sampling, generators, model.config.padding_id, forced)
        chosen: list[_Choice] = [
            (token, described.add(row, drawn, token), n_kept)
            for row, (token, drawn, n_kept) in zip(logits, taking, strict=True)
        ]
        yield _append(rows, ended, starts, chosen, index, end_id)


def forced_steps(logits: Tensor, tokens: Sequence[int], n_prompt: int) -> list[GenerationStep]:
    """The steps that took `tokens` after n_prompt others, chosen elsewhere (by a beam search, say).

    logits: (T, V), row t those from which tokens[t] was taken.
    """
    described = describe(logits.float(), [None] * len(tokens), tokens)
    return [
        GenerationStep(
            index=index,
            token=token,
            window=(0, n_prompt + index),
            candidates=candidates,
            n_kept=1,
        )
        for index, (token, candidates) in enumerate(zip(tokens, described, strict=True))
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


def _take(
    logits: Tensor,
    sampling: Sampling | None,
    generators: list[torch.Generator],
    padding_id: int | None,
    forced: int | None = None,
) -> list[tuple[int, Tensor | None, int]]:
    """What each row of (B, V) logits takes; forced: a token that is taken in any case.

    With it the probabilities that it was drawn from, (V,) after the filters, and how many tokens
    these leave; greedy: None and 1. A forced step draws too, so that the steps after it have the
    random numbers that they would have had.
    """
    if sampling is None:
        tokens = logits.argmax(dim=-1).tolist()
        if padding_id in tokens:  # not taken: later tokens could not attend to it
            tokens = _without(logits, padding_id).argmax(dim=-1).tolist()
        return [(token if forced is None else forced, None, 1) for token in tokens]
    filtered = sampling.filter(_without(logits, padding_id)).softmax(dim=-1).cpu()
    drawn = draw(filtered, generators).tolist()
    counts = (filtered > 0).sum(dim=-1).tolist()
    return [
        (token if forced is None else forced, row, n_kept)
        for token, row, n_kept in zip(drawn, filtered, counts, strict=True)
    ]


def _without(logits: Tensor, padding_id: int | None) -> Tensor:
    """Logits by which padding is impossible."""
    if padding_id is None:
        return logits
    return logits.index_fill(-1, torch.tensor(padding_id, device=logits.device), -math.inf)
