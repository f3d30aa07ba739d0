"""python -m transformer "Once upon a time": print what a model writes, and save what it did."""

from __future__ import annotations

import argparse
import codecs
import dataclasses
import io
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch

from transformer.checkpoint import bundled_names, load
from transformer.inference.model import Model
from transformer.inference.request import Request
from transformer.inference.run import Run
from transformer.inference.stream import Stream

_HELP = {
    "max_new_tokens": "how many tokens to generate at most",
    "temperature": "divides the logits: below 1 sharper, above 1 flatter",
    "top_k": "draw from the k likeliest tokens only",
    "top_p": "draw from the likeliest tokens that together reach this probability",
    "min_p": "draw from tokens at least this likely, as a share of the likeliest one's probability",
    "seed": "the same seed and settings give the same text",
    "beams": "hypotheses followed at once, for translators; more than one is a beam search",
    "length_penalty": "power of the length that a hypothesis' score is divided by",
    "taken": "ids of tokens to take first, whatever the network says of them",
    "interventions": "what to alter in the network, as a JSON list of the API's values",
}
# What a run can be saved as: option -> what is written, and the function that writes it.
_SAVED: dict[str, tuple[str, Callable[[Run, Path], object]]] = {
    "html": ("one self-contained page, with its heatmaps", Run.to_html),
    "json": ("JSON, with every head's attention", lambda run, path: path.write_text(run.to_json())),
    "npz": ("NPZ, with every array of its trace", Run.to_npz),
}


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def parser() -> argparse.ArgumentParser:
    """The command line; every setting of a Request is an option of the same name."""
    result = _Parser(
        prog="python -m transformer",
        description="Continue a text, or translate it, with a small Transformer. Without "
        "temperature, top-k, top-p and min-p the likeliest token is taken each time; with any of "
        "them tokens are drawn; with several beams the likeliest text is searched.",
    )
    result.add_argument("text", help="the beginning to go on from, or what to translate")
    for field in dataclasses.fields(Request):
        if field.name == "text":
            continue
        result.add_argument("--" + field.name.replace("_", "-"), **_option(field))
    names = ", ".join(bundled_names()) or "none"
    result.add_argument(
        "--model",
        default="stories",
        metavar="NAME",
        help=f"a bundled model ({names}) or a folder (default: %(default)s)",
    )
    result.add_argument(
        "--device",
        default="auto",
        help="auto, cpu, cuda or cuda:NUMBER (default: %(default)s: a GPU if there is one)",
    )
    for name, (what, _) in _SAVED.items():
        result.add_argument(
            f"--{name}",
            type=Path,
            metavar="FILE",
            help=f"also save the run as {what} (default: off)",
        )
    return result


def _option(field: dataclasses.Field[Any]) -> dict[str, Any]:
    """How argparse is to read a setting of a Request."""
    if field.name == "taken":
        return {"type": int, "nargs": "+", "default": (), "metavar": "ID", "help": _HELP["taken"]}
    if field.name == "interventions":
        told = _HELP[field.name]
        return {"type": _json, "default": (), "metavar": "JSON", "help": told}
    kind = int if "int" in str(field.type) else float
    default = "off" if field.default is None else field.default
    return {
        "type": kind,
        "default": field.default,
        "metavar": "N" if kind is int else "X",
        "help": f"{_HELP[field.name]} (default: {default})",
    }


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0; 2 for bad input, after one sentence on stderr; 130 if interrupted."""
    arguments = parser().parse_args(argv)
    try:
        _run(arguments)
    except ValueError as error:
        return _fail(str(error))
    except BrokenPipeError:  # whoever read the text has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _fail(f"cannot print the text: {error.strerror}")
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    return 0


def _run(arguments: argparse.Namespace) -> None:
    settings = {field.name: getattr(arguments, field.name) for field in dataclasses.fields(Request)}
    request = Request(**settings)  # before the model is loaded: a wrong setting costs no wait
    places = {name: path for name in _SAVED if (path := getattr(arguments, name))}
    for name, path in places.items():
        _check_place(name, path)
    model = load(arguments.model, _device(arguments.device))
    print(summary(model, request), file=sys.stderr)
    run = _print_text(model.stream(**settings), model)
    _print_search(run)
    for name, path in places.items():
        _save(run, name, path)


def summary(model: Model, request: Request) -> str:
    """One line: the model, its shape, the settings and the seed."""
    config = model.config
    sampling = request.sampling
    drawn = "greedy"
    if request.beams > 1:
        drawn = f"{request.beams} beams, length penalty {request.length_penalty:g}"
    if sampling is not None:
        given = dataclasses.asdict(sampling).items()
        drawn = ", ".join(f"{name} {value:g}" for name, value in given if value is not None)
    return (
        f"{model.name}: {config.family}, {config.n_layers} layers x {config.n_heads} heads x "
        f"{config.d_model}, {model.n_parameters / 1e6:.1f} M parameters, reads {config.max_len} "
        f"tokens, on {model.device}; {drawn}; at most {request.max_new_tokens} new tokens; "
        f"seed {request.seed}"
    )


def _print_text(stream: Stream, model: Model) -> Run:
    """Print as it comes. A character of which only some bytes exist yet waits for the rest."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    print(_for_terminal(stream.text), end="", flush=True)
    for step in stream:
        text = decoder.decode(model.tokenizer.to_bytes([step.token]))
        print(_for_terminal(text), end="", flush=True)
    print(flush=True)
    return stream.run()


def _print_search(run: Run) -> None:
    """The n-best list of a beam search, best first."""
    if run.search is None:
        return
    print("score/length^penalty   sum of log-probabilities   text", file=sys.stderr)
    for hypothesis, text in zip(run.search.hypotheses, run.search.texts, strict=True):
        numbers = f"{hypothesis.normalised:10.4f} {hypothesis.score:24.4f}"
        print(f"{numbers}               {_for_terminal(text)}", file=sys.stderr)


def _for_terminal(text: str) -> str:
    """On a terminal, control characters are written out: a model may write any byte."""
    if not sys.stdout.isatty():
        return text
    return "".join(
        f"‹U+{ord(character):04X}›"
        if unicodedata.category(character) == "Cc" and character not in "\n\t"
        else character
        for character in text
    )


def _save(run: Run, name: str, path: Path) -> None:
    _, write = _SAVED[name]
    try:
        write(run, path)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from error
    print(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)", file=sys.stderr)


def _check_place(name: str, path: Path) -> None:
    """Raise ValueError if a file cannot be there, before anything is generated."""
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder; --{name} needs a file")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"cannot write {path}: permission denied")


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    n_gpus = torch.cuda.device_count()
    allowed = ["auto", "cpu", *(["cuda"] if n_gpus else []), *(f"cuda:{n}" for n in range(n_gpus))]
    if device is None or name not in allowed:
        raise ValueError(f"device must be one of {allowed}; got {name!r}")
    return device


def _fail(sentence: str) -> int:
    print(f"python -m transformer: {sentence}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
