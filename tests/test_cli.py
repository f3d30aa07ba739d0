"""python -m transformer: text on stdout, one sentence on stderr for bad input, a page on demand."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

import transformer
from transformer import Model, Request, checkpoint
from transformer.__main__ import main, parser
from transformer.figures import html


@pytest.fixture(scope="module")
def folder(tiny_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model as a checkpoint on disk."""
    path = tmp_path_factory.mktemp("checkpoints") / "tiny"
    checkpoint.save(
        path, tiny_model.network, tiny_model.config, tiny_model.tokenizer, dtype="float32"
    )
    return path


# --- the command ----------------------------------------------------------------------------------


def test_the_command_prints_the_text_that_the_model_generates(folder: Path) -> None:
    command = [sys.executable, "-m", "transformer", "the fox ", "--model", str(folder)]
    settings = ["--max-new-tokens", "9", "--temperature", "0.7", "--top-k", "7", "--seed", "5"]
    done = subprocess.run(
        command + settings,
        capture_output=True,
        check=False,
        cwd=Path(transformer.__file__).parent.parent,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        timeout=120,
    )
    expected = transformer.load(folder).generate(
        "the fox ", max_new_tokens=9, temperature=0.7, top_k=7, seed=5
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode("utf-8").rstrip("\n").startswith(expected.text.rstrip("\n"))
    first = done.stderr.decode("utf-8").splitlines()[0]
    for part in ("tiny", "2 layers x 2 heads x 16", "temperature 0.7, top_k 7", "seed 5"):
        assert part in first


def test_every_setting_of_a_request_is_an_option_with_its_default() -> None:
    arguments = vars(parser().parse_args(["some text"]))
    request = Request(text="some text")
    for field in dataclasses.fields(Request):
        assert arguments[field.name] == getattr(request, field.name)
    for field in dataclasses.fields(Request):
        assert field.name == "text" or f"--{field.name.replace('_', '-')}" in parser().format_help()
    assert "(default: 64)" in parser().format_help()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([""], "must have at least one character that is not a space"),
        (["  \n"], "must have at least one character that is not a space"),
        (["a", "--model", "nobody"], "no checkpoint 'nobody'; allowed: a folder, or one of"),
        (["a", "--temperature", "0"], "temperature must be a number from 0.01 to 10; got 0.0"),
        (["a", "--temperature", "nan"], "temperature must be a number from 0.01 to 10; got nan"),
        (["a", "--top-k", "0"], "top_k must be a whole number from 1 to"),
        (["a", "--top-p", "1.5"], "top_p must be a number above 0 to 1; got 1.5"),
        (["a", "--min-p", "-1"], "min_p must be a number from 0 to 1; got -1.0"),
        (["a", "--seed", "-1"], "seed must be a whole number from 0 to"),
        (["a", "--max-new-tokens", "9999999"], "max_new_tokens must be a whole number from 0 to"),
        (["a", "--top-k", "many"], "argument --top-k: invalid int value: 'many'"),
        (["a", "--device", "abacus"], "device must be one of ['auto', 'cpu'"),
        (["a", "--html", "/no/such/folder/x.html"], "there is no folder /no/such/folder"),
        (["a", "--html", "."], "it is a folder; --html needs a file"),
        ([], "the following arguments are required: text"),
    ],
)
def test_bad_input_gets_one_sentence_and_status_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    if arguments and "--model" not in arguments:
        arguments = [*arguments, "--model", str(folder)]
    try:
        status = main(arguments)
    except SystemExit as ended:  # argparse ends the program itself
        status = int(str(ended.code))
    printed = capsys.readouterr()
    assert status == 2
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_a_full_disk_is_one_sentence_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    status = main(
        ["the fox", "--model", str(folder), "--max-new-tokens", "1", "--html", "/dev/full"]
    )
    printed = capsys.readouterr()
    assert status == 2
    assert "cannot write /dev/full: No space left on device" in printed.err.splitlines()[-1]


def test_the_html_option_writes_the_page_of_the_printed_run(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.html"
    arguments = ["the fox", "--model", str(folder), "--max-new-tokens", "3", "--html", str(path)]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    run = transformer.load(folder).generate("the fox", max_new_tokens=3)
    assert printed.out.startswith(run.text)
    assert html.safe_json(run.text) in path.read_text(encoding="utf-8")
    assert f"wrote {path}" in printed.err
