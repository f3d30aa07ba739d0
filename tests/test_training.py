"""The training loop: it learns, resumes to the same result, and many processes equal one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import transformer
from transformer.training import loop
from transformer.training.__main__ import main
from transformer.training.data import load_texts
from transformer.training.recipe import Recipe, load_recipe
from transformer.training.tasks import LanguageModel

ROOT = Path(__file__).resolve().parent.parent

RECIPE = """
task = "language-model"
[tokenizer]
vocab_size = 300
[model]
preset = "gpt"
d_model = 32
n_heads = 2
n_layers = 2
d_ff = 64
max_len = 24
padding_id = 0
dropout = {dropout}
attention_dropout = 0.0
tie_embeddings = true
[training]
steps = {steps}
batch_tokens = 128
precision = "{precision}"
optimizer = "{optimizer}"
learning_rate = {rate}
warmup_steps = 5
validate_every = {every}
save_every = 4
sample_prompts = ["The"]
"""

LINES = [
    "The cat sat on the mat.",
    "A dog ran to the red door.",
    "Every bird can sing a song.",
    "Two small fish swim in the sea.",
    "My friend has a blue hat.",
    "Rain falls on the green hill.",
    "We eat bread and honey today.",
    "Her kite flew over our house.",
    "Stars shine when it is night.",
    "Ten frogs jump in the pond.",
]


def recipe(
    folder: Path,
    *,
    steps: int,
    dropout: float = 0.1,
    rate: float = 3e-3,
    every: int = 6,
    optimizer: str = "adamw",
    precision: str = "float32",
) -> Recipe:
    path = folder / "tiny.toml"
    text = RECIPE.format(
        steps=steps, dropout=dropout, rate=rate, every=every, optimizer=optimizer,
        precision=precision,
    )  # fmt: skip
    path.write_text(text, encoding="utf-8")
    return load_recipe(str(path))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    train = "".join(f"{line}\n<|endoftext|>\n" for line in LINES * 3)
    (folder / "train.txt").write_text(train, encoding="utf-8")
    (folder / "valid.txt").write_text("A cat ran.\n<|endoftext|>\n", encoding="utf-8")
    return folder


def task(folder: Path, lines: list[str] = LINES) -> LanguageModel:
    data = folder / "lines"
    data.mkdir(exist_ok=True)
    for name in ("train.txt", "valid.txt"):
        (data / name).write_text("".join(f"{line}\n<|endoftext|>\n" for line in lines))
    return LanguageModel(recipe(folder, steps=1), str(data))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return transformer.load(folder).network.state_dict()


def losses(folder: Path) -> list[float]:
    lines = (folder / "training" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    by_step = {entry["step"]: entry["loss"] for entry in map(json.loads, lines)}
    return [by_step[step] for step in sorted(by_step)]


def command(recipe_path: Path, data: Path, out: Path) -> list[str]:
    names = ["--data", str(data), "--out", str(out)]
    return ["-m", "transformer.training", str(recipe_path), *names, "--cpu"]


def test_a_model_overfits_ten_lines_and_then_says_them(tmp_path):
    out = loop.train(
        recipe(tmp_path, steps=150, dropout=0.0, rate=1e-2, every=150),
        task(tmp_path),
        tmp_path / "o",
    )
    model = transformer.load(out)
    for line in LINES:
        run = model.generate(" ".join(line.split()[:2]), max_new_tokens=40)
        assert run.text == line
        assert run.stopped == "end"
    scores = model.metadata["scores"]["valid"]
    assert scores["loss"] < 0.25


def test_the_loss_curve_and_card_say_what_happened(tmp_path):
    out = loop.train(recipe(tmp_path, steps=12), task(tmp_path), tmp_path / "o")
    metadata = json.loads((out / "config.json").read_text())["metadata"]
    assert [step for step, _ in metadata["curve"]["valid"]] == [6, 12]
    assert [step for step, _ in metadata["curve"]["train"]] == list(range(1, 13))
    assert [value for _, value in metadata["curve"]["train"]] == [round(x, 4) for x in losses(out)]
    assert (out / "training" / "loss.html").stat().st_size > 1000
    card = (out / "README.md").read_text()
    assert f"{metadata['scores']['valid']['bits_per_byte']:.4f}" in card


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_an_interrupted_training_resumes_to_bit_identical_weights(tmp_path, monkeypatch, optimizer):
    whole = loop.train(
        recipe(tmp_path, steps=14, optimizer=optimizer), task(tmp_path), tmp_path / "whole"
    )

    original = loop._Training._step

    def interrupted(self, rows):
        if self.progress["step"] == 10:  # the last state was saved at step 8
            raise KeyboardInterrupt
        return original(self, rows)

    with monkeypatch.context() as patch:
        patch.setattr(loop._Training, "_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            loop.train(
                recipe(tmp_path, steps=14, optimizer=optimizer), task(tmp_path), tmp_path / "parts"
            )
    assert not (tmp_path / "parts" / "config.json").exists()
    parts = loop.train(
        recipe(tmp_path, steps=14, optimizer=optimizer), task(tmp_path), tmp_path / "parts"
    )

    assert losses(whole) == losses(parts)
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(parts)[name]), name


def test_a_killed_process_resumes_from_its_state_file(tmp_path, data):
    recipe(tmp_path, steps=4000)
    out = tmp_path / "o"
    arguments = [sys.executable, *command(tmp_path / "tiny.toml", data, out)]
    process = subprocess.Popen(
        arguments, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    state = out / "training" / "state.safetensors"
    deadline = time.monotonic() + 60
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = len(losses(out))
    assert 4 <= done < 4000

    finished = subprocess.run(
        [*arguments, "--steps", str(done + 6)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert len(losses(out)) == done + 6
    assert transformer.load(out).generate("The", max_new_tokens=3).text.startswith("The")


@pytest.mark.slow
def test_two_processes_have_the_losses_of_one(tmp_path, data):
    recipe(tmp_path, steps=8, dropout=0.0)
    one, two = tmp_path / "one", tmp_path / "two"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    # On CPUs `accelerate launch` needs an MPI installation; torchrun starts the same processes.
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    for out, prefix in ((one, []), (two, launch)):
        finished = subprocess.run(
            [sys.executable, *prefix, *command(tmp_path / "tiny.toml", data, out)],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert finished.returncode == 0, finished.stderr
    assert json.loads((two / "config.json").read_text())["metadata"]["hardware"].startswith("2 x")
    assert losses(two) == pytest.approx(losses(one), abs=1e-4)
    for name, tensor in weights(one).items():
        assert torch.allclose(tensor, weights(two)[name], atol=2e-3), name


def test_a_training_can_begin_with_a_trained_model(tmp_path):
    first = loop.train(recipe(tmp_path, steps=40), task(tmp_path), tmp_path / "first")
    start = transformer.load(first)
    out = loop.train(recipe(tmp_path, steps=2), task(tmp_path), tmp_path / "o", start=start)
    assert losses(out)[0] < losses(first)[0] - 1
    assert transformer.load(out).tokenizer.encode("The cat") == start.tokenizer.encode("The cat")
    wider = load_recipe(str(tmp_path / "tiny.toml"))
    wider.model["d_ff"] = 128
    with pytest.raises(ValueError, match="cannot start this recipe: d_ff is 64, needed: 128"):
        loop.train(wider, task(tmp_path), tmp_path / "wider", start=start)


def test_another_recipe_in_the_same_folder_is_refused(tmp_path):
    loop.train(recipe(tmp_path, steps=4), task(tmp_path), tmp_path / "o")
    with pytest.raises(ValueError, match="training of another recipe"):
        loop.train(recipe(tmp_path, steps=4, rate=1e-4), task(tmp_path), tmp_path / "o")


def test_bf16_trains_on_a_cpu_too(tmp_path):
    made = recipe(tmp_path, steps=30, rate=3e-3, dropout=0.0, precision="bf16")
    out = loop.train(made, task(tmp_path), tmp_path / "o")
    assert losses(out)[-1] < losses(out)[0] - 0.5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; none is present")
def test_training_uses_the_gpu(tmp_path):
    out = loop.train(recipe(tmp_path, steps=4), task(tmp_path), tmp_path / "o")
    assert "CPU" not in json.loads((out / "config.json").read_text())["metadata"]["hardware"]


def test_the_command_trains_evaluates_and_looks_for_memorised_text(tmp_path, data, capsys):
    recipe(tmp_path, steps=6)
    out = tmp_path / "o"
    assert main(command(tmp_path / "tiny.toml", data, out)[2:]) == 0
    assert "seed 0" in capsys.readouterr().out.splitlines()[0]
    assert main(["evaluate", str(out), "--data", str(data / "valid.txt")]) == 0
    printed = capsys.readouterr().out
    expected = json.loads((out / "config.json").read_text())["metadata"]["scores"]["valid"]
    found = {line.split("  ")[0]: line.split()[-1] for line in printed.splitlines()[1:]}
    assert float(found["perplexity"]) == pytest.approx(expected["perplexity"], rel=1e-3)  # float16
    assert "bits per byte" in found
    assert main(["memorised", str(out), "--data", str(data / "train.txt"), "--samples", "3"]) == 0
    assert "longest shared passage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nosuch", "--data", "x", "--out", "y"], "no recipe 'nosuch'; allowed: .*'stories'"),
        (["stories", "--data", "/nosuch", "--out", "y"], "cannot read training text"),
        (["stories", "--data", "x", "--out", "y", "--steps", "0"], "steps must be a whole number"),
        (["evaluate", "nosuch", "--data", "x"], "no checkpoint 'nosuch'"),
    ],
)
def test_mistakes_get_one_sentence(arguments, sentence, capsys):
    assert main(arguments) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert re.search(sentence, printed)


def test_without_a_network_the_hub_source_ends_in_one_sentence(tmp_path):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    finished = subprocess.run(
        [
            sys.executable, "-m", "transformer.training", "stories",
            "--data", "hub:roneneldan/TinyStories", "--out", str(tmp_path / "o"), "--cpu",
        ],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert finished.returncode == 2
    errors = [line for line in finished.stderr.splitlines() if line]
    assert len(errors) == 1
    assert "cannot stream 'roneneldan/TinyStories'" in errors[0]
    assert "give --data a folder" in errors[0]


def test_documents_are_split_at_end_of_text_lines_only(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("a\n\nb <|endoftext|> c\n<|endoftext|>\nd\n<|endoftext|>\n", encoding="utf-8")
    (tmp_path / "valid.txt").write_text("e\n<|endoftext|>\n", encoding="utf-8")
    assert load_texts(str(tmp_path)).train == ["a\n\nb <|endoftext|> c", "d"]
