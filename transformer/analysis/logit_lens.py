"""Predictions of every layer and the surprisal of every token of a recorded text.

Both apply the final norm and the head to recorded residual streams, which for a large vocabulary
costs as much as generating the text, so a run has them only after `with_lens`.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.analysis.text_before import check_made_by, check_run
from transformer.checks import InvalidRequest
from transformer.inference import deadline
from transformer.inference.loaded import LoadedModel
from transformer.interventions.descriptions import Break
from transformer.interventions.hooks import hooks_of
from transformer.model.transformer import EncoderDecoder, EncoderOnly
from transformer.runs.run import Lens, Run

N_BEST = 5  # tokens of each layer's prediction


def with_lens(model: LoadedModel, run: Run) -> Run:
    """The run with its `lens` and `surprisal`, computed by the model that made it.

    Raises ValueError for a run of another model, or if the request's deadline passes.
    """
    check_run(model, run)
    lens = logit_lens(model, run)
    labels = {token: model.tokenizer.label(token) for token in lens.ids.unique().tolist()}
    return dataclasses.replace(
        run,
        lens=lens,
        surprisal=surprisal(model, run),
        candidate_labels={**run.candidate_labels, **labels},
    )


@torch.no_grad()
def logit_lens(model: LoadedModel, run: Run) -> Lens:
    """The head's N_BEST likeliest tokens for every residual stream of the last stack.

    Errors as `with_lens`. Source: nostalgebraist 2020, "interpreting GPT: the logit lens".
    """
    check_run(model, run)
    best = []
    for stream in streams_of(model, run, model.network.last_stack.name):
        deadline.check()
        best.append(lens_logits(model, run, stream).softmax(dim=-1).topk(N_BEST))
    return Lens(
        ids=torch.stack([layer.indices for layer in best]).cpu(),
        probabilities=torch.stack([layer.values for layer in best]).cpu(),
    )


@torch.no_grad()
def surprisal(model: LoadedModel, run: Run) -> tuple[float | None, ...]:
    """-log2 of the probability of each traced token, as predicted at the position before it.

    None for the first, and for all where the network is an encoder, which predicts nothing. Errors
    as `with_lens`.
    """
    stack = model.network.last_stack.name
    last = streams_of(model, run, stack)[-1]
    length = last.shape[1]
    if isinstance(model.network, EncoderOnly):
        return (None,) * length
    deadline.check()
    logits = lens_logits(model, run, last[:, :-1])
    next_ids = run.ids[run.trace_start :][1:length]
    followed = torch.tensor(next_ids, dtype=torch.int64, device=logits.device)
    nats = torch.nn.functional.cross_entropy(logits, followed, reduction="none")
    return (None, *(nats / math.log(2)).tolist())


@dataclass(frozen=True, kw_only=True, slots=True)
class TextCost:
    """The cost of a text to a model. bits: for each traced token, see `surprisal`; tokens: their
    labels.

    n_bytes: UTF-8 bytes of the tokens that have bits. If a text is longer than the model reads,
    only its end has bits; if a decoder adds no token before a text, the first token has none; in a
    translation, what comes before every text has none.
    """

    tokens: tuple[str, ...]
    bits: tuple[float | None, ...]
    n_bytes: int

    @property
    def total_bits(self) -> float:
        """The sum of the bits."""
        return math.fsum(bit for bit in self.bits if bit is not None)

    @property
    def bits_per_byte(self) -> float:
        """Bits per byte, over the tokens that have bits."""
        return self.total_bits / self.n_bytes

    @property
    def perplexity(self) -> float:
        """2 to the power of the mean bits of the tokens that have bits."""
        return float(2 ** (self.total_bits / sum(bit is not None for bit in self.bits)))


def text_cost(model: LoadedModel, run: Run, text: str) -> TextCost:
    """The bits of a run's text: what a decoder read, or what a translator wrote.

    Raises ValueError for an encoder, and for a text of which nothing is predicted.
    """
    if isinstance(model.network, EncoderOnly):
        raise InvalidRequest(
            "encoder",
            "{name} is an encoder: it reads text but cannot generate any",
            name=model.name,
        )
    bits = surprisal(model, run)
    if isinstance(model.network, EncoderDecoder):  # no text is its prompt
        bits = (*[None] * run.n_prompt, *bits[run.n_prompt :])
    if all(bit is None for bit in bits):
        raise InvalidRequest(
            "too_short", "the text is too short: nothing comes before its only token"
        )
    start, stop = run.trace_start, run.trace_start + len(bits)
    before, behind = run.ids[: start + 1], run.ids[stop:]
    free = len(model.tokenizer.whole(before)) + len(model.tokenizer.to_bytes(behind))
    return TextCost(
        tokens=run.labels[start:stop], bits=bits, n_bytes=max(1, len(text.encode()) - free)
    )


def streams_of(model: LoadedModel, run: Run, stack: str) -> list[Tensor]:
    """L + 1 times (1, T, C). Raises ValueError for a run that this model cannot have made, or that
    was read from a file without them."""
    check_made_by(model, run)
    if stack not in run.trace.residuals:
        raise ValueError(
            "this run was read from a file without residual streams, which its layers "
            "need; needed: an NPZ, or the run itself"
        )
    return run.trace.residuals[stack]


def lens_logits(model: LoadedModel, run: Run, stream: Tensor) -> Tensor:
    """(T, V) float32 of a stream (1, T, C), with the run's breaks of the network's last norm."""
    breaks = [change for change in run.request.interventions if isinstance(change, Break)]
    x = stream.to(model.network.device, model.network.dtype)
    return model.network.lens(x, hooks_of(breaks, model.config))[0].float()
