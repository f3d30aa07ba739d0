"""python -m transformer.analysis.corpus MODEL --data FILE --out FOLDER: a dossier of each head, or
with --neurons the sentence at which each neuron fires most."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from transformer.analysis.corpus import over_texts
from transformer.analysis.corpus.dossier import clusters, dossiers
from transformer.analysis.corpus.neurons import over_sentences, recorded
from transformer.analysis.corpus.with_ray import LOCAL
from transformer.analysis.head_measures import ALL
from transformer.checks import shortened
from transformer.command_line import Parser
from transformer.inference.model import load
from transformer.inference.progress import progress_bar
from transformer.training.data import HUB, check_folder, hub_texts, texts_of


def parser() -> Parser:
    """The command line."""
    result = Parser(description=__doc__)
    result.add_argument("model", help="a bundled name, a folder, or hub:OWNER/NAME")
    result.add_argument(
        "--data", type=texts_from, required=True, metavar="FILE|hub:OWNER/NAME",
        help="texts, one a line; or several lines each, parted by a line <|endoftext|>; "
        "or a dataset of the hub, whose column text is streamed",
    )  # fmt: skip
    result.add_argument("--out", type=Path, required=True, help="a folder for what is found")
    result.add_argument("--texts", type=_count, help="how many of the first texts; default all")
    result.add_argument("--workers", type=_count, default=1, help="processes; default 1")
    result.add_argument(
        "--ray", nargs="?", const=LOCAL, metavar="ADDRESS",
        help="the workers are those of a Ray cluster: of this one, or of this machine for this run",
    )  # fmt: skip
    result.add_argument(
        "--ablate", "--silence", type=_number, default=0, dest="ablate", metavar="N",
        help="ablate each head in the first N texts, and measure the loss; default 0",
    )  # fmt: skip
    result.add_argument(
        "--neurons", action="store_true",
        help="record instead of the heads the sentence at which each neuron of the feed-forwards "
        "fires most; in one process",
    )  # fmt: skip
    return result


def texts_from(data: str) -> Callable[[], Iterator[str]]:
    """A function that opens the texts of a file, or of a dataset "hub:OWNER/NAME"."""
    if data.startswith(HUB):
        name = data.removeprefix(HUB)
        return partial(hub_texts, name, "train", instead="a file of texts")
    return partial(texts_of, Path(data))


def _count(text: str, least: int = 1) -> int:
    if not text.strip().isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from {least}; got {shortened(text)}"
        )
    return int(text)


def _number(text: str) -> int:
    return _count(text, least=0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write OUT/heads.json; the parts of an interrupted run are in OUT/parts. With --neurons write
    OUT/neurons.json; OUT/neurons.npz holds an interrupted run."""
    asked = parser().parse_args(arguments)
    if asked.neurons:
        return of_neurons(asked)
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        done += more

    try:
        check_folder("--out", asked.out)
        summary = over_texts(
            asked.model, asked.data, asked.out / "parts", n_texts=asked.texts,
            n_ablated=asked.ablate, workers=asked.workers, ray=asked.ray, told=tell,
        )  # fmt: skip
        if not done:
            raise ValueError(f"{asked.data.args[0]} is empty; needed: texts, one a line")
        if not summary.n_texts:
            raise ValueError(f"none of the {done} texts can be read whole by {asked.model}")
        heads = dossiers(summary)
        texts = named_texts(heads, asked.data())
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    content = {
        "model": asked.model, "n_texts": summary.n_texts, "n_tokens": summary.n_tokens,
        "n_left_out": summary.n_left_out, "heads": heads,
        "texts": texts,
    }  # fmt: skip
    for line in (*strongest_of(heads), *alike_of(heads)):
        print(line)
    print(written(asked.out / "heads.json", content))


def of_neurons(asked: argparse.Namespace) -> None:
    """Write OUT/neurons.json."""

    def texts() -> Iterator[str]:
        return islice(asked.data(), asked.texts)

    try:
        if asked.workers > 1 or asked.ray or asked.ablate:
            raise ValueError("--neurons takes no --workers, --ray or --ablate")
        check_folder("--out", asked.out)
        model = load(asked.model)
        with progress_bar(asked.model, None, True, unit="sentence") as bar:
            peaks = over_sentences(model, texts, asked.out, told=bar.update)
        if not peaks.n_read:
            raise ValueError(f"{asked.data.args[0]} has no sentence that fits a line")
        content = recorded(model, peaks, texts())
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    print(written(asked.out / "neurons.json", content))


def written(path: Path, content: dict[str, Any]) -> Path:
    """The path of a JSON file with this content."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


def named_texts(heads: Sequence[dict[str, Any]], texts: Iterator[str]) -> dict[int, str]:
    """The texts that dossiers name, by their places."""
    named = {text for head in heads for text in _texts(head)}
    first = enumerate(islice(texts, max(named, default=-1) + 1))
    return {index: text for index, text in first if index in named}


def _texts(head: dict[str, Any]) -> set[int]:
    """The texts that a dossier names."""
    return {
        text
        for metric in head["metrics"].values()
        for text in [metric["typical"], *(text for _, text in metric["strongest"])]
    }


def strongest_of(heads: Sequence[dict[str, Any]]) -> list[str]:
    """For each kind of attention and metric the head with the largest mean, as a line."""
    lines = []
    for kind in dict.fromkeys(head["kind"] for head in heads):
        for name in ALL:
            own = [head for head in heads if head["kind"] == kind and name in head["metrics"]]
            if own:
                best = max(own, key=lambda head: head["metrics"][name]["mean"])
                metric = best["metrics"][name]
                where = f"{kind} {best['layer']}·{best['head']}"
                lines.append(f"{name:10} {where:18} {metric['mean']:8.3f} over {metric['n']} texts")
    return lines


def alike_of(heads: Sequence[dict[str, Any]]) -> list[str]:
    """For each kind of attention the clusters of more than one head, as lines."""
    lines = []
    for kind in dict.fromkeys(head["kind"] for head in heads):
        for cluster in clusters([head for head in heads if head["kind"] == kind]):
            if len(cluster.heads) > 1:
                members = " ".join(f"{layer}·{head}" for layer, head in cluster.heads)
                more = ", ".join(cluster.traits) or "nothing"
                lines.append(f"alike      {kind:18} {members}: more {more}")
    return lines


if __name__ == "__main__":
    main()
