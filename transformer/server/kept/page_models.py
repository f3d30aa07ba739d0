"""What the page says and offers of a model: its example, the first contents of the controls, its
size, card and configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt

from transformer.checks import is_whole
from transformer.inference.engines.compiled import NETWORK
from transformer.inference.model import Model
from transformer.learning.exercises import EXERCISES, held_out, prompt_of
from transformer.messages import language, mark, numeral, say, say_n
from transformer.model.heads import HEADS
from transformer.network_words import depth_in_words
from transformer.server.fields import (
    BEAM,
    GREEDY,
    LANGUAGES,
    METHODS,
    NUMBERS,
    READ_AS,
    SAMPLE,
    TEXT,
    opening_of,
)
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
    text="She is eating a red apple in the kitchen.",
    suggestions=(
        "She is eating a red apple in the kitchen.",
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
_UNPREDICTED = dataclasses.replace(
    _READING,
    label=mark("Text to read (Enter)"),
    text="Tom gave the ball to Mia because she was sad.",
    suggestions=(
        "Tom gave the ball to Mia because she was sad.",
        "The movie was long, but I liked it.",
        "The fox ran up the hill.",
    ),
    batch=("The fox ran.", "Lily went to the park with her mom.", "It was a sunny day."),
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
    predicts = HEADS[model.config.head].predicts
    example = EXAMPLES[model.config.family] if predicts else _UNPREDICTED
    opening = opening_of(model.name, model.config)
    if "text" in opening:  # it ends where something is decided: *Write on* goes on from there
        others = (method for method in example.methods if method != opening["method"])
        example = dataclasses.replace(
            example, text=opening["text"], methods=(opening["method"], *others),
            settings={"max_new_tokens": opening["max_new_tokens"]}, only_read=True,
        )  # fmt: skip
    is_translator = predicts and model.config.family == "encoder-decoder"
    if is_translator and (names := model.tokenizer.languages):
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
    """Questions that a network was not trained on, if it has learned an exercise."""
    exercise, family = EXERCISES[(model.metadata or {})["exercise"]], model.config.family
    questions = [exercise.example, *(question for question, _ in held_out(exercise, 3))]
    texts = tuple(prompt_of(exercise, family, question) for question in questions)
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
    numbers = {name: number.first for name, number in NUMBERS.items()}
    if method == GREEDY:
        numbers["temperature"] = 0
    return {
        "model": model.name, "text": example.text, "lines": "\n".join(example.batch),
        "method": method, **numbers, "max_new_tokens": example.settings["max_new_tokens"],
        **{name: example.settings.get(name) for name in LANGUAGES},
        "read_as": TEXT if _chats(model) else None,
    }  # fmt: skip


def _chats(model: Model) -> bool:
    return model.config.generates and model.tokenizer.chat_template is not None


def controls_of(model: Model, names: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What Gradio's controls say about a model, by the control's name. names: of the list of
    models, (words, name) each."""
    example = example_of(model)

    def updated(**properties: Any) -> dict[str, Any]:
        return {"__type__": "update", **properties}  # as Gradio's page reads it

    languages = updated(choices=[(name, name) for name in example.languages])
    return {
        **{f"chip {n}": updated(value=text) for n, text in enumerate(example.suggestions)},
        "model": updated(choices=names, value=model.name),
        "method": updated(choices=[(say(METHODS[name]), name) for name in example.methods]),
        **dict.fromkeys(LANGUAGES, languages),
        "read_as": updated(choices=read_as_choices() if _chats(model) else []),
        "headline": updated(value=html_of(headline(model))),
        "card": updated(value=html_of(model_card(model))),
        "table": updated(value=html_of(settings_table(model))),
        "text": updated(label=say(example.label)),
        "start": updated(value=say(example.action)),
    }


def read_as_choices() -> list[tuple[str, str]]:
    """(words, value) of what the text is read as."""
    return [(say(words), name) for name, words in READ_AS.items()]


def is_offered(text: str, models: Iterable[Model]) -> bool:
    """Whether a text (or a batch, one text per line) is an example's, which may be replaced.

    Raises ValueError for anything but a text.
    """
    if not isinstance(text, str):
        raise ValueError(f"the text must be a string; got {type(text).__name__}")
    return not text.strip() or any(text in texts for texts in offered_texts(models))


def offered_texts(models: Iterable[Model]) -> tuple[set[str], set[str]]:
    """The texts of these models' examples, and their batches, one text per line."""
    examples = [example_of(model) for model in models]
    texts = {text for example in examples for text in (example.text, *example.suggestions)}
    return texts, {"\n".join(example.batch) for example in examples}


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


def headline(model: Model) -> str:
    """Where the model runs, its size and, if it learned an exercise, how well it did."""
    config, count = model.config, model.n_parameters
    device = "CPU" if model.device.type == "cpu" else model.device.type.upper()
    layers = depth_in_words(config.n_layers, config.output_n_layers)
    heads = say_n("{n} head", "{n} heads", config.n_heads)
    millions = say("{n} M parameters", n=numeral(count / 1e6, ".1f"))
    size = millions if count >= 1e6 else say_n("{n} parameter", "{n} parameters", count)
    parts = [device, size, f"{layers} × {heads}"]
    right = (model.metadata or {}).get("accuracy")
    if isinstance(right, float):
        parts.append(say("{percent} of unseen questions right", percent=numeral(right, ".0%")))
    return " · ".join(parts)


def model_facts(model: Model) -> dict[str, Any]:
    """A model as plain values."""
    return {
        "name": model.name,
        "device": str(model.device),
        "engine": model.engine.name if model.engine else NETWORK,
        "n_parameters": model.n_parameters,
        "languages": list(model.tokenizer.languages),
        **model.config.to_dict(),
    }


def model_card(model: Model) -> str:
    """The model card as Markdown, in the visitor's language if it has been written in it, without
    the metadata that may precede it between two lines of three dashes; a sentence for a model
    without a card."""
    card = model.cards.get(language(), model.card)
    if card.startswith("---\n"):
        card = card[4:].partition("\n---\n")[2].lstrip("\n")
    return card or say("{name} has no model card.", name=model.name)


def settings_table(model: Model) -> str:
    """Markdown: every configuration value."""

    def cell(value: Any) -> str:
        return numeral(value) if is_whole(value) else "–" if value is None else str(value)

    rows = "\n".join(f"| `{name}` | {cell(fact)} |" for name, fact in model_facts(model).items())
    return f"| {say('setting')} | {say('value')} |\n| --- | --- |\n{rows}"


def html_of(markdown: str) -> str:
    """An element in which the only markup in the text is Markdown's; its links open another tab."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    for inner in (inner for token in tokens for inner in token.children or ()):
        if inner.type == "link_open":
            inner.attrs |= {"target": "_blank", "rel": "noopener noreferrer"}
    return f'<div class="prose">{parser.renderer.render(tokens, parser.options, {})}</div>'
