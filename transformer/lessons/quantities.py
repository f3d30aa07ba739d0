"""What a lesson can measure: each a function of the visitor's own run or batch, by its name.

`token`, `query` and `key` count a stack's tokens from 0, as the page does; `site` is a place such
as "decoder.5.self". Every one gives a number, and raises ValueError for what the run does not have.
"""

from __future__ import annotations

import torch
from torch import Tensor

from transformer.checks import check_choice, check_whole
from transformer.learning.recorded import PLANS, recorded
from transformer.learning.words import sudden_fall
from transformer.lessons.attention_quantities import OF_A_BATCH  # adds those of attention
from transformer.lessons.quantity import QUANTITIES, Ground, called, of
from transformer.lessons.token_quantities import guess, guess_from_left  # adds those of tokens
from transformer.messages import invalid, mark

__all__ = ["OF_A_BATCH", "QUANTITIES", "Ground", "guess", "guess_from_left", "of"]


@called(mark("the position's number"))
def position(ground: Ground, position: int, dimension: int) -> float:
    """An entry of the matrix that is added to the tokens."""
    matrix = _positions(ground)
    n_positions, size = matrix.shape
    at = check_whole("position", position, 0, n_positions - 1)
    return float(matrix[at, check_whole("dimension", dimension, 0, size - 1)])


@called(mark("the similarity (cosine) of the two positions"))
def position_similarity(ground: Ground, position: int, other: int) -> float:
    """-1 to 1."""
    matrix = _positions(ground)
    last = len(matrix) - 1
    a, b = (matrix[check_whole("position", one, 0, last)] for one in (position, other))
    return float(torch.nn.functional.cosine_similarity(a, b, dim=0))


@called(mark("the number of tokens"))
def tokens(ground: Ground) -> float:
    """Of the whole text, given and generated."""
    return float(len(ground.run.labels))


@called(mark("the number of heads"))
def heads(ground: Ground) -> float:
    """In each layer."""
    return float(ground.run.config.n_heads)


@called(mark("the number of features of a head"))
def head_size(ground: Ground) -> float:
    """d, of whose root the scores are divided by."""
    record = next(iter(ground.run.trace))
    if record.queries is None:
        raise invalid("this run has no queries")
    return float(record.queries.shape[-1])


@called(mark("the step at which the loss has fallen"))
def loss_fell(ground: Ground, task: str) -> float:
    """The end of the most sudden fall of a recorded training."""
    check_choice("task", task, PLANS)
    found = sudden_fall(recorded(task).losses)
    return float(found[1]) if found else 0.0


def _positions(ground: Ground) -> Tensor:
    matrices = ground.run.position_matrices
    if not matrices:
        raise invalid("this network adds no positions")
    return list(matrices.values())[-1]
