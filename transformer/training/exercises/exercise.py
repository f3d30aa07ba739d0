"""What a small network can learn in front of its visitor: questions, answers, what is held out."""

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

    letters: those that occur. sign: what stands between question and answer where one network
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
