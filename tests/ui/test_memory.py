"""An allocation that fails costs kept runs, and not the answer."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from kit import serving
from kit.client import called

from transformer.ui.errors import NO_MEMORY, Busy
from transformer.ui.limits import RUNS, memory_budget
from transformer.ui.memory import Memory
from transformer.ui.memory_budget import MemoryBudget

TOO_MANY = 2**50  # bytes
KINDS: dict[str, Callable[[], object]] = {
    "Python": lambda: bytearray(TOO_MANY),
    "NumPy": lambda: np.empty(TOO_MANY, np.uint8),
    "PyTorch": lambda: torch.empty(TOO_MANY, dtype=torch.uint8),
}


def holding_one() -> MemoryBudget:
    budget = memory_budget()
    budget.put(RUNS, "kept", "a run", 1000)
    return budget


@pytest.mark.parametrize("allocate", KINDS.values(), ids=KINDS)
def test_kept_runs_are_evicted_when_an_allocation_fails(
    allocate: Callable[[], object],
) -> None:
    budget = holding_one()
    memory = Memory(budget)

    def work() -> str:
        if budget.has(RUNS, "kept"):
            allocate()
        return "done"

    assert memory.facts() == {"failed": 0, "seconds_ago": None}
    assert memory.call(work) == "done"
    assert memory.facts()["failed"] == 1
    assert memory.facts()["seconds_ago"] < 60
    with pytest.raises(Busy, match=str(NO_MEMORY)):
        memory.call(allocate)
    assert memory.facts()["failed"] == 3


def test_other_errors_are_not_mistaken_for_lack_of_memory() -> None:
    budget = holding_one()
    memory = Memory(budget)
    for error in (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("memory")):

        def work(error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error), match=str(error)):
            memory.call(work)
    assert budget.has(RUNS, "kept")
    assert memory.facts()["failed"] == 0


@pytest.mark.slow
def test_a_server_with_little_memory_answers_after_the_longest_batches(tmp_path) -> None:
    """Its memory holds a few such batches, and not what it would keep of six."""
    lines = ["Once upon a time there was a dog. " * 30] * 8
    with (
        serving.Server(tmp_path / "log", ["stories"], "little_memory") as server,
        server.client(timeout=120) as client,
    ):
        for _ in range(6):
            assert "event: complete" in called(client, "batch", lines, "stories", None)
        assert "event: complete" in called(client, "trace", "The dog", "stories", None)
        health = client.get("health").json()
        assert health["allocations"]["failed"] > 0
        assert health["status"] == "ok"
