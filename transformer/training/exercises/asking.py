"""How each family of networks is asked an exercise, and what it answers and attends to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer.inference.logit_sources import pad
from transformer.inference.model import Model
from transformer.messages import invalid
from transformer.model.hooks import Hook
from transformer.model.sites import Site
from transformer.model.trace import Trace
from transformer.model.transformer import DecoderOnly, EncoderDecoder
from transformer.training.exercises import Exercise, Row


class Predictions(NamedTuple):
    """A network's predictions for the answers' tokens.

    logits: (N, V). wanted: (N,), the tokens that they should predict. row, place: (N,), whose each
    of them is, and the query that says it. question: (B, Tk), what is read of the questions, the
    padding elsewhere.
    """

    logits: Tensor
    wanted: Tensor
    row: Tensor
    place: Tensor
    question: Tensor


def predictions(
    network: nn.Module, exercise: Exercise, rows: Sequence[Row], hooks: Sequence[Hook] = ()
) -> Predictions:
    """What a network says of the answers' tokens, each after the right ones before it.

    A translator reads the question and writes the answer; a writer reads "question, sign, answer"
    as one text and is asked for the answer alone; a reader says the answer at the places of what it
    reads. Each answer ends with the end-of-text token, if the exercise's answers end.
    """
    tokenizer, sign = exercise.tokenizer(), exercise.sign
    device = next(network.parameters()).device
    end, padding = tokenizer.end_id, tokenizer.padding_id
    questions = [tokenizer.encode(question) for question, _ in rows]
    ending = [end] * exercise.ends
    answers = [[*tokenizer.encode(answer), *ending] for _, answer in rows]
    if isinstance(network, DecoderOnly):
        asked = [[end, *question, *tokenizer.encode(sign)] for question in questions]
        texts = [[*start, *answer] for start, answer in zip(asked, answers, strict=True)]
        ids = pad(texts, padding).to(device)
        first = torch.tensor([len(start) - 1 for start in asked], device=device)[:, None]
        places = torch.arange(ids.shape[1] - 1, device=device)
        real = (ids[:, 1:] != padding) & (places >= first)
        logits = network(ids[:, :-1], where=real, hooks=hooks)
        asks = ids[:, :-1].masked_fill(places > first - len(sign), padding)
        return Predictions(logits, ids[:, 1:][real], *_places(real), asks)
    if isinstance(network, EncoderDecoder):
        source = pad([[*question, end] for question in questions], padding).to(device)
        target = pad([[tokenizer.start_id, *answer] for answer in answers], padding).to(device)
        real = target[:, 1:] != padding
        logits = network(source, target[:, :-1], where=real, hooks=hooks)
        return Predictions(logits, target[:, 1:][real], *_places(real), source)
    source = pad([[end, *question] for question in questions], padding).to(device)
    wanted = pad([*answers, [padding] * source.shape[1]], padding)[:-1].to(device)
    real = wanted != padding
    logits = network(source, hooks=hooks)[real]
    return Predictions(logits, wanted[real], *_places(real), source)


def _places(real: Tensor) -> tuple[Tensor, Tensor]:
    """(N,) rows and (N,) columns of the True entries."""
    row, place = real.nonzero().unbind(dim=1)
    return row, place


@torch.inference_mode()
def share_right(
    network: nn.Module, exercise: Exercise, rows: Sequence[Row], hooks: Sequence[Hook] = ()
) -> float:
    """The share of rows whose whole answer the network would write, from 0 to 1.

    Each token is the likeliest after the right ones before it: greedy decoding writes all of an
    answer just where every one of them is. hooks: what is altered in the network.
    """
    found = predictions(network, exercise, rows, hooks)
    wrong = found.row[found.logits.argmax(dim=-1) != found.wanted].unique()
    return 1 - len(wrong) / len(rows)


@torch.inference_mode()
def weight_on_wanted(
    network: nn.Module, exercise: Exercise, rows: Sequence[Row]
) -> dict[Site, Tensor]:
    """How much each head attends to the next answer letter, where the question holds it.

    By site (H,): the mean weight, from 0 to 1, over the answers' letters. In a text of different
    letters that begins again this is the induction score: the weight on what followed the last time
    (Olsson et al. 2022). A translator is asked for its cross-attention.
    """
    trace = Trace()
    found = predictions(network, exercise, rows, (trace,))
    letters = found.wanted != exercise.tokenizer().end_id
    row, place, wanted = (one[letters] for one in (found.row, found.place, found.wanted))
    there = (found.question[row] == wanted[:, None])[:, None]  # (N, 1, Tk)
    kind = "cross" if isinstance(network, EncoderDecoder) else "self"
    return {
        site: (record.pattern[row, :, place] * there).sum(dim=-1).mean(dim=0)
        for site, record in trace.records.items()
        if site.kind == kind
    }


def longest_question(exercise: Exercise) -> int:
    """Characters that may be typed: one more than the longest that was learned."""
    return exercise.longest // 2 + 1


def check_question(exercise: Exercise, question: object) -> str:
    """A question of a visitor's. Raises ValueError for one that cannot be read."""
    most = longest_question(exercise)
    good = isinstance(question, str) and set(question) <= set(exercise.letters)
    if not isinstance(question, str) or not good or not 1 <= len(question) <= most:
        raise invalid(
            "the question must be 1 to {most} of the characters {letters}; got {got}",
            most=most,
            letters=exercise.letters,
            got=repr(question)[:60],
        )
    return question


@torch.inference_mode()
def answer_of(model: Model, exercise: Exercise, question: str) -> str:
    """What a network answers to a question, greedily. Raises ValueError, see `check_question`."""
    question = check_question(exercise, question)
    tokenizer = model.tokenizer
    most = exercise.longest // 2 + 2 if exercise.ends else len(exercise.solve(question))
    if model.config.family == "encoder":
        ids = torch.tensor([tokenizer.prompt(question)], device=model.device)
        said = model.network(ids)[0].argmax(dim=-1).tolist()
        length = said.index(tokenizer.end_id) if tokenizer.end_id in said else len(said)
        return tokenizer.decode(said[: min(length, most)])
    if model.config.family == "decoder":
        text = question + exercise.sign
        return model.generate(text, max_new_tokens=most).text.removeprefix(text)
    return model.generate(question, max_new_tokens=most).text
