"""A corpus by a Ray cluster of two workers on this machine, of which one is killed."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial

import psutil
import pytest
from builders import save_model

from transformer.analysis.corpus import over_texts
from transformer.analysis.corpus.__main__ import main
from transformer.analysis.corpus.parts import texts_of
from transformer.analysis.corpus.with_ray import LOCAL

pytestmark = pytest.mark.slow

N_TEXTS = 275


def workers() -> list[psutil.Process]:
    """The actors at work below this process; Ray names a process after what it does."""
    found = psutil.Process().children(recursive=True)
    return [one for one in found if "MapBatches(Worker)" in " ".join(one.cmdline())]


def test_a_cluster_finds_the_same_and_a_killed_worker_costs_only_time(tiny_model, tmp_path):
    save_model(tiny_model, tmp_path / "tiny", dtype="float32")
    data, name = tmp_path / "data.txt", str(tmp_path / "tiny")
    data.write_text("\n".join(f"the fox {n} said hello to the bird" for n in range(N_TEXTS)))
    texts = partial(texts_of, data)
    alone = over_texts(name, texts, tmp_path / "one", n_ablated=2, part=50)
    told: list[int] = []
    killed: list[int] = []

    def kill_one(done: int) -> None:
        told.append(done)
        if not killed:
            victim = workers()[0]
            os.kill(victim.pid, signal.SIGKILL)
            killed.append(victim.wait())

    there = sorted((tmp_path / "one").iterdir())[3]
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / there.name).write_bytes(there.read_bytes())  # of an earlier run
    several = over_texts(
        name, texts, tmp_path / "two", n_ablated=2, part=50, workers=2, ray=LOCAL, told=kill_one
    )
    assert len(killed) == 1
    assert sorted(told) == [25] + 5 * [50]
    assert several.n_texts == alone.n_texts == N_TEXTS
    for path in (tmp_path / "one").iterdir():
        assert (tmp_path / "two" / path.name).read_bytes() == path.read_bytes()
    assert not workers()


def test_without_ray_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit, match=r"^--ray needs the package ray\[data\]: pip install"):
        main(["stories", "--data", str(tmp_path / "data"), "--out", str(tmp_path / "o"), "--ray"])
