"""Ids in, ids out, one token at a time; each step keeps what it chose from."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import torch
from torch import Tensor

from transformer.inference import deadline
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.compiled import Greedy
from transformer.inference.intervened import IntervenedSource
from transformer.inference.logit_sources import LogitSource, logit_source_of
from transformer.inference.sampling import apply_sampling, draw
from transformer.model.hooks import Hook
from transformer.model.transformer import DecoderOnly, EncoderDecoder
from transformer.runs.request import Sampling
from transformer.runs.steps import (
    Candidate,
    CandidateBatch,
    GenerationStep,
    TextOf,
    candidates_of,
    no_text,
)

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
    session: DecodeSession | None = None,
    forced_tokens: Sequence[int] = (),
    hooks: Sequence[Hook] = (),
    text_of: TextOf = no_text,
    more_ends: Collection[int] = (),
) -> Iterator[list[GenerationStep | None]]:
    """Continue each prompt; yields one list a step, with None for rows that have ended.

    prompts: ids to go on from, each at least one id (for an encoder-decoder of one length, the
    start id). sources: for an encoder-decoder, what to translate. sampling None = greedy.
    seeds: one a row; a row's result does not depend on the batch that it stands in.
    session: decodes a single row faster, and keeps what the decoder computed. forced_tokens: what
    the first steps take, whatever the network says. hooks: what alters the network, for a
    single row. text_of: the text of a token's id, for the candidates.
    more_ends: other tokens that end a row.
    A row ends when it takes end_id; padding is never taken. To cancel, stop iterating.
    """
    rows = [list(prompt) for prompt in prompts]
    if not rows or not all(rows):
        raise ValueError(
            "generation needs at least one token to go on from in each prompt; got none"
        )
    logit_source: LogitSource
    ends = {end_id, *more_ends}
    if not hooks:
        is_greedy = sampling is None and not forced_tokens
        never = model.config.output_padding_id
        greedy = Greedy(max_new_tokens, ends, never) if is_greedy else None
        logit_source = logit_source_of(model, rows, sources, session, greedy)
    else:
        source = sources[0] if sources else None
        logit_source = IntervenedSource(model, rows[0], source, hooks)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds or [0] * len(rows)]
    ended, candidates = [False] * len(rows), CandidateBatch(text_of)
    for index in range(max_new_tokens):
        if all(ended) or logit_source.full or deadline.is_over():
            return
        starts = logit_source.starts()
        forced = forced_tokens[index] if index < len(forced_tokens) else None
        logits = logit_source.logits().float()
        taking = _take(logits, sampling, generators, model.config.output_padding_id, forced)
        chosen: list[_Choice] = [
            (token, candidates.add(row, drawn, token), n_kept)
            for row, (token, drawn, n_kept) in zip(logits, taking, strict=True)
        ]
        yield _append(rows, ended, starts, chosen, index, ends)


def forced_steps(
    logits: Tensor, tokens: Sequence[int], n_prompt: int, text_of: TextOf = no_text
) -> list[GenerationStep]:
    """The steps that took `tokens` after n_prompt others, chosen elsewhere (by a beam search, say).

    logits: (T, V), row t those from which tokens[t] was taken.
    """
    candidate_rows = candidates_of(logits.float(), [None] * len(tokens), tokens, text_of)
    return [
        GenerationStep(
            index=index,
            token=token,
            window=(0, n_prompt + index),
            candidates=candidates,
            n_kept=1,
        )
        for index, (token, candidates) in enumerate(zip(tokens, candidate_rows, strict=True))
    ]


def _append(
    rows: list[list[int]],
    ended: list[bool],
    starts: list[int],
    chosen: list[_Choice],
    index: int,
    ends: Collection[int],
) -> list[GenerationStep | None]:
    """Add the chosen tokens to their rows, and say what each row took; None where it has ended."""
    steps: list[GenerationStep | None] = []
    for place, (token, candidates, n_kept) in enumerate(chosen):
        row = rows[place]
        window = (starts[place], len(row))
        row.append(row[-1] if ended[place] else token)  # the end again
        step = GenerationStep(
            index=index, token=token, window=window, candidates=candidates, n_kept=n_kept
        )
        steps.append(None if ended[place] else step)
        ended[place] = ended[place] or token in ends
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
    left = apply_sampling(_without(logits, padding_id), sampling)
    filtered = left.softmax(dim=-1).cpu()
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
