"""Train and evaluate.

python -m transformer.training RECIPE --data FOLDER --out checkpoints/NAME
python -m transformer.training evaluate CHECKPOINT --data FILE
python -m transformer.training memorised CHECKPOINT --data FILE
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from transformer.checks import check_number, check_whole, needs_package
from transformer.command_line import Parser, program
from transformer.inference.model import Model, load
from transformer.runs.request import MAX_BEAMS, MAX_LENGTH_PENALTY
from transformer.training.data import check_folder, known_documents, known_pairs, read_documents
from transformer.training.evaluate import (
    Score,
    TranslationScore,
    longest_shared_passage,
    sample_stories,
    score_documents,
    score_pairs,
    score_translations,
)
from transformer.training.mlm import score_hidden
from transformer.training.recipe import load_recipe, recipe_names, whole
from transformer.training.tasks import TASKS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 2 for a user's mistake, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    commands = {"evaluate": _evaluate, "memorised": _memorised}
    try:
        if words and words[0] in commands:
            commands[words[0]](words[1:])
        else:
            _train(words)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        print(f"\n{error}".rstrip(), file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        print(f"error: {needs_package(program(), str(error.name))}", file=sys.stderr)
        return 2
    return 0


def _train(arguments: list[str]) -> None:
    parser = Parser(
        description=(__doc__ or "").replace("python -m transformer.training", program()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("recipe", help=f"a .toml file or one of {recipe_names()}")
    parser.add_argument(
        "--data",
        required=True,
        help="a folder: train.txt and valid.txt of documents, or train.tsv and valid.tsv of "
        "sentence pairs; or hub:OWNER/NAME, for documents",
    )
    parser.add_argument("--out", required=True, type=Path, help="folder of the checkpoint")
    parser.add_argument("--steps", type=int, help="instead of the recipe's number")
    parser.add_argument(
        "--save-every", type=int, metavar="STEPS", help="write a checkpoint so often, instead of "
        "as the recipe says; Ctrl-C writes one too, and the same command goes on from the last",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="start", metavar="CHECKPOINT", help="begin with its weights and tokenizer"
    )
    parser.add_argument(
        "--checkpoints", type=int, default=0, metavar="N",
        help="also keep N checkpoints on the way, ever farther apart, in OUT/training/checkpoints",
    )  # fmt: skip
    parser.add_argument("--cpu", action="store_true", help="even where there is a GPU")
    options = parser.parse_args(arguments)
    from transformer.training.loop import train  # needs packages that the other commands do without
    from transformer.training.state import is_first_process, keep_freed_memory

    whole(0).check("--checkpoints", options.checkpoints)
    check_folder("--out", options.out)
    changes = {"steps": options.steps, "save_every": options.save_every}
    recipe = load_recipe(options.recipe, **{k: v for k, v in changes.items() if v is not None})
    keep_freed_memory()
    first = is_first_process()
    if first:
        print(f"{recipe.name}: seed {recipe.settings.seed}, {recipe.model}, {recipe.settings}")
    task = TASKS[recipe.task](recipe, options.data)
    start = load(options.start) if options.start else None
    train(
        recipe, task, options.out, cpu=options.cpu, start=start, n_checkpoints=options.checkpoints
    )
    if first:
        held_out = zip(("--data", "--target"), map(str, task.held_out), strict=False)
        scored = shlex.join(["evaluate", str(options.out), *chain.from_iterable(held_out)])
        how = f"; score it: {program()} {scored}" if task.held_out else ""
        print(f"wrote {options.out}{how}")


def _evaluate(arguments: list[str]) -> None:
    options = _evaluate_parser().parse_args(arguments)
    check_whole("--beams", options.beams, 1, MAX_BEAMS)
    check_number("--length-penalty", options.length_penalty, 0, MAX_LENGTH_PENALTY)
    model = load(options.checkpoint, options.device)
    _check_family(model, options)
    if model.config.family == "encoder":
        _evaluate_hidden(model, options)
        return
    if model.config.family != "encoder-decoder":
        documents = known_documents(model.tokenizer, options.data)
        _print_score(model.name, options.data, score_documents(model, documents))
        return
    language = (options.language or _target_language(model)) if options.tokenised else None
    files = [options.data, *([options.target] if options.target else [])]
    pairs = known_pairs(model.tokenizer, files)
    _print_score(model.name, options.data, score_pairs(model, pairs))
    for beams in dict.fromkeys((1, options.beams)):
        penalty = options.length_penalty
        print("greedy:" if beams == 1 else f"beam {beams}, length penalty {penalty:g}:", end=" ")
        score = score_translations(
            model,
            pairs,
            beams=beams,
            length_penalty=penalty,
            lowercase=options.lowercase,
            language=language,
        )
        _print_translations(score)


def _check_family(model: Model, options: argparse.Namespace) -> None:
    """Raise ValueError for an option that the model's family does not have."""
    translator = ("target", "tokenised", "language", "lowercase")
    for family, names in (("encoder-decoder", translator), ("encoder", ("beside",))):
        for name in names if model.config.family != family else ():
            if getattr(options, name):
                raise ValueError(
                    f"--{name} is for an {family}; {model.name} is {model.config.family}"
                )


def _evaluate_hidden(model: Model, options: argparse.Namespace) -> None:
    documents, max_len = known_documents(model.tokenizer, options.data), model.config.max_len
    beside = [load(options.beside, options.device)] if options.beside else []
    for number, each in enumerate((model, *beside)):
        score = score_hidden(each, model.tokenizer, documents, max_len)
        if not number:
            print(
                f"{model.name} on {options.data.name}: {score.documents:,} documents, "
                f"{score.tokens:,} masked tokens, {score.seconds:.1f} s"
            )
        sides = "both sides" if each.config.family == "encoder" else "the left alone"
        print(
            f"{each.name}, from {sides}: {score.top_1:.2%} found, "
            f"{score.loss:.4f} nats a masked token"
        )


def _evaluate_parser() -> Parser:
    parser = Parser(
        prog=f"{program()} evaluate",
        description="For a language model: loss per token, perplexity and bits per byte, each "
        "document alone. For a translator: the loss, then greedy and with beams: BLEU and chrF of "
        "the text as it stands (sacreBLEU, 13a), and how long translations are beside references. "
        "For an encoder alone: how many of 15 % of the tokens, masked by whole words, it finds.",
    )
    _add_checkpoint(parser)
    parser.add_argument(
        "--beside", help="a decoder alone that is asked for the same tokens from their left sides"
    )
    parser.add_argument("--target", type=Path, help="translations, if --data holds sources only")
    parser.add_argument("--beams", type=int, default=4, help="default 4; 1 for greedy alone")
    parser.add_argument("--length-penalty", type=float, default=1.0, help="of a beam; default 1")
    parser.add_argument("--lowercase", action="store_true", help="compare without case")
    parser.add_argument(
        "--tokenised",
        action="store_true",
        help="also the BLEU of papers on Multi30k: both sides lower-cased, punctuation-normalised "
        "and tokenised by Moses rules. It is not comparable with the other",
    )
    parser.add_argument(
        "--language",
        help="whose Moses rules, such as fr; default: the target that the model's recipe names",
    )
    return parser


def _target_language(model: Model) -> str:
    """The recipe's data on a checkpoint. Raises ValueError if it has none."""
    recipe = (model.metadata or {}).get("recipe")
    data = recipe.get("data") if isinstance(recipe, dict) else None
    target = data.get("target") if isinstance(data, dict) else None
    if not isinstance(target, str):
        raise ValueError(
            f"--tokenised must know the language of the translations; the recipe of {model.name} "
            "names none; give --language, such as --language fr"
        )
    return target


def _print_translations(score: TranslationScore) -> None:
    print(f"{score.sentences:,} sentences in {score.seconds:.1f} s")
    print(f"  BLEU {score.bleu:.2f}   {score.bleu_signature}")
    print(f"  chrF {score.chrf:.2f}   {score.chrf_signature}")
    if score.tokenised_bleu is not None:
        print(f"  tokenised BLEU {score.tokenised_bleu:.2f}   {score.tokenised_signature}")
    print(f"  length {score.length_ratio:.3f} of the references' tokens")


def _print_score(name: str, data: Path, score: Score) -> None:
    print(
        f"{name} on {data.name}: {score.documents:,} documents, {score.bytes:,} bytes, "
        f"{score.tokens:,} tokens, {score.seconds:.1f} s"
    )
    print(f"loss            {score.loss:.4f} nats per token")
    print(f"perplexity      {score.perplexity:.4f}")
    print(f"bits per byte   {score.bits_per_byte:.4f}")


def _memorised(arguments: list[str]) -> None:
    parser = Parser(
        prog=f"{program()} memorised",
        description="The longest passage that sampled texts share with the training text.",
    )
    _add_checkpoint(parser)
    parser.add_argument("--samples", type=int, default=100, help="how many texts (default 100)")
    options = parser.parse_args(arguments)
    whole(1).check("--samples", options.samples)
    model = load(options.checkpoint, options.device)
    documents = read_documents(options.data)  # a bad file is reported before anything is sampled
    stories = sample_stories(model, options.samples)
    length, passage = longest_shared_passage(stories, documents)
    print(f"{options.samples} samples; longest shared passage: {length} words")
    print(f"  {passage!r}")


def _add_checkpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", help="a bundled name or a folder")
    parser.add_argument("--data", required=True, type=Path, help="a text file")
    parser.add_argument("--device", default="cpu", help="default cpu")


if __name__ == "__main__":
    sys.exit(main())
