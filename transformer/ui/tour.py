"""The tour: cards that each show a state of the page and say a few words about it.

They are data, in tour.toml; whoever writes other cards needs no code.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from transformer.model.config import ModelConfig
from transformer.model.sites import Site

FILE = Path(__file__).parent / "tour.toml"
REQUEST = ("text", "method", "length")  # of an opening, what the boxes and settings hold
WORDS = ("title", "says", "look", "presses")


@cache
def read() -> dict[str, Any]:
    """The file: {"card": every card, "opens": by model}."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def cards(models: Iterable[str]) -> list[dict[str, Any]]:
    """The cards about these models as the page's script takes them: their words, and their state as
    a link has it, {field: text}."""
    offered = set(models)
    return [
        {word: card[word] for word in WORDS if word in card} | {"state": as_link(card["state"])}
        for card in read()["card"]
        if card["state"]["model"] in offered
    ]


def as_link(state: Mapping[str, Any]) -> dict[str, str]:
    """A card's state as a link writes it: every value a text."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        for name, value in state.items()
    }


def opening_of(name: str, config: ModelConfig) -> dict[str, Any]:
    """What a model's own example is, and how the page first shows it and other runs of the model.

    For one that the file does not name a translator's cross-attention, whatever is first of others.
    """
    usual = {"site": "decoder.0.cross"} if config.family == "encoder-decoder" else {}
    return dict(read()["opens"].get(name, usual))


def shown_first(name: str, config: ModelConfig, *, example: bool = False) -> dict[str, str]:
    """Of that what says how a run is shown, as a link has it; example: its own example, of whose
    tokens one is chosen."""
    elsewhere = (*REQUEST, *(() if example else ("read",)))
    return as_link({k: v for k, v in opening_of(name, config).items() if k not in elsewhere})


def first_head(run: Mapping[str, Any]) -> tuple[Site, int]:
    """The place and head that the page first shows of a run; run: its facts."""
    opening = run["opening"]
    if "site" in opening:
        return Site.parse(opening["site"]), int(opening.get("head", 0))
    kind = run["kinds"][0]
    return Site(kind["stack"], 0, kind["kind"]), 0
