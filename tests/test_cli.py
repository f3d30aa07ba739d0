"""python -m transformer: text on stdout, one sentence on stderr for bad input, a page on demand."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest
from kit import prefork
from kit.models import save_model

import transformer
from transformer import Model, Request
from transformer.__main__ import main, parser
from transformer.plain_text import PLAIN_ENGLISH
from transformer.views.export import html


@pytest.fixture(scope="module")
def folder(tiny_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model as a checkpoint on disk."""
    path = tmp_path_factory.mktemp("checkpoints") / "tiny"
    save_model(tiny_model, path, dtype="float32")
    return path


def test_the_command_prints_the_text_that_the_model_generates(folder):
    options = {"max_new_tokens": 9, "temperature": 0.7, "top_k": 7, "seed": 5}
    settings = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "transformer", "the fox ", "--model", str(folder)]
    done = prefork.run(command + settings)
    expected = transformer.load(folder).generate("the fox ", **options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip("\n").startswith(expected.text.rstrip("\n"))
    first = done.stderr.splitlines()[0]
    for part in ("tiny", "2 layers x 2 heads x 16", "temperature 0.7, top_k 7", "seed 5"):
        assert part in first


def test_every_setting_of_a_request_is_an_option_with_its_default():
    arguments, help_text = vars(parser().parse_args(["some text"])), parser().format_help()
    for field in dataclasses.fields(Request)[1:]:
        assert arguments[field.name] == field.default
        assert f"--{field.name.replace('_', '-')}" in help_text
    assert "(default: 64)" in help_text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["  \n"], "the text is empty"),
        (["a", "--model", "nobody"], "no checkpoint 'nobody'; allowed: a folder, one of"),
        (["a", "--temperature", "-1"], "temperature must be a number from 0.01 to 10; got -1.0"),
        (["a", "--top-k", "many"], "argument --top-k: invalid int value: 'many'"),
        (["a", "--device", "abacus"], "device must be one of ['auto', 'cpu'"),
        (["a", "--html", "/no/such/folder/x.html"], "there is no folder /no/such/folder"),
        (["a", "--html", "."], "it is a folder; --html needs a file"),
        (["a", "--with-network"], "--with-network needs --html"),
        (["a", "--interventions", "{"], "argument --interventions: not JSON:"),
        ([], "the following arguments are required: text"),
    ],
)
def test_bad_input_gets_one_sentence_and_status_2(folder, capsys, arguments, sentence):
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


def test_a_run_is_saved_in_every_form_as_printed_or_the_disk_is_full(folder, tmp_path, capsys):
    paths = {name: tmp_path / f"out.{name}" for name in ("html", "json", "npz")}
    arguments = ["the fox", "--model", str(folder), "--max-new-tokens", "3"]
    for name, path in paths.items():
        arguments += [f"--{name}", str(path)]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    if Path("/dev/full").exists():
        assert main([*arguments[:3], "--json", "/dev/full"]) == 2
        full = capsys.readouterr().err.splitlines()[-1]
        assert "cannot write /dev/full: No space left on device" in full
    model = transformer.load(folder)
    run = transformer.with_lens(model, model.generate("the fox", max_new_tokens=3))
    assert printed.out.startswith(run.text)
    read = transformer.from_json(paths["json"].read_text(encoding="utf-8"))
    assert (read.text, read.surprisal) == (run.text, run.surprisal)
    assert transformer.read_npz(paths["npz"]).steps == run.steps
    assert paths["html"].read_text(encoding="utf-8") == html.page(run)
    assert all(f"wrote {path}" in printed.err for path in paths.values())


@pytest.mark.parametrize("first", [[], ["--forced-tokens", "70"]])
def test_sentences_are_translated_alone_unless_tokens_are_forced(
    tiny_encoder_decoder, tmp_path, first
):
    plain = dataclasses.replace(tiny_encoder_decoder, metadata={"source_text": PLAIN_ENGLISH})
    plain.save(tmp_path / "translator", dtype="float32")
    text, options = "It is a fox. It is a bird.", ["--max-new-tokens", "2", *first]
    arguments = [text, "--model", str(tmp_path / "translator"), *options]
    assert main([*arguments, "--json", str(tmp_path / "run.json")]) == 0
    saved = sorted(tmp_path.glob("run*.json"))
    texts = [transformer.from_json(path.read_text("utf-8")).request.text for path in saved]
    assert texts == ([text] if first else ["It is a fox.", "It is a bird."])


def test_what_is_altered_and_taken_first_can_be_given(folder, capsys):
    silence = [{"type": "ablate", "stack": "decoder", "layer": 1, "heads": [0]}]
    settings = ["--interventions", json.dumps(silence), "--forced-tokens", "70", "71"]
    arguments = ["the fox", "--model", str(folder), "--max-new-tokens", "6", *settings]
    assert main(arguments) == 0
    run = transformer.load(folder).generate(
        "the fox", max_new_tokens=6, interventions=silence, forced_tokens=[70, 71]
    )
    greedy = capsys.readouterr().out
    assert greedy.startswith(run.text)
    assert main([*arguments, "--temperature", "0", "--top-k", "9", "--seed", "3"]) == 0
    printed = capsys.readouterr()
    assert printed.out == greedy
    assert "; greedy; " in printed.err
    assert [step.token for step in run.steps[:2]] == [70, 71]
