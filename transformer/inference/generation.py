"""Generate token by token: temperature, top-k, top-p and min-p, and each step's candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence

import torch
from torch import Tensor

from transformer.inference import deadline
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.compiled import Greedy
from transformer.inference.logit_sources import logit_source_of
from transformer.model.functional import on_device
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
    end_ids: Collection[int],
    sampling: Sampling | None = None,
    seeds: Sequence[int] | None = None,
    session: DecodeSession | None = None,
    forced_tokens: Sequence[int] = (),
    hooks: Sequence[Hook] = (),
    text_of: TextOf = no_text,
    forced_end: int | None = None,
    repetition_penalty: float = 1.0,
    is_stopped: Callable[[Sequence[int]], bool] = lambda tokens: False,
) -> Iterator[list[GenerationStep | None]]:
    """Continue each prompt; yields one list per step, with None for rows that have ended.

    prompts: at least one id each (all of one length for an encoder-decoder: the start id).
    sources: for an encoder-decoder, ids of the texts to translate. sampling None = greedy.
    seeds: one per row; a row's result does not depend on the rest of the batch.
    session: decodes a single row faster, and keeps the decoder's activations. forced_tokens: taken
    in the first steps, whatever the network predicts. hooks: alter the network, for a single row.
    text_of: the text of a token's id, for the candidates. forced_end: taken in the last step.
    repetition_penalty: see `penalised`. is_stopped: whether a row ends with these new tokens.
    A row ends when it takes one of end_ids; padding is never taken. To cancel, stop iterating.
    """
    rows = [list(prompt) for prompt in prompts]
    if not rows or not all(rows):
        raise ValueError("each prompt needs at least one token; got none")
    forced = dict(enumerate(forced_tokens))
    if forced_end is not None:
        forced.setdefault(max_new_tokens - 1, forced_end)
    is_greedy = sampling is None and not forced and repetition_penalty == 1
    never = model.config.output_padding_id
    greedy = Greedy(max_new_tokens, end_ids, never) if is_greedy else None
    logit_source = logit_source_of(model, rows, sources, session, greedy, hooks)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds or [0] * len(rows)]
    ended, candidates = [False] * len(rows), CandidateBatch(text_of)
    n_prompt = [len(row) for row in rows]
    for index in range(max_new_tokens):
        if all(ended) or logit_source.full or deadline.is_over():
            return
        starts = logit_source.starts()
        logits = logit_source.logits().float()
        left = logits if repetition_penalty == 1 else penalised(logits, rows, repetition_penalty)
        taking = _take(
            left, sampling, generators, model.config.output_padding_id, forced.get(index)
        )
        chosen: list[_Choice] = [
            (token, candidates.add(row, drawn, token), n_kept)
            for row, (token, drawn, n_kept) in zip(logits.unbind(), taking, strict=True)
        ]
        yield _append(rows, ended, starts, chosen, index, end_ids)
        for number, row in enumerate(rows):
            ended[number] = ended[number] or is_stopped(row[n_prompt[number] :])


def forced_steps(
    logits: Tensor, tokens: Sequence[int], n_prompt: int, text_of: TextOf = no_text
) -> list[GenerationStep]:
    """Steps of tokens that were chosen elsewhere (by a beam search, say) after n_prompt others.

    logits: (T, V); row t predicts tokens[t].
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


def penalised(logits: Tensor, rows: Sequence[Sequence[int]], penalty: float) -> Tensor:
    """Logits (B, V) where those of each row's own tokens are divided by a penalty, or multiplied
    where they are negative: above 1, repetition becomes less likely. Source: Keskar et al. 2019.
    """
    present = torch.zeros(logits.shape, dtype=torch.bool, device="cpu")
    for number, row in enumerate(rows):
        present[number, list(row)] = True
    less = torch.where(logits < 0, logits * penalty, logits / penalty)
    return torch.where(on_device(present, logits.device), less, logits)


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Divide logits by a temperature above 0: below 1 sharpens, above 1 flattens."""
    return logits / temperature


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """-inf for all but the k highest of each row (B, V); ties with the k-th stay too."""
    kth = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < kth, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """-inf outside the nucleus: the smallest set of likeliest tokens whose probabilities reach p.

    logits: (B, V). At least one token stays. Source: Holtzman et al. 2020.
    """
    if p >= 1:
        return logits  # rounding of the sum must not cut the tail
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    probabilities = ordered.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # mass of the likelier tokens
    outside = before >= p
    outside[..., 0] = False
    return logits.masked_fill(outside.scatter(-1, order, outside), -math.inf)


def keep_min_p(logits: Tensor, p: float) -> Tensor:
    """-inf for tokens less likely than p times the likeliest (B, V). Source: Nguyen et al. 2024."""
    probabilities = logits.softmax(dim=-1)
    floor = p * probabilities.amax(dim=-1, keepdim=True)
    return logits.masked_fill(probabilities < floor, -math.inf)


def apply_sampling(logits: Tensor, sampling: Sampling) -> Tensor:
    """(B, V) -> (B, V), divided by the temperature, -inf where a filter cut."""
    logits = apply_temperature(logits, sampling.temperature)
    if sampling.top_k is not None:
        logits = keep_top_k(logits, sampling.top_k)
    if sampling.top_p is not None:
        logits = keep_top_p(logits, sampling.top_p)
    if sampling.min_p is not None:
        logits = keep_min_p(logits, sampling.min_p)
    return logits


def draw(probabilities: Tensor, generators: list[torch.Generator]) -> Tensor:
    """Draw one token per row by inverting the cumulative distribution.

    probabilities: (B, V), rows sum to 1; one CPU generator per row, so that a row draws the same
    token in any batch. Returns (B,) int64; never a token of probability 0.
    """
    uniform = torch.stack(
        [torch.rand((), generator=g, dtype=torch.float64, device="cpu") for g in generators]
    )
    cumulative = probabilities.cpu().double().cumsum(dim=-1)
    total = cumulative[:, -1:].contiguous()
    chosen = torch.searchsorted(cumulative, uniform[:, None] * total, right=True)
    last_possible = torch.searchsorted(cumulative, total)  # zeros at the row's end add nothing
    return torch.minimum(chosen, last_possible)[:, 0].to(probabilities.device)


def _append(
    rows: list[list[int]],
    ended: list[bool],
    starts: list[int],
    chosen: list[_Choice],
    index: int,
    end_ids: Collection[int],
) -> list[GenerationStep | None]:
    """Append the chosen tokens to their rows; each row's step, None where it had ended."""
    steps: list[GenerationStep | None] = []
    for number, (token, candidates, n_kept) in enumerate(chosen):
        row = rows[number]
        window = (starts[number], len(row))
        row.append(row[-1] if ended[number] else token)  # repeat the end
        step = GenerationStep(
            index=index, token=token, window=window, candidates=candidates, n_kept=n_kept
        )
        steps.append(None if ended[number] else step)
        ended[number] = ended[number] or token in end_ids
    return steps


def _take(
    logits: Tensor,
    sampling: Sampling | None,
    generators: list[torch.Generator],
    padding_id: int | None,
    forced: int | None = None,
) -> list[tuple[int, Tensor | None, int]]:
    """Choose a token for each row of (B, V) logits; forced: take this token in any case.

    Returns for each row the token, the probabilities that it was drawn from ((V,) after the
    filters; greedy: None) and how many tokens the filters left (greedy: 1). A forced step draws
    too, so that later steps get the same random numbers as without forcing.
    """
    if sampling is None:
        tokens = logits.argmax(dim=-1).tolist()
        if padding_id in tokens:  # later tokens could not attend to it
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
    """Logits with -inf for padding."""
    if padding_id is None:
        return logits
    padding = on_device(torch.tensor(padding_id, device="cpu"), logits.device)
    return logits.index_fill(-1, padding, -math.inf)
