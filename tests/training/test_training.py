"""The training loop and its command: they learn, begin with trained weights, and tell mistakes."""

import json
import re
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from kit.training import LINES, command, losses, metadata, recipe, task, written

import transformer
from transformer import Model
from transformer.server.kept.service import Service
from transformer.training import loop
from transformer.training.__main__ import main
from transformer.training.recipe import load_recipe


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path / "data")


@pytest.mark.slow
def test_a_model_overfits_ten_lines_and_then_generates_them(tmp_path):
    made = recipe(tmp_path, steps=150, dropout=0.0, rate=1e-2, every=150, precision="bf16")
    out = loop.train(made, task(tmp_path), tmp_path / "o")
    model = transformer.load(out)
    for line in LINES:
        run = model.generate(" ".join(line.split()[:2]), max_new_tokens=40)
        assert run.text == line
        assert run.stopped == "end"
    assert model.metadata["scores"]["valid"]["loss"] < 0.25


@pytest.mark.slow
def test_a_training_can_begin_with_a_trained_model(tmp_path):
    first = loop.train(recipe(tmp_path, steps=40), task(tmp_path), tmp_path / "first")
    start = transformer.load(first)
    out = loop.train(recipe(tmp_path, steps=2), task(tmp_path), tmp_path / "o", start=start)
    assert losses(out)[0] < losses(first)[0] - 1
    made = load_recipe(str(tmp_path / "tiny.toml"), label_smoothing=0.3)
    smooth = loop.train(made, task(tmp_path), tmp_path / "smooth", start=start)
    assert losses(smooth)[0] > losses(out)[0] + 0.1
    assert transformer.load(out).tokenizer.encode("The cat") == start.tokenizer.encode("The cat")
    assert [phase["steps"] for phase in metadata(out)["phases"]] == [40, 2]
    card = (out / "README.md").read_text()
    assert "Trained from trained weights with the recipe `tiny`" in card
    assert re.search(r"1\. `tiny`: 40 steps .*\n2\. `tiny`: 2 steps", card)
    wider = load_recipe(str(tmp_path / "tiny.toml"))
    wider.model["d_ff"] = 128
    with pytest.raises(ValueError, match="cannot start this recipe: d_ff is 64, needed: 128"):
        loop.train(wider, task(tmp_path), tmp_path / "wider", start=start)
    assert not (tmp_path / "wider").exists()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; none is present")
def test_training_uses_the_gpu(tmp_path):
    out = loop.train(recipe(tmp_path, steps=4), task(tmp_path), tmp_path / "o")
    assert "CPU" not in json.loads((out / "config.json").read_text())["metadata"]["hardware"]


@pytest.mark.slow
def test_the_commands_train_evaluate_and_find_memorised_text(tmp_path, data, capsys):
    recipe(tmp_path, steps=12)
    out = tmp_path / "o"
    assert main(command(tmp_path / "tiny.toml", data, out)[2:]) == 0
    assert "seed 0" in capsys.readouterr().out.splitlines()[0]
    facts, card = metadata(out), (out / "README.md").read_text()
    assert [step for step, _ in facts["curve"]["valid"]] == [6, 12]
    assert [loss for _, loss in facts["curve"]["train"]] == [round(one, 4) for one in losses(out)]
    assert (out / "training" / "loss.html").stat().st_size > 1000
    for words in (
        "30 documents to train on, 1 to validate with.", "12 steps of at most 128 tokens",
        f"({facts['tokens']:,} predicted in all", "Trained from scratch with the recipe `tiny`",
        f"{facts['scores']['valid']['bits_per_byte']:.4f}",
    ):  # fmt: skip
        assert words in card
    assert "Unfinished" not in card
    assert main(["evaluate", str(out), "--data", str(data / "valid.txt")]) == 0
    (found,) = re.findall(r"perplexity .*?([\d.]+)\n", capsys.readouterr().out)
    wanted = facts["scores"]["valid"]["perplexity"]
    assert float(found) == pytest.approx(wanted, rel=1e-3)  # float16
    assert main(["memorised", str(out), "--data", str(data / "train.txt"), "--samples", "3"]) == 0
    assert "longest shared passage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nosuch", "--data", "x", "--out", "y"], "no recipe 'nosuch'; allowed: .*'stories'"),
        (["stories", "--data", "/nosuch", "--out", "y"], "cannot read the text /nosuch"),
        (["evaluate", "nosuch", "--data", "x"], "no checkpoint 'nosuch'"),
        (["translate-en-fr", "--data", "hub:o/n", "--out", "y"], "Hub is read for documents alone"),
        (["memorised", "stories", "--data", "PAIRS"], "holds sentence pairs.*needed: documents"),
        (["BERT", "--data", "x", "--out", "y"], "needs the family 'decoder'; the preset 'bert' is"),
        (["ODD", "--data", "DATA", "--out", "y"], "n_heads must divide d_model"),
        (
            ["tiny.toml", "--data", "DATA", "--out", "PAIRS"],
            "--out must be a folder; .*PAIRS is",
        ),
        (["tiny.toml", "--data", "DATA", "--out", "PAIRS/y"], "--out must be a folder; .*PAIRS is"),
        (["tiny.toml", "--data", "DATA", "--out", "y", "--save-every", "0"], "save_every must"),
        (
            ["tiny.toml", "--data", "DATA", "--out", "y", "--checkpoints", "-1"],
            "--checkpoints",
        ),
        (["evaluate", "translate-en-fr", "--data", "PAIRS", "--beams", "0"], "--beams must be"),
        (
            ["evaluate", "translate-en-fr", "--data", "PAIRS", "--length-penalty", "nan"],
            "must be",
        ),
        (["evaluate", "stories", "--data", "PAIRS", "--target", "PAIRS"], "--target is for an enc"),
        (["memorised", "stories", "--data", "PAIRS", "--samples", "0"], "--samples must be"),
    ],
)
def test_mistakes_get_one_sentence_before_a_folder_is_made(
    arguments, sentence, tmp_path, data, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    recipe(tmp_path, steps=1)
    text = (tmp_path / "tiny.toml").read_text()
    for name, old, new in (("BERT", '"gpt"', '"bert"'), ("ODD", "n_heads = 2", "n_heads = 5")):
        (tmp_path / name).write_text(text.replace(old, new))
    (tmp_path / "PAIRS").write_text("A cat.\tUn chat.\nA dog.\tUn chien.\n", encoding="utf-8")
    data.rename(tmp_path / "DATA")
    assert main(arguments) == 2
    assert not (tmp_path / "y").exists()
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert re.search(sentence, printed)


@pytest.mark.parametrize("error", [ValueError("the loss became nan"), KeyboardInterrupt("stopped")])
def test_an_error_is_printed_below_the_progress_bar(tmp_path, data, monkeypatch, capsys, error):
    def broken(*_, **__):
        raise error
        yield

    recipe(tmp_path, steps=3)
    monkeypatch.setattr(loop, "updates", broken)
    assert main(command(tmp_path / "tiny.toml", data, tmp_path / "o")[2:]) in (2, 130)
    last = re.split(r"[\r\n]+", capsys.readouterr().err.rstrip("\n"))[-1]
    assert last.removeprefix("error: ") == str(error)


def test_a_character_of_the_validation_part_alone_ends_no_training(tmp_path, capsys):
    recipe(tmp_path, steps=1, every=1)
    text = (tmp_path / "tiny.toml").read_text()
    text = text.replace("vocab_size = 300", 'kind = "characters"').replace("save_every = 4", "")
    (tmp_path / "tiny.toml").write_text(text)
    data = written(tmp_path / "data", ["the cat sat"] * 20, ["the cat", "a cat\nsat\na zebra"])
    run = partial(command, tmp_path / "tiny.toml")
    assert main(run(data, tmp_path / "new")[2:]) == 0  # "The" of the prompt is not known either
    assert transformer.load(tmp_path / "new").tokenizer.encode("zebra")
    few = written(tmp_path / "few", ["the cat sat"] * 20, ["the cat"])
    assert main(run(few, tmp_path / "few letters")[2:]) == 0
    capsys.readouterr()
    start = ["--from", str(tmp_path / "few letters")]
    assert main([*run(data, tmp_path / "from")[2:], *start]) == 2
    last = capsys.readouterr().err.rstrip("\n").split("\n")[-1]
    assert re.match(r"error: \S+valid.txt, line 3: the text holds '\\n', which", last)
    assert not (tmp_path / "from").exists()
    (tmp_path / "one.txt").write_text("a cat\n<|endoftext|>\nthe zat\n")
    assert (
        main(["evaluate", str(tmp_path / "few letters"), "--data", str(tmp_path / "one.txt")]) == 2
    )
    assert re.match(r"error: \S+one.txt, line 3: the text holds 'z'", capsys.readouterr().err)


def test_a_missing_training_package_is_named_with_its_pip_command(
    tmp_path, data, monkeypatch, capsys
):
    recipe(tmp_path, steps=1)
    for name in ("loop", "state"):
        monkeypatch.delitem(sys.modules, f"transformer.training.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "accelerate", None)
    assert main(command(tmp_path / "tiny.toml", data, tmp_path / "o")[2:]) == 2
    sentence = "error: .* needs the package accelerate: pip install accelerate\n"
    assert re.fullmatch(sentence, capsys.readouterr().err)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(("n_processes", "is_cpu"), [(1, False), (2, True)])
def test_several_processes_without_a_gpu_train_together_on_the_cpu(
    tmp_path, monkeypatch, n_processes, is_cpu
):
    def asked(**settings):
        raise RuntimeError(settings)

    monkeypatch.setattr(loop, "n_processes", lambda: n_processes)
    monkeypatch.setattr(loop, "Accelerator", asked)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match=f"'cpu': {is_cpu}"):
        loop.train(recipe(tmp_path, steps=1), task(tmp_path), tmp_path / "o")


def test_without_a_network_it_is_said_that_the_hub_cannot_be_asked(tmp_path, monkeypatch, capsys):
    def offline(*_, **__):
        raise ConnectionError("no way there\n(a second line)")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=offline))
    assert main(["stories", "--data", "hub:some/stories", "--out", str(tmp_path / "o")]) == 2
    said = r".* cannot stream 'some/stories' .*: no way there; .*give --data a folder.*\n"
    assert re.fullmatch(said, capsys.readouterr().err)


VERSE = "the cat sat on the mat.\nthe dog sat on the log.\n" * 30


@pytest.fixture(scope="module")
def speller(tmp_path_factory) -> Model:
    folder = tmp_path_factory.mktemp("characters")
    (folder / "text.txt").write_text(VERSE, encoding="utf-8")
    recipe(folder, steps=120, dropout=0.0, rate=1e-2, every=120)
    path = folder / "tiny.toml"
    tiny = path.read_text(encoding="utf-8").replace('"The"', '"the"')
    path.write_text(tiny.replace("vocab_size = 300", 'kind = "words"'), encoding="utf-8")
    with pytest.raises(ValueError, match=r"\[tokenizer\] kind must be one of .*; got 'words'"):
        load_recipe(str(path))
    path.write_text(tiny.replace("vocab_size = 300", 'kind = "characters"'), encoding="utf-8")
    arguments = [str(path), "--data", str(folder / "text.txt")]
    assert main([*arguments, "--out", str(folder / "o"), "--cpu"]) == 0
    return transformer.load(folder / "o")


@pytest.mark.slow
def test_a_model_of_characters_learns_and_the_page_offers_it(speller):
    model = speller
    assert model.config.vocab_size == len(set(VERSE)) + 3
    service = Service([model])
    assert service.store.run(service.examples[model.name][0]).request.text == "nce on a tme"
    run = service.generate(model.name, "the cat s", max_new_tokens=4)
    assert run.text == "the cat sat o"
    assert run.tokens[1:] == tuple("the␣cat␣sat␣o")
    assert f"{model.config.vocab_size} tokens, characters." in model.card
    with pytest.raises(ValueError, match="holds 'T', which this model never learned"):
        service.generate(model.name, "The dog", max_new_tokens=4)
