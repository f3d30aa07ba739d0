"""Reject tokenizer files that make a short text slow to encode or huge."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from tokenizers import Tokenizer as BPETokenizer

from transformer.checks import shortened

MOST_GROWTH = 1_000  # of the length of a text
MOST_COPIES = 8  # of a text in its template
MOST_PARTS = 500  # steps, template pieces and ids, all applied to every text
_STEPS = ("normalizer", "pre_tokenizer", "post_processor")
_LENGTHS = (24, 48, 96)  # where exponential backtracking reaches the library's limit
_MOST_UNITS = 32


def check_cost(bpe: BPETokenizer, content: dict[str, Any]) -> None:
    """Raise ValueError for a tokenizer with too many steps, that makes a text too long, or that
    backtracks exponentially. content: tokenizer.json as parsed JSON."""
    steps = [content[step] for step in _STEPS]
    n_parts = json.dumps(steps).count(",")
    if n_parts > MOST_PARTS:
        raise ValueError(
            f"its steps have {n_parts:,} parts; allowed: at most {MOST_PARTS:,}",
        )
    growth = math.prod(map(_growth, steps))
    if growth > MOST_GROWTH or _growth(content["post_processor"]) > MOST_COPIES:
        raise ValueError(
            f"it may make a text {growth:,.0f} times as long; allowed: at most {MOST_GROWTH:,} "
            f"times, and {MOST_COPIES} copies in a template"
        )
    for text in _probes(steps):
        try:
            bpe.encode(text)
        except (KeyboardInterrupt, SystemExit):
            raise
        except Exception:  # an unknown character
            continue
        except BaseException as error:  # a panic: the library's limit on backtracking
            raise ValueError(
                f"its patterns backtrack without end, for example on {shortened(text)}; needed: "
                "patterns that take linear time"
            ) from error


def _growth(step: dict[str, Any] | None) -> float:
    """A rough upper bound of how many times longer a step may make a text."""
    if step is None:
        return 1.0
    for inner in ("normalizers", "pretokenizers", "processors"):
        if inner in step:
            return math.prod(map(_growth, step[inner]))
    kind = step["type"]
    if kind == "Replace":
        plain = step["pattern"].get("String")
        return max(1.0, len(step["content"]) / len(plain)) if plain else 1.0 + len(step["content"])
    if kind == "TemplateProcessing":
        return float(max(1, sum("Sequence" in piece for piece in step["single"])))
    return {"ByteLevel": 4.0, "Prepend": 1.0 + len(step.get("prepend", "")), "Metaspace": 2.0}.get(
        kind, 1.0
    )


def _probes(steps: list[Any]) -> Iterator[str]:
    """Repeated pieces of the patterns' source, the texts on which they backtrack most."""
    patterns = " ".join(_patterns(steps))
    if not patterns:
        return
    characters = re.findall(r"[^\\]", patterns)
    pieces = [*"aA0 \n.", *re.findall(r"\w+", patterns), *characters]
    # The library first checks that a text contains what a pattern must end with.
    ends = "".join(dict.fromkeys(characters))
    for unit in islice(dict.fromkeys(pieces), _MOST_UNITS):
        for length in _LENGTHS:
            for tail in ("", f"\x01{ends}", f"\n\x01{ends}"):
                yield unit[:16] * length + tail


def _patterns(value: Any) -> Iterator[str]:
    """All regular expressions in parsed JSON."""
    if isinstance(value, dict):
        if isinstance(pattern := value.get("Regex"), str):
            yield pattern
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _patterns(inner)
