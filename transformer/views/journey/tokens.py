"""Tokens as the journey's answers name them."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from transformer.tokenizer import Tokenizer


def likeliest_of(tokens: Tokenizer, logits: Tensor, count: int) -> list[dict[str, Any]]:
    """The likeliest tokens after logits (V,), with their probabilities."""
    best = logits.softmax(dim=-1).topk(min(count, len(logits)))
    return [
        {**named_token(tokens, index), "probability": probability}
        for index, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def named_token(tokens: Tokenizer, index: int) -> dict[str, Any]:
    """joins: whether the token continues the word before it."""
    label = tokens.label(index)
    joins = not tokens.is_special(index) and not label.startswith(("␣", "⏎", "⇥"))
    return {"id": index, "label": label, "joins": joins}
