"""The page's first contents for each family of models; and the tour:
cards that each show a state of the page and say a few words about it.

The cards are data, in tour.toml: other cards need no code.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from transformer.inference.model import Model
from transformer.learning.exercises import EXERCISES, held_out, prompt_of
from transformer.messages import mark
from transformer.model.config import ModelConfig
from transformer.model.sites import Site
from transformer.server.fields import BEAM, GREEDY, LANGUAGES, NUMBERS, REQUEST, SAMPLE
from transformer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """Words on the controls, and a run and a batch that are stored when the server starts.

    settings: of that run, and the controls' first values. only_read: the text is read and nothing
    generated. methods: ways to generate that the family can use; the first is preselected.
    languages: those of a translator of several.
    """

    label: str
    action: str
    text: str
    suggestions: tuple[str, ...]
    batch: tuple[str, ...]
    settings: dict[str, Any]
    methods: tuple[str, ...]
    only_read: bool = False
    languages: tuple[str, ...] = ()


_STORY = Example(
    label=mark("Beginning of a text (Enter continues it)"),
    action=mark("Write on"),
    text="Once upon a time",
    suggestions=("Once upon a time", "One day", "Lily loved the dog because it"),
    batch=("The fox ran.", "Lily went to the park with her mom.", "It was a sunny day."),
    settings={"max_new_tokens": 40, "temperature": 0.7, "top_k": 40, "seed": 3},
    methods=(SAMPLE, GREEDY),
)
_TRANSLATION = Example(
    label=mark("Sentence to translate (Enter translates it)"),
    action=mark("Translate"),
    text="The black cat is sleeping on the bed.",
    suggestions=(
        "The black cat is sleeping on the bed.",
        "I gave the book to the boys.",
        "Where is the train station?",
    ),
    batch=("I am tired.", "She bought a new car yesterday.", "Do you speak French?"),
    settings={"max_new_tokens": 64, "beams": 4},
    methods=(BEAM, GREEDY, SAMPLE),
)
_READING = Example(
    label=mark("Text to read; [MASK] hides a word (Enter)"),
    action=mark("Read"),
    text="Lily was sad because she lost her [MASK], but then she found it under the bed.",
    suggestions=(
        "Lily was sad because she lost her [MASK], but then she found it under the bed.",
        "The [MASK] ran up the hill.",
        "Tom gave the [MASK] to Mia because she was hungry.",
    ),
    batch=("The fox [MASK].", "Lily went to the [MASK] with her mom.", "It was a [MASK] day."),
    settings=_STORY.settings,
    methods=(GREEDY,),
    only_read=True,
)
QUESTION = mark("Question (Enter asks the network)")
ANSWER = mark("Answer")
EXAMPLES = {"decoder": _STORY, "encoder-decoder": _TRANSLATION, "encoder": _READING}


def example_of(model: Model) -> Example:
    """The example of a model: its texts are cut where the model cannot read all of them at once.

    One that learned an exercise is asked that. Raises ValueError for a model that reads not even a
    character.
    """
    if (model.metadata or {}).get("exercise") in EXERCISES:
        return _questions(model)
    example = EXAMPLES[model.config.family]
    opening = opening_of(model.name, model.config)
    if "text" in opening:  # it ends where something is decided: *Write on* goes on from there
        others = (one for one in example.methods if one != opening["method"])
        example = dataclasses.replace(
            example, text=opening["text"], methods=(opening["method"], *others),
            settings={"max_new_tokens": opening["length"]}, only_read=True,
        )  # fmt: skip
    if model.config.family == "encoder-decoder" and (names := model.tokenizer.languages):
        settings = example.settings | _first_languages(model.tokenizer)
        example = dataclasses.replace(example, languages=tuple(names), settings=settings)
    return dataclasses.replace(
        example,
        text=_fitting(model, example.text),
        suggestions=tuple(_fitting(model, text) for text in example.suggestions),
        batch=tuple(_fitting(model, text) for text in example.batch),
    )


def _first_languages(tokenizer: Tokenizer) -> dict[str, str]:
    """The languages that a translator's files choose; French where they choose no target, since
    the examples are English."""
    names = tokenizer.languages
    french = next((name for name in names if name.strip("_").startswith("fr")), next(iter(names)))

    def chosen(ids: Sequence[int]) -> str:
        return next((name for name, index in names.items() if index in ids), french)

    sides = tokenizer.source([]), tokenizer.target_start
    return dict(zip(LANGUAGES, map(chosen, sides), strict=True))


def _questions(model: Model) -> Example:
    """Of a network that has learned an exercise: questions that it was not trained on."""
    exercise, family = EXERCISES[(model.metadata or {})["exercise"]], model.config.family
    asked = [exercise.example, *(question for question, _ in held_out(exercise, 3))]
    texts = tuple(prompt_of(exercise, family, question) for question in asked)
    return dataclasses.replace(
        EXAMPLES[family],
        label=QUESTION,
        action=ANSWER if family != "encoder" else EXAMPLES[family].action,
        text=texts[0],
        suggestions=texts[:3],
        batch=texts[1:],
        settings={"max_new_tokens": exercise.longest // 2 + 2},
        methods=(GREEDY, SAMPLE) if family != "encoder" else (GREEDY,),
    )


def first_controls(model: Model) -> dict[str, Any]:
    """The first contents of the page's boxes and settings, by name."""
    example = example_of(model)
    method = example.methods[0]
    numbers = {name: one.first for name, one in NUMBERS.items()}
    if method == GREEDY:
        numbers["temperature"] = 0
    return {
        "model": model.name, "text": example.text, "lines": "\n".join(example.batch),
        "method": method, **numbers, "length": example.settings["max_new_tokens"],
        **{name: example.settings.get(name) for name in LANGUAGES},
    }  # fmt: skip


def is_offered(text: str, models: Iterable[Model]) -> bool:
    """Whether a text (or a batch, one a line) is an example's, which may be replaced.

    Raises ValueError for what is no text.
    """
    if not isinstance(text, str):
        raise ValueError(f"the text must be a string; got {type(text).__name__}")
    examples = [example_of(model) for model in models]
    offered = {text for example in examples for text in (example.text, *example.suggestions)}
    batches = {"\n".join(example.batch) for example in examples}
    return not text.strip() or text in offered or text in batches


def _fitting(model: Model, text: str) -> str:
    """As much of a text's beginning as the model reads at once: whole words, if one fits, else
    characters of the first word. A model of characters reads those that it knows."""
    words = model.tokenizer.readable(text).split(" ")
    beginnings = [" ".join(words[:count]) for count in range(len(words), 0, -1)]
    beginnings += [words[0][:length] for length in range(len(words[0]) - 1, 0, -1)]
    for beginning in beginnings:
        with suppress(ValueError):
            read = model.prepare(beginning)
            if len(read.source or read.ids) <= model.config.max_len:
                return beginning
    raise ValueError(
        f"{model.name} reads too little at once for any text: max_len is {model.config.max_len}"
    )


# ---- the tour ----

TOUR = Path(__file__).parent / "tour.toml"


@cache
def read_tour() -> dict[str, Any]:
    """The file: {"card": every card, "opens": by model}."""
    return tomllib.loads(TOUR.read_text(encoding="utf-8"))


def cards(models: Iterable[str]) -> list[dict[str, Any]]:
    """The cards about these models."""
    offered = set(models)
    return [card for card in read_tour()["card"] if card["state"]["model"] in offered]


def opening_of(name: str, config: ModelConfig) -> dict[str, Any]:
    """A model's own example, and how the page first shows it and other runs of the model.

    For one that the file does not name a translator's cross-attention, whatever is first of others.
    """
    usual = {"site": "decoder.0.cross"} if config.family == "encoder-decoder" else {}
    return dict(read_tour()["opens"].get(name, usual))


def shown_first(name: str, config: ModelConfig, *, example: bool = False) -> dict[str, Any]:
    """The fields of `opening_of` that say how a run is shown. example: for the model's own example,
    with its chosen token."""
    elsewhere = (*REQUEST, *(() if example else ("read",)))
    return {k: v for k, v in opening_of(name, config).items() if k not in elsewhere}


def first_head(run: Mapping[str, Any]) -> tuple[Site, int]:
    """The place and head that the page first shows of a run; run: its facts."""
    opening = run["opening"]
    if "site" in opening:
        return Site.parse(opening["site"]), opening.get("head", 0)
    kind = run["kinds"][0]
    return Site(kind["stack"], 0, kind["kind"]), 0
