"""The named presets: configurations that are known by a name, each without its vocabulary."""

from __future__ import annotations

from typing import Any

from transformer.checks import shortened
from transformer.model.config import ModelConfig

# The five tutorials that this project grew from, and the BERT style that one of them contrasts.
# A preset fixes all but the vocabulary; `build_transformer("gpt", vocab_size=...)` completes it.
PRESETS: dict[str, dict[str, Any]] = {
    "pre-norm": dict(
        family="encoder-decoder", norm="pre", positions="sinusoidal", activation="relu",
        d_model=512, n_heads=8, n_layers=6, d_ff=2048, max_len=512,
        attention_bias=False, scale_embeddings=True, init="xavier", padding_id=0,
    ),
    "vaswani-2017": dict(
        family="encoder-decoder", norm="post", positions="sinusoidal", activation="relu",
        d_model=512, n_heads=8, n_layers=6, d_ff=2048, max_len=512,
        attention_bias=False, head_bias=False, scale_embeddings=True, tie_embeddings=True,
        share_embeddings=True, init="xavier", padding_id=0,
    ),
    "learned-positions": dict(
        family="encoder-decoder", norm="post", positions="learned", activation="relu",
        d_model=256, n_heads=8, n_layers=6, d_ff=1024, max_len=100, padding_id=0,
    ),
    "gelu-post-norm": dict(
        family="encoder-decoder", norm="post", positions="sinusoidal", activation="gelu",
        d_model=512, n_heads=8, n_layers=6, d_ff=2048, max_len=512,
        attention_bias=False, padding_id=0,
    ),
    "gpt": dict(
        family="decoder", norm="pre", positions="learned", activation="gelu",
        d_model=384, n_heads=6, n_layers=6, d_ff=1536, max_len=256,
        head_bias=False, attention_dropout=0.1, init="normal",
    ),
    "bert": dict(
        family="encoder", norm="post", positions="learned", activation="gelu",
        d_model=768, n_heads=12, n_layers=12, d_ff=3072, max_len=512,
        norm_embeddings=True, norm_eps=1e-12, attention_dropout=0.1, tie_embeddings=True,
        init="normal", padding_id=0,
    ),
    # Four ways to build a decoder that trained networks have; sizes of the smallest one of each.
    # As OpenAI trained it in 2019: GELU by its tanh formula, the head tied to the embedding.
    "gpt-2": dict(
        family="decoder", norm="pre", positions="learned", activation="gelu-tanh",
        d_model=768, n_heads=12, n_layers=12, d_ff=3072, max_len=1024,
        head_bias=False, tie_embeddings=True, attention_dropout=0.1, init="normal",
    ),
    # Positions turn queries and keys, RMS norm, a gated feed-forward, no biases, and three heads
    # of queries to one of keys and values (SmolLM2's sizes).
    "llama": dict(
        family="decoder", norm="pre", norm_kind="rms", positions="rotary", activation="silu",
        d_model=576, n_heads=9, n_key_heads=3, n_layers=30, d_ff=1536, max_len=1024,
        gated=True, attention_bias=False, feed_forward_bias=False, head_bias=False,
        tie_embeddings=True, dropout=0.0, init="normal", rotary_base=100_000.0,
    ),
    # The same with heads of a size of their own, whose queries and keys are normalised before they
    # are turned.
    "qwen3": dict(
        family="decoder", norm="pre", norm_kind="rms", positions="rotary", activation="silu",
        d_model=1024, n_heads=16, n_key_heads=8, head_size=128, n_layers=28, d_ff=3072,
        max_len=1024, norm_heads=True, norm_eps=1e-6, gated=True, attention_bias=False,
        feed_forward_bias=False, head_bias=False, tie_embeddings=True, dropout=0.0,
        init="normal", rotary_base=1_000_000.0,
    ),
    # Pythia: attention and feed-forward side by side, and a quarter of each head turned.
    "neox": dict(
        family="decoder", norm="pre", positions="rotary", activation="gelu",
        d_model=512, n_heads=8, n_layers=6, d_ff=2048, max_len=1024, rotary_size=16,
        parallel=True, head_bias=False, dropout=0.0, init="normal",
    ),
}  # fmt: skip


def preset(name: str, **changes: Any) -> ModelConfig:
    """The named preset with some fields set. Raises ValueError listing the names."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {shortened(name)}; allowed: {list(PRESETS)}")
    return ModelConfig.from_dict({**PRESETS[name], **changes})
