"""What a network is made of: one validated description, and the named presets."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

FAMILIES = ("decoder", "encoder", "encoder-decoder")
NORMS = ("pre", "post")
POSITION_KINDS = ("sinusoidal", "learned")
ACTIVATIONS = ("relu", "gelu")
INITS = ("xavier", "normal")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """Every choice that fixes a network's shape and arithmetic.

    Sizes are counts of features (``d_*``) or of things (``n_*``). ``n_layers`` is per stack: an
    encoder-decoder with ``n_layers=6`` has six encoder and six decoder layers.

    Raises ValueError, saying what was got and what is allowed, for unknown or impossible values.
    """

    family: str = "decoder"
    vocab_size: int
    target_vocab_size: int | None = None  # encoder-decoder only; None means vocab_size
    d_model: int = 512
    n_heads: int = 8
    n_layers: int = 6
    d_ff: int = 2048
    max_len: int = 512
    norm: str = "pre"  # "pre": x + f(norm(x)) and a final norm; "post": norm(x + f(x))
    positions: str = "sinusoidal"
    activation: str = "relu"
    attention_bias: bool = True  # on the query, key, value and output projections
    feed_forward_bias: bool = True
    head_bias: bool = True  # on the projection to logits
    dropout: float = 0.1  # on embedding sums and on each sub-layer's output, as in the paper
    attention_dropout: float = 0.0  # on the attention weights (GPT and BERT; not in the paper)
    norm_eps: float = 1e-5
    norm_embeddings: bool = False  # BERT normalises the sum of its embeddings
    tie_embeddings: bool = False  # the head is the (target) embedding, transposed
    share_embeddings: bool = False  # encoder and decoder embed with one matrix (joint vocabulary)
    scale_embeddings: bool = False  # token embeddings x sqrt(d_model), section 3.4 of the paper
    init: str = "xavier"  # "xavier": uniform; "normal": N(0, 0.02)
    padding_id: int | None = None  # this id is never attended to

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_sizes(self)
        _check_switches(self)
        _check_embeddings(self)

    @property
    def d_head(self) -> int:
        """Features of one head: d_model / n_heads."""
        return self.d_model // self.n_heads

    @property
    def output_vocab_size(self) -> int:
        """Number of logits: the target vocabulary where there is one."""
        return self.target_vocab_size or self.vocab_size

    def replace(self, **changes: Any) -> ModelConfig:
        """The same configuration with some fields changed, validated again."""
        return type(self).from_dict({**self.to_dict(), **changes})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ModelConfig:
        """The inverse of `to_dict`. Raises ValueError for an unknown or missing field."""
        fields = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - fields)
        if unknown:
            raise ValueError(f"unknown model setting {unknown[0]!r}; allowed: {sorted(fields)}")
        if "vocab_size" not in values:
            raise ValueError("a model configuration needs vocab_size; got none")
        return cls(**values)


def _check_choices(config: ModelConfig) -> None:
    choices = {
        "family": FAMILIES,
        "norm": NORMS,
        "positions": POSITION_KINDS,
        "activation": ACTIVATIONS,
        "init": INITS,
    }
    for name, allowed in choices.items():
        got = getattr(config, name)
        if got not in allowed:
            raise ValueError(f"{name} must be one of {list(allowed)}; got {got!r}")


def _check_sizes(config: ModelConfig) -> None:
    names = ["vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len"]
    if config.target_vocab_size is not None:
        names.append("target_vocab_size")
    for name in names:
        got = getattr(config, name)
        if not isinstance(got, int) or isinstance(got, bool) or got < 1:
            raise ValueError(f"{name} must be a whole number of at least 1; got {got!r}")
    if config.d_model % config.n_heads:
        raise ValueError(
            f"n_heads must divide d_model; got d_model={config.d_model}, n_heads={config.n_heads}"
        )
    if config.positions == "sinusoidal" and config.d_model % 2:
        raise ValueError(f"sinusoidal positions need an even d_model; got {config.d_model}")
    for name in ("dropout", "attention_dropout"):
        got = getattr(config, name)
        if not _is_number(got) or not 0 <= got < 1:
            raise ValueError(f"{name} must be at least 0 and below 1; got {got!r}")
    if not _is_number(config.norm_eps) or not 0 < config.norm_eps < 1:
        raise ValueError(f"norm_eps must be above 0 and below 1; got {config.norm_eps!r}")


def _check_switches(config: ModelConfig) -> None:
    for field in dataclasses.fields(config):
        got = getattr(config, field.name)
        if isinstance(field.default, bool) and not isinstance(got, bool):
            raise ValueError(f"{field.name} must be True or False; got {got!r}")


def _is_number(got: Any) -> bool:
    return isinstance(got, int | float) and not isinstance(got, bool)


def _check_embeddings(config: ModelConfig) -> None:
    two_stacks = config.family == "encoder-decoder"
    if config.target_vocab_size is not None and not two_stacks:
        raise ValueError(
            f"target_vocab_size is for an encoder-decoder; got family={config.family!r}"
        )
    if config.share_embeddings and (
        not two_stacks or config.output_vocab_size != config.vocab_size
    ):
        raise ValueError(
            "share_embeddings needs an encoder-decoder with one joint vocabulary; got "
            f"family={config.family!r}, vocab_size={config.vocab_size}, "
            f"target_vocab_size={config.target_vocab_size}"
        )
    smallest = min(config.vocab_size, config.output_vocab_size)
    padding = config.padding_id
    is_id = isinstance(padding, int) and not isinstance(padding, bool) and 0 <= padding < smallest
    if padding is not None and not is_id:
        raise ValueError(
            f"padding_id must be an id below {smallest} or None; got {config.padding_id!r}"
        )


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
}  # fmt: skip


def preset(name: str, **changes: Any) -> ModelConfig:
    """The named preset with some fields set. Raises ValueError listing the names."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; allowed: {list(PRESETS)}")
    return ModelConfig.from_dict({**PRESETS[name], **changes})
