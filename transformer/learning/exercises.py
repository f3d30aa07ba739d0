"""Exercises that a small network learns in about a minute: questions and answers, the held-out
ones, and accuracy, attention and answers of a network of any family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

import torch
from torch import Tensor

from transformer.checkpoint import HeldOutSample
from transformer.checks import InvalidRequest, shortened
from transformer.inference.logit_sources import pad
from transformer.inference.model import Model
from transformer.messages import mark, say
from transformer.model.hooks import Hook
from transformer.model.network import IGNORED, Transformer
from transformer.model.sites import Site
from transformer.model.trace import Trace
from transformer.tokenizer import Tokenizer
from transformer.training.data import Example
from transformer.training.updates import predictions

Row = tuple[str, str]  # a question and its answer
HELD_OUT = 100  # questions that right answers are counted of
N_SCORED = 50  # of them, for the heads' scores
N_MEASURED = 40  # of them, for a loss
ABOUT = mark(
    "Held-out questions with their answers; the letters of a question are drawn at random, so that "
    "nobody could foresee them."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Exercise:
    """Questions with one right answer each, spelled in single characters.

    letters: the alphabet of questions and answers. sign: separates question and answer where one
    network reads both. longest: characters of a question and its answer together. example: a
    question. reads: the name of a head's score for reading the next letter of the answer; "" if
    answers contain other letters than their questions. ends: whether an end token follows the
    answer.
    """

    name: str
    title: str
    words: str
    letters: str
    sign: str
    longest: int
    example: str
    draw: Callable[[Random], str]
    solve: Callable[[str], str]
    reads: str = mark("weight on the right letter")
    ends: bool = True

    def tokenizer(self) -> Tokenizer:
        """A tokenizer with one token per character."""
        return _tokenizer(self.letters + self.sign)

    def rows(self, rng: Random, count: int, *, held_out: bool) -> list[Row]:
        """Random questions with their answers, either all held out or none."""
        rows: list[Row] = []
        while len(rows) < count:
            question = self.draw(rng)
            if is_held_out(question) == held_out:
                rows.append((question, self.solve(question)))
        return rows


@cache
def _tokenizer(characters: str) -> Tokenizer:
    return Tokenizer.of_characters([characters])


def is_held_out(question: str) -> bool:
    """Whether no training sees a question: one in seven of those with three characters or more."""
    weighed = sum(place * ord(letter) for place, letter in enumerate(question, 1))
    return len(question) >= 3 and weighed % 7 == 0


# ---- letters, to be put in some order ----

LETTERS = "abcdefgh"
SHORTEST, LONGEST = 2, 6


def _drawn(rng: Random) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(SHORTEST, LONGEST)))


def _of_letters(
    name: str, title: str, words: str, example: str, solve: Callable[[str], str]
) -> Exercise:
    return Exercise(
        name=name, title=title, words=words, letters=LETTERS, sign="=", longest=2 * LONGEST,
        example=example, draw=_drawn, solve=solve,
    )  # fmt: skip


COPYING = _of_letters(
    "copy", mark("Copy"), mark("Write the letters again."), "bdface", str
)  # fmt: skip
REVERSING = _of_letters(
    "reverse", mark("Reverse"), mark("Write the letters from the last to the first."),
    "bdface", lambda question: question[::-1],
)  # fmt: skip
SORTING = _of_letters(
    "sort", mark("Sort"), mark("Write the letters in the order of the alphabet."),
    "hcafbd", lambda question: "".join(sorted(question)),
)  # fmt: skip


# ---- the sum of two numbers, each written with two digits, the sum with three ----


def _total(question: str) -> str:
    left, right = question.split("+")
    return f"{int(left) + int(right):03}"


ADDITION = Exercise(
    name="addition", title=mark("Add"), words=mark("Add two numbers below 100."),
    letters="0123456789+", sign="=", longest=8, example="47+38",
    draw=lambda rng: f"{rng.randrange(100):02}+{rng.randrange(100):02}", solve=_total, reads="",
)  # fmt: skip


# ---- different letters, then one of them again: continue with what followed it before ----
#
# The distance changes from row to row, so counting positions does not help: a head must find the
# letter's earlier occurrence and read what followed (Olsson et al. 2022, "In-context Learning and
# Induction Heads").

MANY_LETTERS = "abcdefghijklmnopqrst"
FEWEST, MOST = 4, 10


def _begun_again(rng: Random) -> str:
    """Four to ten different letters, then one of them again, but not the last."""
    pattern = rng.sample(MANY_LETTERS, rng.randint(FEWEST, MOST))
    return "".join([*pattern, rng.choice(pattern[:-1])])


def _followed(question: str) -> str:
    """The letters that followed the first occurrence of the last letter."""
    again = question[-1]
    return question[question.index(again) + 1 : -1] or again


INDUCTION = Exercise(
    name="induction", title=mark("Repeat what followed"),
    words=mark("A random sequence of letters starts again: continue it as before."),
    letters=MANY_LETTERS, sign="", longest=2 * MOST, example="kfbdhqk",
    draw=_begun_again, solve=_followed, reads=mark("induction score"), ends=False,
)  # fmt: skip

EXERCISES = {
    exercise.name: exercise for exercise in (COPYING, REVERSING, SORTING, ADDITION, INDUCTION)
}


@cache
def held_out(exercise: Exercise, count: int = HELD_OUT) -> Sequence[Row]:
    """The same held-out questions at each call."""
    return tuple(exercise.rows(Random(-1), count, held_out=True))


def prompt_of(exercise: Exercise, family: str, question: str) -> str:
    """A question as the prompt of a network of this family."""
    return question + exercise.sign if family == "decoder" else question


def sample_of(exercise: Exercise, family: str) -> HeldOutSample | None:
    """Texts to measure a loss on; None for an encoder, which predicts no next token."""
    rows = held_out(exercise, N_MEASURED)
    if family == "encoder":
        return None
    texts: list[tuple[str, ...]] = list(rows)
    if family == "decoder":
        texts = [(prompt_of(exercise, family, question) + answer,) for question, answer in rows]
    return HeldOutSample(about=say(ABOUT), texts=tuple(texts))


def examples(exercise: Exercise, family: str, rows: Sequence[Row]) -> list[Example]:
    """Training examples for a family of networks; each answer token follows the right ones.

    An encoder-decoder reads the question and predicts the answer; a decoder reads "question, sign,
    answer" as one text, with a loss on the answer only; an encoder predicts the answer at the
    positions of the question. Answers end with the end-of-text token if `exercise.ends`.
    """
    tokenizer = exercise.tokenizer()
    end, sequences = tokenizer.end_id, []
    for question, answer in rows:
        prompt, said = tokenizer.encode(question), [*tokenizer.encode(answer)]
        said += [end] * exercise.ends
        if family == "encoder-decoder":
            sequences.append(Example([tokenizer.start_id, *said], source=[*prompt, end]))
        elif family == "decoder":
            prompt += tokenizer.encode(exercise.sign)
            hidden = [IGNORED] * len(prompt)
            sequences.append(Example([end, *prompt, *said[:-1]], hidden + said))
        else:
            hidden = [IGNORED] * (1 + len(prompt) - len(said))
            sequences.append(Example([end, *prompt], said + hidden))
    return sequences


@torch.inference_mode()
def right_letters(
    network: Transformer, exercise: Exercise, hooks: Sequence[Hook] = ()
) -> list[list[bool]]:
    """For the answer to each of the HELD_OUT questions: whether each letter, and the end token, is
    the likeliest one after the right tokens before it. hooks: interventions in the network."""
    questions = examples(exercise, network.config.family, held_out(exercise))
    padding_id = exercise.tokenizer().padding_id
    logits, wanted, where = predictions(network, questions, padding_id, hooks)
    right = logits.argmax(dim=-1) == wanted
    return [row.tolist() for row in right.split(where.sum(dim=1).tolist())]


@torch.inference_mode()
def letter_probabilities(network: Transformer, exercise: Exercise) -> tuple[float, float]:
    """The mean probability, over the letters of the answers to the HELD_OUT questions after the
    right letters before them, of all letters that the question contains, and of the right one."""
    rows, tokenizer = held_out(exercise), exercise.tokenizer()
    questions = examples(exercise, network.config.family, rows)
    logits, wanted, where = predictions(network, questions, tokenizer.padding_id)
    probabilities = logits.softmax(dim=-1)
    contained = torch.zeros_like(probabilities[: len(rows)])
    for number, (question, _) in enumerate(rows):
        contained[number, tokenizer.encode(question)] = 1
    of_row = where.nonzero()[:, 0]
    letters = wanted != tokenizer.end_id
    on_text = (probabilities * contained[of_row]).sum(dim=-1)[letters].mean()
    right = probabilities.gather(1, wanted[:, None])[letters].mean()
    return float(on_text), float(right)


def n_right(network: Transformer, exercise: Exercise, hooks: Sequence[Hook] = ()) -> int:
    """How many of the HELD_OUT questions the network would answer correctly by greedy decoding."""
    return sum(map(all, right_letters(network, exercise, hooks)))


def best_head(network: Transformer, exercise: Exercise) -> tuple[float, Site, int]:
    """The head with the largest of the `head_scores`: its score, its site and its number."""
    scores = head_scores(network, exercise)
    site = max(scores, key=lambda each: float(scores[each].max()))
    head = int(scores[site].argmax())
    return float(scores[site][head]), site, head


@torch.inference_mode()
def head_scores(network: Transformer, exercise: Exercise) -> dict[Site, Tensor]:
    """How much each head attends to the next letter of the answer, where the question contains it:
    its mean weight over the answers' letters, (H,), 0 to 1, by site.

    In the induction exercise this is the induction score: the weight on what followed the last time
    (Olsson et al. 2022). For an encoder-decoder, the weights of cross-attention.
    """
    trace, tokenizer, rows = Trace(), exercise.tokenizer(), held_out(exercise, N_SCORED)
    prompts = examples(exercise, network.config.family, rows)
    _, wanted, where = predictions(network, prompts, tokenizer.padding_id, (trace,))
    letters = wanted != tokenizer.end_id
    row, place = where.nonzero()[letters].unbind(dim=1)
    crosses = network.config.family == "encoder-decoder"
    n_read = [len(question) + (not crosses) for question, _ in rows]  # after the end-of-text token
    read = [
        (example.source or example.read)[:n] for example, n in zip(prompts, n_read, strict=True)
    ]
    width = max(len(example.source or example.read) for example in prompts)
    questions = pad([*read, [0] * width], tokenizer.padding_id)[:-1]
    there = (questions[row] == wanted[letters][:, None])[:, None]  # (N, 1, Tk)
    return {
        site: (record.pattern[row, :, place] * there).sum(dim=-1).mean(dim=0)
        for site, record in trace.records.items()
        if site.kind == ("cross" if crosses else "self")
    }


def check_question(exercise: Exercise, question: object) -> str:
    """Return a visitor's question. Raises ValueError if a network cannot read it."""
    most = exercise.longest // 2 + 1  # one character more than the longest that was learned
    good = isinstance(question, str) and set(question) <= set(exercise.letters)
    if not isinstance(question, str) or not good or not 1 <= len(question) <= most:
        raise InvalidRequest(
            "invalid_question",
            "the question must be 1 to {most} of the characters {letters}; got {got}",
            most=most,
            letters=exercise.letters,
            got=shortened(question),
        )
    return question


@torch.inference_mode()
def answer_of(model: Model, exercise: Exercise, question: str) -> str:
    """The network's greedy answer."""
    tokenizer = model.tokenizer
    most = exercise.longest // 2 + 2 if exercise.ends else len(exercise.solve(question))
    if model.config.family == "encoder":
        ids = torch.tensor([tokenizer.encode(question, special=True)])
        said = model.network(ids)[0].argmax(dim=-1).tolist()
        length = said.index(tokenizer.end_id) if tokenizer.end_id in said else len(said)
        return tokenizer.decode(said[: min(length, most)])
    if model.config.family == "decoder":
        text = question + exercise.sign
        return model.generate(text, max_new_tokens=most).text.removeprefix(text)
    return model.generate(question, max_new_tokens=most).text
