"""What a small network can learn in about a minute: questions, answers, what is held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from transformer.messages import mark
from transformer.tokenizer import Tokenizer

Row = tuple[str, str]  # a question and its answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Exercise:
    """Questions with one right answer each, written in characters.

    letters: those that occur. sign: the separator of question and answer where one network
    reads both. longest: characters of a question and its answer together. n_steps: updates
    after which every preset can do it. example: a question. reads: what it is called that a head
    reads the letter which is to be said next; "" where the answer's letters do not stand in the
    question. ends: whether an answer has an end of its own; else it is as long as the right one.
    """

    name: str
    title: str
    words: str
    letters: str
    sign: str
    longest: int
    n_steps: int
    example: str
    draw: Callable[[Random], str]
    solve: Callable[[str], str]
    reads: str = mark("weight on the right letter")
    ends: bool = True

    def tokenizer(self) -> Tokenizer:
        """One token a character."""
        return _tokenizer(self.letters + self.sign)

    def rows(self, rng: Random, count: int, *, held_out: bool) -> list[Row]:
        """Questions with their answers, all of them held out or none."""
        found: list[Row] = []
        while len(found) < count:
            question = self.draw(rng)
            if is_held_out(question) == held_out:
                found.append((question, self.solve(question)))
        return found


@cache
def _tokenizer(characters: str) -> Tokenizer:
    return Tokenizer.of_characters([characters])


def is_held_out(question: str) -> bool:
    """One in seven of the questions of three characters and more: no training sees them."""
    weighed = sum(place * ord(letter) for place, letter in enumerate(question, 1))
    return len(question) >= 3 and weighed % 7 == 0


# ---- letters, to be written in some order ----

LETTERS = "abcdefgh"
SHORTEST, LONGEST = 2, 6


def _drawn(rng: Random) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(SHORTEST, LONGEST)))


def _of_letters(
    name: str, title: str, words: str, n_steps: int, example: str, solve: Callable[[str], str]
) -> Exercise:
    return Exercise(
        name=name, title=title, words=words, letters=LETTERS, sign="=", longest=2 * LONGEST,
        n_steps=n_steps, example=example, draw=_drawn, solve=solve,
    )  # fmt: skip


COPYING = _of_letters(
    "copy", mark("Copy"), mark("Write the letters again."), 300, "bdface", str
)  # fmt: skip
REVERSING = _of_letters(
    "reverse", mark("Reverse"), mark("Write the letters from the last to the first."), 400,
    "bdface", lambda question: question[::-1],
)  # fmt: skip
SORTING = _of_letters(
    "sort", mark("Sort"), mark("Write the letters in the order of the alphabet."), 400,
    "hcafbd", lambda question: "".join(sorted(question)),
)  # fmt: skip


# ---- the sum of two numbers, each written with two digits, the sum with three ----


def _two_numbers(rng: Random) -> str:
    return f"{rng.randrange(100):02}+{rng.randrange(100):02}"


def _total(question: str) -> str:
    left, right = question.split("+")
    return f"{int(left) + int(right):03}"


ADDITION = Exercise(
    name="addition", title=mark("Add"), words=mark("Add two numbers below 100."),
    letters="0123456789+", sign="=", longest=8, n_steps=800, example="47+38",
    draw=_two_numbers, solve=_total, reads="",
)  # fmt: skip


# ---- different letters, and one of them again: what followed it the last time, to the end ----
#
# How far back it stood changes from row to row, so that counting does not help: a head must find
# where the letter stood before and read what followed (Olsson et al. 2022, "In-context Learning and
# Induction Heads").

MANY_LETTERS = "abcdefghijklmnopqrst"
FEWEST, MOST = 4, 10


def _begun_again(rng: Random) -> str:
    """Four to ten different letters, and one of them again, but not the last."""
    pattern = rng.sample(MANY_LETTERS, rng.randint(FEWEST, MOST))
    return "".join([*pattern, rng.choice(pattern[:-1])])


def _followed(question: str) -> str:
    """What stood after the last letter when it stood there first."""
    again = question[-1]
    return question[question.index(again) + 1 : -1] or again


INDUCTION = Exercise(
    name="induction", title=mark("Repeat what followed"),
    words=mark("Random letters begin again: go on as it went the last time."),
    letters=MANY_LETTERS, sign="", longest=2 * MOST, n_steps=400, example="kfbdhqk",
    draw=_begun_again, solve=_followed, reads=mark("induction score"), ends=False,
)  # fmt: skip

EXERCISES = {one.name: one for one in (COPYING, REVERSING, SORTING, ADDITION, INDUCTION)}
