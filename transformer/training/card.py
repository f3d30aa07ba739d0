"""The model card: a checkpoint's origin, data, scores and limits."""

from __future__ import annotations

from typing import Any

from transformer.inference.model import Model
from transformer.model.config import ModelConfig
from transformer.plain_text import PLAIN_ENGLISH
from transformer.training.recipe import Recipe
from transformer.training.tasks import TASKS

Progress = dict[str, Any]  # step, tokens, seconds, sessions, ...: what a state file keeps


def begin_session(progress: Progress, steps: int, hardware: str, precision: str) -> None:
    """Record the hardware and the planned number of steps if they changed."""
    session = {"steps": steps, "hardware": hardware, "precision": precision}
    sessions: list[dict[str, Any]] = progress.setdefault("sessions", [])
    if not sessions or {**sessions[-1], "from_step": 0} != session | {"from_step": 0}:
        sessions.append({"from_step": progress["step"], **session})


def metadata_of(
    recipe: Recipe, config: ModelConfig, progress: Progress, counts: dict[str, Any]
) -> dict[str, Any]:
    """A checkpoint's metadata, without its scores. counts: `Task.counts`."""
    values = recipe.to_dict()
    phase = {
        "recipe": recipe.name,
        "settings": values["settings"],
        "dropout": config.dropout,
        "steps": progress["step"],
        "tokens": progress["tokens"],
        "seconds": round(progress["seconds"]),
        "sessions": progress["sessions"],
        "data": counts,
    }
    return {
        "recipe": values,
        "source_text": recipe.data.get("source_text"),
        "seconds": phase["seconds"],
        "tokens": phase["tokens"],
        "hardware": progress["sessions"][-1]["hardware"],
        "phases": [*progress["before"], phase],
        "validation": progress.get("validation"),
    }


def phases_of(model: Model | None) -> list[dict[str, Any]]:
    """The earlier training phases of a start model; for an older checkpoint, its name alone."""
    if model is None:
        return []
    phases: list[dict[str, Any]] = (model.metadata or {}).get("phases", [])
    return phases or [{"checkpoint": model.name}]


def is_whole(metadata: dict[str, Any]) -> bool:
    """Whether its last phase is complete."""
    last = metadata["phases"][-1]
    return bool(last["steps"] == last["settings"]["steps"])


OPTIMIZER_NAMES = {"adamw": "AdamW", "muon": "Muon with Adam for embeddings, norms and biases"}
_BITS = {
    "bits per byte": ("bits_per_byte", ".4f"),
    "perplexity": ("perplexity", ".3f"),
    "nats per token": ("loss", ".4f"),
}
# What the table of scores says first, and its columns: the score's name, and how it is written.
_TABLES = {
    "language-model": (
        "Each document alone, from the end-of-text token, in windows that keep at least half of "
        "the context; the end token counts.",
        _BITS,
    ),
    "translation": (
        "The loss of the reference translations, token by token, the end token counted; for BLEU "
        "and chrF: `python -m transformer.training evaluate`.",
        _BITS,
    ),
    "fill-in": (
        "Whole words are masked until they hold 15 % of a document's tokens; top 1 is the share of "
        "the masked tokens whose likeliest candidate is the one that stood there.",
        {
            "top 1": ("top_1", ".2%"),
            "nats per masked token": ("loss", ".4f"),
            "masked tokens": ("places", ",d"),
        },
    ),
}
_PLAIN_INPUT = (
    "One English sentence at a time in plain characters, as its training text was. What is typed "
    "is made so first: quotes, dashes and white space become plain ones, and several sentences are "
    "cut and translated one by one. A text in capitals or in another language is told."
)


def card_text(metadata: dict[str, Any], config: ModelConfig, tokenizer: str) -> str:
    """The card as Markdown: the recipe's [card] table around what was counted and measured.

    tokenizer: its kind in words.
    """
    recipe = metadata["recipe"]
    card = recipe["card"]
    parts = [
        f"# {card.get('title', recipe['name'])}",
        _origin(metadata),
        "## Data",
        card.get("data", "Not stated."),
        _counted(metadata["phases"][-1]["data"]),
        *(["## Input", _PLAIN_INPUT] if metadata["source_text"] == PLAIN_ENGLISH else []),
        "## Model",
        _shape(config, tokenizer),
        "## Training",
        _training(metadata["phases"]),
        "## Scores",
        _scores(metadata),
        card.get("scores", ""),
        "## Limits",
        card.get("limits", "Not stated."),
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _origin(metadata: dict[str, Any]) -> str:
    last = metadata["phases"][-1]
    begun = "from scratch" if len(metadata["phases"]) == 1 else "from trained weights"
    text = f"Trained {begun} with the recipe `{last['recipe']}`, which `config.json` records."
    if is_whole(metadata):
        return text
    planned = last["settings"]["steps"]
    return f"{text} **Unfinished: step {last['steps']:,} of {planned:,}.**"


def _counted(data: dict[str, Any]) -> str:
    unit = data["unit"] if data["train"] != 1 else data["unit"][:-1]
    text = f"{data['train']:,} {unit} to train on, {data['valid']:,} to validate with."
    if data.get("too_long"):
        text += f" {data['too_long']:,} of the first are longer than the model reads: left out."
    return text


def _training(phases: list[dict[str, Any]]) -> str:
    if len(phases) == 1:
        return _phase(phases[0])
    numbered = [f"{number}. {_phase(phase)}" for number, phase in enumerate(phases, 1)]
    return "\n".join(["Phases, each from the weights of the one before:", "", *numbered])


def _phase(phase: dict[str, Any]) -> str:
    if "checkpoint" in phase:
        return f"What made the checkpoint `{phase['checkpoint']}`, which does not say."
    settings, sessions = phase["settings"], phase["sessions"]
    ran_on = dict.fromkeys(
        f"{session['hardware']} in {session['precision']}" for session in sessions
    )
    smoothing = settings["label_smoothing"]
    also = f", label smoothing {smoothing:g}" if smoothing else ""
    return (
        f"`{phase['recipe']}`: {phase['steps']:,} steps of at most {settings['batch_tokens']:,} "
        f"tokens ({phase['tokens']:,} predicted in all, {phase['seconds'] / 60:.0f} minutes on "
        f"{', then '.join(ran_on)}); {OPTIMIZER_NAMES[settings['optimizer']]}, "
        f"peak learning rate {settings['learning_rate']:g}, {settings['warmup_steps']} warm-up "
        f"steps, constant up to {settings['decay_from']:.0%} of {_planned(sessions)}, then "
        f"linearly to zero, dropout {phase['dropout']:g}, weight decay "
        f"{settings['weight_decay']:g}{also}."
    )


def _planned(sessions: list[dict[str, Any]]) -> str:
    """The planned number of steps, and where the plan changed."""
    plans = [session for place, session in enumerate(sessions)
             if place == 0 or session["steps"] != sessions[place - 1]["steps"]]  # fmt: skip
    later = [
        f", from step {session['from_step']:,} on of {session['steps']:,}" for session in plans[1:]
    ]
    return f"{plans[0]['steps']:,} steps{''.join(later)}"


def _shape(config: ModelConfig, tokenizer: str) -> str:
    return (
        f"{config.family}, {config.n_layers} layers, {config.n_heads} heads of {config.d_head}, "
        f"d_model {config.d_model}, d_ff {config.d_ff}, {config.norm}-norm, {config.activation}, "
        f"{config.positions} positions, at most {config.max_len} tokens; "
        f"{config.vocab_size:,} tokens, {tokenizer}. Weights are stored as float16."
    )


def _scores(metadata: dict[str, Any]) -> str:
    unit = metadata["phases"][-1]["data"]["unit"]
    if "scores" not in metadata:
        last = metadata["validation"]
        if last is None:
            return "Not measured yet."
        measures = TASKS[metadata["recipe"]["task"]].measures
        scores = ", ".join(f"{last[name]:.4f} {what}" for name, what in measures.items())
        return (
            f"Not measured yet; at step {last['step']:,}, on the first {last['examples']:,} "
            f"validation {unit}: {scores}."
        )
    about, columns = _TABLES[metadata["recipe"]["task"]]
    lines = [
        about,
        "",
        f"| text | {' | '.join(columns)} | {unit} |",
        f"| --- |{' --- |' * (len(columns) + 1)}",
    ]
    for text, score in metadata["scores"].items():
        numbers = (format(score[name], how) for name, how in columns.values())
        lines.append(f"| {text} | {' | '.join(numbers)} | {int(score['documents']):,} |")
    return "\n".join(lines)
