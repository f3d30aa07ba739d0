"""How each family of networks is asked an exercise, and what it answers and attends to."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer.inference.logit_sources import pad
from transformer.inference.model import Model
from transformer.messages import invalid
from transformer.model.hooks import Hook
from transformer.model.network import IGNORED, Transformer
from transformer.model.sites import Site
from transformer.model.trace import Trace
from transformer.training.data import Example
from transformer.training.exercises import Exercise, Row
from transformer.training.updates import predictions


def examples(exercise: Exercise, family: str, rows: Sequence[Row]) -> list[Example]:
    """What a network is asked: the answers' tokens, each after the right ones before it.

    A translator reads the question and writes the answer; a writer reads "question, sign, answer"
    as one text and is asked for the answer alone; a reader says the answer at the places of what it
    reads. Each answer ends with the end-of-text token, if the exercise's answers end.
    """
    tokenizer = exercise.tokenizer()
    end, found = tokenizer.end_id, []
    for question, answer in rows:
        asked, said = tokenizer.encode(question), [*tokenizer.encode(answer)]
        said += [end] * exercise.ends
        if family == "encoder-decoder":
            found.append(Example([tokenizer.start_id, *said], source=[*asked, end]))
        elif family == "decoder":
            asked += tokenizer.encode(exercise.sign)
            hidden = [IGNORED] * len(asked)
            found.append(Example([end, *asked, *said[:-1]], hidden + said))
        else:
            hidden = [IGNORED] * (1 + len(asked) - len(said))
            found.append(Example([end, *asked], said + hidden))
    return found


@torch.inference_mode()
def share_right(
    network: Transformer, exercise: Exercise, rows: Sequence[Row], hooks: Sequence[Hook] = ()
) -> float:
    """The share of rows whose whole answer the network would write, from 0 to 1.

    Each token is the likeliest after the right ones before it: greedy decoding writes all of an
    answer just where every one of them is. hooks: what is altered in the network.
    """
    asked = examples(exercise, network.config.family, rows)
    padding_id = exercise.tokenizer().padding_id
    logits, wanted, where = predictions(network, asked, padding_id, hooks)
    wrong = where.nonzero()[:, 0][logits.argmax(dim=-1) != wanted].unique()
    return 1 - len(wrong) / len(rows)


@torch.inference_mode()
def weight_on_wanted(
    network: Transformer, exercise: Exercise, rows: Sequence[Row]
) -> dict[Site, Tensor]:
    """How much each head attends to the next answer letter, where the question holds it.

    By site (H,): the mean weight, from 0 to 1, over the answers' letters. In a text of different
    letters that begins again this is the induction score: the weight on what followed the last time
    (Olsson et al. 2022). A translator is asked for its cross-attention.
    """
    trace, tokenizer, family = Trace(), exercise.tokenizer(), network.config.family
    asked = examples(exercise, family, rows)
    _, wanted, where = predictions(network, asked, tokenizer.padding_id, (trace,))
    letters = wanted != tokenizer.end_id
    row, place = where.nonzero()[letters].unbind(dim=1)
    crosses = family == "encoder-decoder"
    n_read = [len(question) + (not crosses) for question, _ in rows]  # after the end-of-text token
    read = [(one.source or one.read)[:n] for one, n in zip(asked, n_read, strict=True)]
    width = max(len(one.source or one.read) for one in asked)
    questions = pad([*read, [0] * width], tokenizer.padding_id)[:-1].to(wanted.device)
    there = (questions[row] == wanted[letters][:, None])[:, None]  # (N, 1, Tk)
    return {
        site: (record.pattern[row, :, place] * there).sum(dim=-1).mean(dim=0)
        for site, record in trace.records.items()
        if site.kind == ("cross" if crosses else "self")
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
