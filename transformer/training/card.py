"""The model card: what a checkpoint is, was made from, scores and cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformer.model.config import ModelConfig

OPTIMIZER_NAMES = {"adamw": "AdamW", "muon": "Muon with Adam for embeddings, norms and biases"}

_LANGUAGE_MODEL_SCORES = (
    "Each document alone, from the end-of-text token, in windows that keep at least half of the "
    "context; the end token counts."
)
_TRANSLATION_SCORES = (
    "The loss of the reference translations, token by token, the end token counted; for BLEU and "
    "chrF: `python -m transformer.training evaluate`."
)


def write_card(folder: Path, metadata: dict[str, Any], config: ModelConfig) -> None:
    """Write folder/README.md from the recipe's [card] table and the measured scores."""
    (folder / "README.md").write_text(card_text(metadata, config), encoding="utf-8")


def card_text(metadata: dict[str, Any], config: ModelConfig) -> str:
    """The card as Markdown."""
    recipe = metadata["recipe"]
    card = recipe["card"]
    parts = [
        f"# {card.get('title', recipe['name'])}",
        "Trained from scratch with the recipe "
        f"`transformer/training/recipes/{recipe['name']}.toml`.",
        "## Data",
        card.get("data", "Not stated."),
        "## Model",
        _shape(config),
        "## Training",
        _training(metadata, config),
        "## Scores",
        _scores(recipe["task"], metadata["scores"]),
        card.get("scores", ""),
        "## Limits",
        card.get("limits", "Not stated."),
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _training(metadata: dict[str, Any], config: ModelConfig) -> str:
    settings = metadata["recipe"]["settings"]
    return (
        f"{settings['steps']:,} steps of at most {settings['batch_tokens']:,} tokens "
        f"({metadata['tokens']:,} tokens in all, {metadata['seconds'] / 60:.0f} minutes on "
        f"{metadata['hardware']}); {OPTIMIZER_NAMES[settings['optimizer']]}, "
        f"peak learning rate {settings['learning_rate']:g}, "
        f"constant up to {settings['decay_from']:.0%} of the steps and then linearly to zero, "
        f"{settings['warmup_steps']} warm-up steps, dropout {config.dropout:g}, weight decay "
        f"{settings['weight_decay']:g}."
    )


def _shape(config: ModelConfig) -> str:
    return (
        f"{config.family}, {config.n_layers} layers, {config.n_heads} heads of {config.d_head}, "
        f"d_model {config.d_model}, d_ff {config.d_ff}, {config.norm}-norm, {config.activation}, "
        f"{config.positions} positions, at most {config.max_len} tokens; byte-level BPE of "
        f"{config.vocab_size:,} tokens. Weights are stored as float16."
    )


def _scores(task: str, scores: dict[str, dict[str, float]]) -> str:
    text = _TRANSLATION_SCORES if task == "translation" else _LANGUAGE_MODEL_SCORES
    lines = [
        text,
        "",
        "| text | bits per byte | perplexity | nats per token | documents |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, score in scores.items():
        lines.append(
            f"| {name} | {score['bits_per_byte']:.4f} | {score['perplexity']:.3f} | "
            f"{score['loss']:.4f} | {int(score['documents']):,} |"
        )
    return "\n".join(lines)
