"""python -m transformer.analysis.corpus MODEL --data FILE --out FOLDER: a dossier of each head."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from transformer.analysis.corpus.dossier import dossiers
from transformer.analysis.corpus.parts import over_file, texts_of
from transformer.analysis.head_measures import ALL
from transformer.messages import say


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="python -m transformer.analysis.corpus", description=__doc__
    )
    result.add_argument("model", help="a bundled name, a folder, or hub:OWNER/NAME")
    result.add_argument(
        "--data", type=Path, required=True,
        help="texts, one a line; or several lines each, parted by a line <|endoftext|>",
    )  # fmt: skip
    result.add_argument("--out", type=Path, required=True, help="a folder for what is found")
    result.add_argument("--texts", type=_count, help="how many of the first texts; default all")
    result.add_argument("--workers", type=_count, default=1, help="processes; default 1")
    result.add_argument(
        "--silence", type=int, default=0, metavar="N",
        help="silence each head in the first N texts, and measure the loss; default 0",
    )  # fmt: skip
    return result


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(say("must be 1 or more; got {got}", got=text))
    return number


def main(arguments: Sequence[str] | None = None) -> None:
    """Write OUT/heads.json; the parts of an interrupted run are in OUT/parts."""
    asked = parser().parse_args(arguments)
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        print(f"\r{done} texts", end="", file=sys.stderr, flush=True)

    try:
        summary = over_file(
            asked.model, asked.data, asked.out / "parts", n_texts=asked.texts,
            n_silenced=asked.silence, workers=asked.workers, told=tell,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    print(file=sys.stderr)
    heads = dossiers(summary)
    named = {text for head in heads for text in _texts(head)}
    texts = enumerate(islice(texts_of(asked.data), asked.texts))
    content = {
        "model": asked.model, "n_texts": summary.n_texts, "n_tokens": summary.n_tokens,
        "n_left_out": summary.n_left_out, "heads": heads,
        "texts": {index: text for index, text in texts if index in named},
    }  # fmt: skip
    path = asked.out / "heads.json"
    path.write_text(
        json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8"
    )
    for line in strongest_of(heads):
        print(line)
    print(path)


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
                found = best["metrics"][name]
                where = f"{kind} {best['layer']}·{best['head']}"
                lines.append(f"{name:10} {where:18} {found['mean']:8.3f} over {found['n']} texts")
    return lines


if __name__ == "__main__":
    main()
