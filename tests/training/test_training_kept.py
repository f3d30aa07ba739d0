"""Nothing of a training is lost: it is saved as it goes, ends on Ctrl-C, and goes on as it was."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from kit import prefork
from kit.training import LINES, ROOT, command, losses, metadata, recipe, task, weights, written

import transformer
from transformer.training import loop
from transformer.training.__main__ import main
from transformer.training.updates import updates

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path / "data")


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_broken_training_resumes_to_bit_identical_weights(tmp_path, monkeypatch, optimizer):
    def trained(name: str) -> Path:
        made = recipe(tmp_path, steps=14, optimizer=optimizer)
        return loop.train(made, task(tmp_path), tmp_path / name)

    def broken(*given, **named):
        for update in updates(*given, **named):
            if update.step > 10:  # the last state was saved at step 8
                raise MemoryError
            yield update

    whole = trained("whole")
    with monkeypatch.context() as patch:
        patch.setattr(loop, "updates", broken)
        with pytest.raises(MemoryError):
            trained("parts")
    half = transformer.load(tmp_path / "parts")
    assert half.metadata["phases"][-1]["steps"] == 8
    assert "**Unfinished: step 8 of 14.**" in half.card
    assert "Not measured yet; at step 6, on the first 10 validation documents" in half.card
    assert half.generate("The", max_new_tokens=3).text.startswith("The")
    parts = trained("parts")
    assert losses(whole) == losses(parts)
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(parts)[name]), name


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def wish(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that does nothing to who does not listen to it; who did, listens no more."""
    before = signal.signal(request.param, ignored := lambda *_: None)
    yield request.param
    assert signal.signal(request.param, before) is ignored


def test_ctrl_c_ends_after_a_step_and_keeps_it(tmp_path, data, wish, monkeypatch, capsys):
    recipe(tmp_path, steps=40, every=50)
    out = tmp_path / "o"
    arguments = command(tmp_path / "tiny.toml", data, out)[2:]

    def wished(*given, **named):
        for update in updates(*given, **named):
            if update.step == 3:
                os.kill(os.getpid(), wish)
            yield update

    with monkeypatch.context() as patch:
        patch.setattr(loop, "updates", wished)
        assert main([*arguments, "--save-every", "30"]) == 130
    done = len(losses(out))
    assert 3 <= done <= 4
    said = f"stopped at step {done} of 40; {out} can be used, and the same command goes on"
    assert said in "".join(capsys.readouterr())
    model = transformer.load(out)
    assert model.metadata["phases"][-1]["steps"] == done
    assert f"**Unfinished: step {done} of 40.**" in model.card
    assert main([*arguments, "--steps", str(done + 2)]) == 0
    assert len(losses(out)) == done + 2


def test_more_steps_may_be_planned_but_no_other_recipe_or_text_goes_on(tmp_path):
    out = loop.train(recipe(tmp_path, steps=4), task(tmp_path), tmp_path / "o")
    before = (out / "config.json").read_bytes()
    with pytest.raises(ValueError, match="training of another recipe"):
        loop.train(recipe(tmp_path, steps=4, rate=1e-4), task(tmp_path), out)
    other = task(tmp_path, [*LINES[:-1], "Ten frogs jump in the lake."])
    with pytest.raises(ValueError, match="holds a training on other text; allowed: what it began"):
        loop.train(recipe(tmp_path, steps=6), other, out)
    assert (out / "config.json").read_bytes() == before
    loop.train(recipe(tmp_path, steps=9), task(tmp_path), out)
    (phase,) = metadata(out)["phases"]
    assert [(one["from_step"], one["steps"]) for one in phase["sessions"]] == [(0, 4), (4, 9)]
    assert phase["steps"] == len(losses(out)) == 9
    card = (out / "README.md").read_text()
    assert "50% of 4 steps, from step 4 on of 9, then linearly to zero" in card


def test_the_processes_of_the_documented_command_have_the_losses_of_one(tmp_path, data):
    recipe(tmp_path, steps=8, dropout=0.0)
    one, two = tmp_path / "one", tmp_path / "two"
    assert main(command(tmp_path / "tiny.toml", data, one)[2:]) == 0
    text = (ROOT / "docs" / "training" / "index.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^torchrun .*$", text, flags=re.MULTILINE)
    own = {"stories": tmp_path / "tiny.toml", "FOLDER": data, "checkpoints/mine": two}
    torchrun, *words = line.split()
    assert (torchrun, own.keys() < set(words)) == ("torchrun", True)
    finished = prefork.run(
        [sys.executable, "-m", "torch.distributed.run", *(str(own.get(w, w)) for w in words)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("seed 0") == 1
    assert metadata(two)["hardware"].startswith("2 x")
    assert losses(two) == pytest.approx(losses(one), abs=1e-4)
    for name, tensor in weights(one).items():
        assert torch.allclose(tensor, weights(two)[name], atol=2e-3), name
