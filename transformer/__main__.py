"""python -m transformer "Once upon a time": print what a model writes, and save what it did."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformer.analysis.logit_lens import with_lens
from transformer.checkpoint import bundled_names
from transformer.command_line import Parser, program
from transformer.inference.model import Model, load
from transformer.inference.stream import Stream
from transformer.runs.request import Request
from transformer.runs.run import Run

_HELP = {
    "max_new_tokens": "how many tokens to generate at most",
    "temperature": "divides the logits: below 1 sharper, above 1 flatter; 0 = the likeliest token",
    "top_k": "draw from the k likeliest tokens only",
    "top_p": "draw from the likeliest tokens that together reach this probability",
    "min_p": "draw from tokens at least this likely, as a share of the likeliest one's probability",
    "seed": "the same seed and settings give the same text",
    "beams": "hypotheses followed at once, for translators; more than one is a beam search",
    "length_penalty": "power of the length that a hypothesis' score is divided by",
    "repetition_penalty": "divides the logits of the text's tokens; above 1: less repetition",
    "stop": "texts that end the generation once it has written one of them",
    "source_language": "of a translator of many languages, such as eng_Latn: that of the text",
    "target_language": "and the one to translate into",
    "forced_tokens": "ids of tokens to take first, whatever the network says of them",
    "input_ids": "ids of tokens to read in place of the text",
    "token_type_ids": "of each of these the segment, for a network that has segments",
    "interventions": "what to alter in the network, as a JSON list of the API's values",
}
# Formats of a saved run: option -> (description, the function that writes it).
_SAVED: dict[str, tuple[str, Callable[[Run, Path], object]]] = {
    "html": ("one self-contained page, with its heatmaps", Run.to_html),
    "json": ("JSON, with every head's attention", lambda run, path: path.write_text(run.to_json())),
    "npz": ("NPZ, with every array of its trace", Run.to_npz),
}


def parser() -> Parser:
    """The command line; every setting of a Request is an option of the same name."""
    result = Parser(
        description="Continue a text, or translate it, with a small Transformer. Without "
        "temperature, top-k, top-p and min-p, or at temperature 0, the likeliest token is taken "
        "each time; with any of them tokens are drawn; with several beams the likeliest text is "
        "searched.",
    )
    result.add_argument("text", help="the beginning to go on from, or what to translate")
    for field in dataclasses.fields(Request)[1:]:  # all but the text
        result.add_argument("--" + field.name.replace("_", "-"), **_option(field))
    names = ", ".join(bundled_names()) or "none"
    more: dict[str, dict[str, Any]] = {
        "model": {"default": "stories", "metavar": "NAME",
                  "help": f"a bundled model ({names}) or a folder (default: %(default)s)"},
        "device": {"default": "auto",
                   "help": "auto, cpu, cuda or cuda:NUMBER (default: %(default)s: a GPU if any)"},
    }  # fmt: skip
    for name, (what, _) in _SAVED.items():
        words = f"also save the run as {what} (default: off)"
        more[name] = {"type": Path, "metavar": "FILE", "help": words}
    for name, settings in more.items():
        result.add_argument(f"--{name}", **settings)
    words = "the page of --html holds the network too, so that everything can be tried in it"
    result.add_argument("--with-network", action="store_true", help=words)
    return result


def _option(field: dataclasses.Field[Any]) -> dict[str, Any]:
    """The argparse options of a setting of a Request."""
    words, default = _HELP[field.name], "off" if field.default is None else field.default
    if field.name in ("forced_tokens", "input_ids", "token_type_ids"):
        return {"type": int, "nargs": "+", "default": (), "metavar": "ID", "help": words}
    if field.name == "stop":
        return {"nargs": "+", "default": (), "metavar": "TEXT", "help": words}
    if field.name.endswith("language"):
        return {"metavar": "NAME", "help": words}
    if field.name == "interventions":
        return {"type": _json, "default": (), "metavar": "JSON", "help": words}
    kind, metavar = (int, "N") if "int" in str(field.type) else (float, "X")
    words += f" (default: {default})"
    return {"type": kind, "default": field.default, "metavar": metavar, "help": words}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0; 2 for bad input, after one sentence on stderr; 130 if interrupted."""
    arguments = parser().parse_args(argv)
    try:
        _run(arguments)
    except ValueError as error:
        return _fail(str(error))
    except BrokenPipeError:  # the reader, such as `head`, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    return 0


def _run(arguments: argparse.Namespace) -> None:
    settings = {field.name: getattr(arguments, field.name) for field in dataclasses.fields(Request)}
    request = Request(**settings)  # before the model is loaded: a wrong setting costs no wait
    places = {name: path for name in _SAVED if (path := getattr(arguments, name))}
    if arguments.with_network and "html" not in places:
        raise ValueError("--with-network needs --html")
    for name, path in places.items():
        _check_place(name, path)
    model = load(arguments.model, arguments.device)
    print(summary(model, request), file=sys.stderr)
    _write(model, request, settings, places, model if arguments.with_network else None)


def _write(
    model: Model,
    request: Request,
    settings: dict[str, Any],
    places: dict[str, Path],
    in_page: Model | None,
) -> None:
    """Print the text and save its run; runs of separately read sentences are numbered. in_page: the
    model that a page holds too."""
    is_whole = request.forced_tokens or request.input_ids
    parts = [request.text] if is_whole else model.reader.sentences(request.text)
    for place, part in enumerate(parts, 1):
        end = "\n" if place == len(parts) else " "
        run = _print_text(model.stream(**settings | {"text": part}), model, end)
        _print_search(run)
        if places:
            run = with_lens(model, run)
        number = "" if len(parts) == 1 else f"-{place}"
        for name, path in places.items():
            _save(run, name, path.with_stem(f"{path.stem}{number}"), in_page)
    _print_reading(model, request.text, parts)


def summary(model: Model, request: Request) -> str:
    """One line: the model, its shape, the settings and the seed."""
    config = model.config
    sampling = request.sampling
    drawn = "greedy"
    if request.beams > 1:
        drawn = f"{request.beams} beams, length penalty {request.length_penalty:g}"
    if sampling is not None:
        settings = dataclasses.asdict(sampling).items()
        drawn = ", ".join(f"{name} {value:g}" for name, value in settings if value is not None)
    return (
        f"{model.name}: {config.family}, {config.n_layers} layers x {config.n_heads} heads x "
        f"{config.d_model}, {model.n_parameters / 1e6:.1f} M parameters, reads {config.max_len} "
        f"tokens, on {model.device}; {drawn}; at most {request.max_new_tokens} new tokens; "
        f"seed {request.seed}"
    )


def _print_text(stream: Stream, model: Model, end: str) -> Run:
    """Print as it comes, and then `end`. A character of which only some bytes exist yet waits."""
    print(_for_terminal(stream.text), end="", flush=True)
    for step in stream:
        print(_for_terminal(step.new_text), end="", flush=True)
    print(end=end, flush=True)
    return stream.run()


def _print_reading(model: Model, text: str, parts: Sequence[str]) -> None:
    """Notes on how the text was normalised, and on parts that the model never learned."""
    for sentence in model.warnings(text):
        print(sentence, file=sys.stderr)
    if len(parts) > 1:
        print(f"read as {len(parts)} sentences, each alone", file=sys.stderr)
    if (read := model.reader.read_as(text)) != text:
        print(f"read as: {_for_terminal(read)}", file=sys.stderr)


def _print_search(run: Run) -> None:
    """The n-best list of a beam search, best first."""
    if run.search is None:
        return
    print("score/length^penalty   sum of log-probabilities   text", file=sys.stderr)
    for hypothesis, text in zip(run.search.hypotheses, run.search.texts, strict=True):
        numbers = f"{hypothesis.normalised:10.4f} {hypothesis.score:24.4f}"
        print(f"{numbers}               {_for_terminal(text)}", file=sys.stderr)


def _for_terminal(text: str) -> str:
    """Escape control characters on a terminal: a model may write any byte."""
    if not sys.stdout.isatty():
        return text
    return "".join(
        f"‹U+{ord(character):04X}›"
        if unicodedata.category(character) == "Cc" and character not in "\n\t"
        else character
        for character in text
    )


def _save(run: Run, name: str, path: Path, in_page: Model | None) -> None:
    _, write = _SAVED[name]
    try:
        if name == "html":
            run.to_html(path, in_page)
        else:
            write(run, path)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from error
    print(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)", file=sys.stderr)


def _check_place(name: str, path: Path) -> None:
    """Raise ValueError if a file cannot be written, before anything is generated."""
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder; --{name} needs a file")
    if not (folder := path.parent).is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {folder}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"cannot write {path}: permission denied")


def _fail(sentence: str) -> int:
    print(f"{program()}: {sentence}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
