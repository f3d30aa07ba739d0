"""Every module that can be run says how, and what a command prints to be run can be run."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

import pytest
from kit import prefork
from kit.training import recipe, written
from packaging.requirements import Requirement

from transformer.checks import needs_package
from transformer.training import __main__ as training

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
MAIN = 'if __name__ == "__main__":'


def runnable() -> list[str]:
    """The files of the package and of the benchmarks that do something when they are run."""
    found = [path for part in ("transformer", "benchmarks") for path in (ROOT / part).rglob("*.py")]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in found}
    return sorted(name for name, text in texts.items() if MAIN in text)


def typed(name: str) -> str:
    """How a file is run, as its help says it."""
    if name in ("app.py", "deploy/space.py"):
        return f"python {name}"
    module = name.removesuffix(".py").removesuffix("/__main__").replace("/", ".")
    return f"python -m {module}"


def run(line: str) -> subprocess.CompletedProcess[str]:
    """Run a command line as typed."""
    python, *more = shlex.split(line)
    assert python == "python"
    return prefork.run([sys.executable, *more], env={**os.environ, "GOMP_SPINCOUNT": "20000"})


# Each in a fork of one process, which has imported what takes long; ended once its command line is
# parsed.
WALK = """
import argparse, json, os, runpy, sys
import transformer.serve, transformer.training.loop
parse = argparse.ArgumentParser.parse_args
def parse_alone(*given, **more):
    parse(*given, **more)
    sys.stdout.flush()
    os._exit(0)
argparse.ArgumentParser.parse_args = parse_alone
statuses = []
for number, words in enumerate(json.loads(sys.argv[1])):
    if os.fork():
        statuses.append(os.wait()[1])
        continue
    out = os.open(os.path.join(sys.argv[2], str(number)), os.O_CREAT | os.O_WRONLY)
    os.dup2(out, 1)
    os.dup2(out, 2)
    code = "went on"
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            sys.modules.pop(words[1], None)
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            sys.path[0] = os.path.dirname(os.path.abspath(words[0]))  # as Python does
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        code = repr(error)
    finally:
        if code:
            print(code)
        sys.stdout.flush()
        os._exit(bool(code))
print(json.dumps(statuses))
"""


def walked(commands: Iterable[Sequence[str]], folder: Path) -> list[tuple[int, str]]:
    """The status of each command, which begins with "python", and what it prints until its command
    line is parsed.
    """
    asked = json.dumps([words[1:] for words in commands])
    done = run(shlex.join(["python", "-c", WALK, asked, str(folder)]))
    assert done.returncode == 0, done.stderr
    statuses = json.loads(done.stdout)
    return [(status, (folder / str(n)).read_text("utf-8")) for n, status in enumerate(statuses)]


def test_every_module_that_can_be_run_has_help(tmp_path):
    names = ["app.py", "deploy/space.py", *runnable()]
    assert {"transformer/serve.py", "benchmarks/page.py"} < set(names)
    helps = walked([[*typed(name).split(), "--help"] for name in names], tmp_path)
    for name, (status, printed) in zip(names, helps, strict=True):
        assert status == 0
        assert printed.startswith(f"usage: {typed(name)} [-h]"), printed
        assert "show this help message and exit" in printed
        assert "went on" not in printed


def printed_commands() -> Iterator[tuple[str, list[str]]]:
    """(place, words) of each command that a document, a card or a docstring tells to type."""
    documents = (*ROOT.glob("*.md"), *ROOT.glob("[dc]*/**/*.md"))
    for path in documents:
        text = path.read_text(encoding="utf-8")
        fences = re.findall(r"^( *`{3,})\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL)
        lines = "\n".join(body for _, body in fences).replace("\\\n", " ").splitlines()
        prose = re.sub(r"^( *`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
        for line in (*lines, *(" ".join(span.split()) for span in re.findall("`([^`]+)`", prose))):
            for command in line.split(" && "):
                if re.match(r"(\.venv/bin/)?python (-m )?[^ -]", command):
                    yield path.relative_to(ROOT).as_posix(), shlex.split(command, comments=True)
    for path in (*ROOT.glob("tools/*.py"), *map(ROOT.joinpath, runnable())):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        usage = docstring.partition("\n\n")[2]
        for line in re.findall(r"^ *(python [^\[\]|\n]+?)(?: {4,}.*)?$", usage, re.MULTILINE):
            yield path.relative_to(ROOT).as_posix(), shlex.split(line, comments=True)


def test_every_printed_command_is_accepted_as_it_stands(tmp_path):
    """A module may be named alone ("`python -m transformer`"), without its arguments."""
    refused, places = [], {}
    for place, words in printed_commands():
        places[tuple(words[: words.index(">")] if ">" in words else words)] = place
    assert len(places) > 50
    answers = walked(places, tmp_path)
    for (words, place), (status, printed) in zip(places.items(), answers, strict=True):
        is_name = len(words) == 3 and "the following arguments are required" in printed
        if status and not is_name:
            refused.append((place, words, printed))
    assert refused == []


def test_the_command_that_scores_a_training_can_be_run_as_it_is_printed(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", training.__spec__)
    data = written(tmp_path / "some texts")
    recipe(tmp_path, steps=1)
    for source, score in (
        (data, "perplexity"),
        (data / "train.txt", None),  # its last tenth is held out, in no separate file
    ):
        out = tmp_path / f"tiny {source.name}"
        arguments = [str(tmp_path / "tiny.toml"), "--data", str(source), "--out", str(out)]
        assert training.main([*arguments, "--cpu"]) == 0
        wrote, _, line = capsys.readouterr().out.splitlines()[-1].partition("; score it: ")
        assert wrote == f"wrote {out}"
        assert bool(line) == bool(score)
        if score:
            scored = run(line)
            assert scored.returncode == 0, scored.stderr
            assert score in scored.stdout


PACKAGES = ("datasets", "huggingface_hub", "ray[data]", "sentencepiece")


def test_the_command_that_installs_a_package_can_be_run_as_it_is_printed():
    """All are here already, by the name that it gives to pip."""
    files = (ROOT / "transformer").rglob("*.py")
    used = "".join(path.read_text(encoding="utf-8") for path in files)
    assert set(re.findall(r'needs_package\(.+"([a-z_[\]]+)"\)', used)) == set(PACKAGES)
    for package in PACKAGES:
        _, line = needs_package("it", package).split(": ")
        pip, install, named = shlex.split(line)
        assert (pip, install, named) == ("pip", "install", package)
        assert metadata.version(Requirement(named).name)


# The file alone: the package would import PyTorch first.
SAYS = (
    "import sys; sys.path.append('transformer'); from command_line import Parser; "
    "Parser({}); print('模型ü' * 9_000, flush=True)"
)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("to", ["/dev/full", "&-"])
@pytest.mark.parametrize("server", [False, True])
def test_output_that_cannot_be_written_ends_a_command_alone(to, server):
    python = [sys.executable, "-c", SAYS.format("needs_output=False" if server else "")]
    command = ["sh", "-c", f'exec "$@" >{to}', "sh", *python]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if server else 1)
    assert done.stderr.count("cannot write the output: ") == len(done.stderr.splitlines())
    assert bool(done.stderr) != server


def test_what_an_output_cannot_encode_is_written_as_a_code():
    python = [sys.executable, "-c", SAYS.format("")]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(python, cwd=ROOT, env=environment, capture_output=True, check=True)
    assert done.stdout.startswith(b"\\u6a21\\u578b\\xfc")
