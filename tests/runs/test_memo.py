"""What is worked out of a run is kept with it, counted, and goes with it."""

import gc

import numpy as np
import pytest
import torch

from transformer import Model
from transformer.runs import memory_budget
from transformer.runs.memory_budget import (
    REMEMBERED,
    Limits,
    MemoryBudget,
    count_in,
    memoize_on_run,
)

KINDS = {REMEMBERED: Limits(most_own=3)}


def test_numbers_of_a_run_are_worked_out_once_and_only_the_latest_are_kept(
    tiny_model: Model,
) -> None:
    run, made = tiny_model.trace("a"), []
    count_in(run, MemoryBudget(10**6, KINDS))

    def asked(key: str) -> str:
        return memoize_on_run(run, key, lambda: made.append(key) or key)

    assert [asked(key) for key in "abacadab"] == list("abacadab")
    assert "".join(made) == "abcdb"  # b went when d came


def test_an_answer_that_is_none_is_worked_out_once_too(tiny_model: Model) -> None:
    run, made = tiny_model.trace("a"), []
    assert memoize_on_run(run, "none", lambda: made.append(1)) is None
    assert memoize_on_run(run, "none", lambda: made.append(2)) is None
    assert made == [1]


@pytest.mark.parametrize("large", [torch.zeros(250_000), [np.zeros((2, 62_500))[:, :1]]])
def test_what_is_remembered_counts_goes_where_room_is_short_and_goes_with_its_run(
    tiny_model: Model, large: object
) -> None:
    """A view counts with all that it is a view of."""
    budget = MemoryBudget(3_200_000, {REMEMBERED: Limits()})
    runs = [tiny_model.trace("a") for _ in range(4)]
    for run in runs:
        count_in(run, budget)
        assert memoize_on_run(run, "large", lambda: large) is large
    held = budget.held()[REMEMBERED]
    assert held["count"] == 3
    assert 3_000_000 < held["bytes"] <= 3_200_000
    del run, runs[1:]
    gc.collect()
    assert budget.held()[REMEMBERED] == {"count": 0, "bytes": 0}  # the first one's made room
    assert memoize_on_run(runs[0], "large", lambda: "anew") == "anew"


def test_a_run_made_of_a_run_counts_once_and_in_the_same_budget(tiny_model: Model) -> None:
    run = tiny_model.generate("The fox", max_new_tokens=9)
    budget = MemoryBudget(10**8, {REMEMBERED: Limits()})
    count_in(run, budget)
    lens = memoize_on_run(run, "lens", lambda: transformed(tiny_model, run))
    assert budget.held()[REMEMBERED]["bytes"] < 50_000  # neither the trace nor the steps again
    memoize_on_run(lens, "more", lambda: torch.zeros(250_000))
    assert 1_000_000 < budget.held()[REMEMBERED]["bytes"] < 1_100_000
    assert not memory_budget.OUTSIDE.of(REMEMBERED, memory_budget.count_in(lens, budget)[1])


def transformed(model, run):
    from transformer.analysis.logit_lens import with_lens

    return with_lens(model, run)
