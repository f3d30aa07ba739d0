"""Values computed from a run: once, within bounds, and gone with the run."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import numpy as np
import pytest
import torch

from transformer import with_lens
from transformer.runs import memo
from transformer.runs.memo import forget_memoized, memoize_on_run, memoized_bytes


def test_values_are_computed_once_and_the_latest_are_kept(tiny_model, monkeypatch):
    monkeypatch.setattr(memo, "MAX_VALUES", 3)
    run, made = tiny_model.trace("a"), []

    def asked(key: str) -> None:  # None is an answer too
        return memoize_on_run(run, key, lambda: made.append(key))

    assert [asked(key) for key in "abacadab"] == [None] * 8
    assert "".join(made) == "abcdb"  # b went when d came
    forget_memoized()
    asked("a")
    assert "".join(made) == "abcdba"


def test_of_concurrent_threads_only_one_computes_a_value(tiny_model, monkeypatch):
    run, made, begun, ready = tiny_model.trace("a"), [], threading.Event(), threading.Event()

    def make() -> int:
        made.append(threading.get_ident())
        begun.set()
        ready.wait(60)
        if len(made) == 1:
            raise ValueError("the first one has left")
        return 7

    with ThreadPoolExecutor(5) as threads:
        first = threads.submit(memoize_on_run, run, "number", make)
        assert begun.wait(60)
        others = [threads.submit(memoize_on_run, run, "number", make) for _ in range(3)]
        assert memoize_on_run(run, "other", lambda: 1) == 1  # does not wait
        ready.set()
        with pytest.raises(ValueError, match="has left"):
            first.result()
        assert [one.result() for one in others] == [7] * 3
    assert len(made) == 2
    monkeypatch.setattr(memo, "WAIT_S", 0.01)
    begun.clear()
    ready.clear()
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(memoize_on_run, run, "slow", make)
        assert begun.wait(60)
        assert memoize_on_run(run, "slow", lambda: 8) == 8  # it waits no longer
        ready.set()
        assert slow.result() == 7


@pytest.mark.parametrize(
    "large",
    [torch.zeros(250_000), np.zeros(125_000), [np.zeros((2, 62_500))[:, :1]], [0.5] * 25_500],
)
def test_values_count_with_what_they_are_a_view_of_and_go_with_their_run(
    tiny_model, large, monkeypatch
):
    monkeypatch.setattr(memo, "MAX_BYTES", 2_200_000)
    run = tiny_model.trace("a")
    assert memoize_on_run(run, "large", lambda: large) is large
    assert 1_000_000 <= memoized_bytes(run) < 1_100_000
    made = [memoize_on_run(run, key, lambda: torch.zeros(250_000)) for key in "ab"]
    assert 2_000_000 <= memoized_bytes(run) <= 2_200_000
    assert memoize_on_run(run, "large", lambda: "again") == "again"  # it had made room
    there = ref(run)
    del run, made
    gc.collect()
    assert there() is None


def test_a_run_computed_from_a_run_does_not_count_its_trace_again(tiny_model):
    run = tiny_model.generate("The fox", max_new_tokens=9)
    lens = memoize_on_run(run, "lens", lambda: with_lens(tiny_model, run))
    assert 0 < memoized_bytes(run) < 50_000
    assert memoized_bytes(lens) == 0
