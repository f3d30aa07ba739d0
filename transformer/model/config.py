"""The configuration of a network, validated, and the named presets."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from transformer.checks import shortened
from transformer.model.config_checks import STACKS, check
from transformer.model.heads import HEADS
from transformer.model.positions import LAYER_TYPES, POSITIONS, LayerType
from transformer.model.rotary import RotarySettings

# Other libraries' names of settings, and what they are here.
THEIR_NAMES = {
    "hidden_size": "d_model", "n_embd": "d_model", "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads", "num_key_value_heads": "n_key_heads",
    "intermediate_size": "d_ff", "d_mlp": "d_ff", "max_position_embeddings": "max_len",
    "n_ctx": "max_len", "d_vocab": "vocab_size",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ModelConfig:
    """Every choice that fixes a network's shape and arithmetic.

    Sizes are counts of features (``d_*``) or of things (``n_*``). ``n_layers`` is per stack: an
    encoder-decoder with ``n_layers=6`` has six encoder and six decoder layers, unless
    ``target_n_layers`` differs.

    Raises ValueError, saying what it got and what is allowed, for unknown or impossible values.
    """

    family: str = "decoder"
    vocab_size: int
    target_vocab_size: int | None = None  # encoder-decoder only; None means vocab_size
    d_model: int = 512
    n_heads: int = 8
    n_layers: int = 6
    target_n_layers: int | None = None  # of the decoder of an encoder-decoder; None means n_layers
    d_ff: int = 2048
    max_len: int = 512  # tokens read at once
    target_max_len: int | None = None  # encoder-decoder only; None means max_len
    norm: str = "pre"  # one of primitives.PLACEMENTS
    norm_kind: str = "layer"  # one of norms.NORMS
    positions: str = "sinusoidal"  # one of positions.POSITIONS
    activation: str = "relu"  # one of activations.ACTIVATIONS
    head_size: int | None = None  # features of one head; None means d_model / n_heads
    n_key_heads: int | None = None  # heads of keys and values, shared in groups; None: n_heads
    norm_heads: bool = False  # normalise each head's queries and keys before rotation
    norm_all_heads: bool = False  # OLMo 2: those of all heads together
    window: int | None = None  # tokens that a token reads, itself included, back, and in an encoder
    # also ahead; None: all
    layer_types: tuple[str, ...] = ()  # of positions.LAYER_TYPES, repeated over the layers
    attention_bias: bool = True  # on the query, key, value and output projections
    output_bias: bool | None = None  # on the output projection; None means attention_bias
    relative_buckets: int = 0  # T5: of distances, each with a number a head, added to scores
    relative_farthest: int = 128  # tokens from which on all distances are counted as one
    score_divisor: str = "d_head"  # one of SCORE_DIVISORS
    score_scale: float | None = None  # of q·k; None means 1 / √ of the divisor
    score_cap: float | None = None  # Gemma 2: scores are cap · tanh(score / cap)
    logit_scale: float = 1.0  # logits are multiplied by it
    logit_cap: float | None = None  # and limited as scores are
    residual_scale: float = 1.0  # Granite multiplies what a sub-layer adds to the stream
    shared_projection: bool = False  # one tutorial's mistake: one small map for all heads
    parallel: bool = False  # x + attention(norm(x)) + feed_forward(norm(x)), with norm "pre"
    gated: bool = False  # multiply the feed-forward's activation with another map
    feed_forward_bias: bool = True
    head: str = "tokens"  # one of heads.HEADS
    labels: tuple[str, ...] = ()  # that the head scores, if it is a classifier's
    label_activation: str | None = None  # of a linear map before the labels; None: there is none
    label_probabilities: str = "one label"  # one of heads.LABEL_PROBABILITIES
    head_transform: bool = False  # BERT: a linear map, the activation and a norm before the head
    head_bias: bool = True  # on the projection to logits
    dropout: float = 0.1  # on embedding sums and on each sub-layer's output, as in the paper
    attention_dropout: float = 0.0  # on the attention weights (GPT and BERT; not in the paper)
    feed_forward_dropout: float = 0.0  # inside the feed-forward, after its activation
    norm_eps: float = 1e-5
    n_token_types: int = 0  # BERT adds a vector that marks the first or the second text
    embedding_size: int | None = None  # ELECTRA's embeddings are narrower than d_model, and mapped
    norm_embeddings: bool = False  # BERT normalises the sum of its embeddings
    tie_embeddings: bool = False  # the head is the (target) embedding, transposed
    share_embeddings: bool = False  # encoder and decoder embed with one matrix (joint vocabulary)
    scale_embeddings: bool = False  # token embeddings x sqrt(d_model), section 3.4 of the paper
    embedding_scale: float = 1.0  # and x this
    init: str = "xavier"  # one of initial_weights.INITS
    padding_id: int | None = None  # fills up batches and is never generated
    target_padding_id: int | None = None  # encoder-decoder only; None means padding_id
    rotary_size: int | None = None  # features of a head that are rotated; None: all of them
    rotary_base: float = 10_000.0  # the slowest pair rotates once in about 2 pi times this
    sliding_rotary_base: float | None = None  # in layers with a window, without a scaling
    rotary_scaling: str = "none"  # one of rotary.SCALINGS
    rotary_factor: float = 1.0  # how much slower pairs rotate with a scaling
    rotary_multiplier: float = 1.0  # "yarn", "longrope": rotated q and k are this much longer
    rotary_pair_factors: tuple[float, ...] = ()  # "longrope": how much slower each pair rotates
    rotary_low: float = 1.0  # pairs with fewer turns in rotary_trained_len are scaled,
    rotary_high: float = 4.0  # pairs with more turns than this are not
    rotary_trained_len: int | None = None  # tokens before the scaling; None means max_len

    def __post_init__(self) -> None:
        check(self)

    def __repr__(self) -> str:
        """The fields that differ from their defaults."""
        values = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        changed = (f"{name}={value!r}" for name, value in values if value != defaults[name])
        return f"ModelConfig({', '.join(changed)})"

    @property
    def d_head(self) -> int:
        """Features of one head."""
        return self.head_size or self.d_model // self.n_heads

    @property
    def d_embedding(self) -> int:
        """Features of an embedding."""
        return self.embedding_size or self.d_model

    @property
    def key_heads(self) -> int:
        """Heads of keys and values; each is read by n_heads / key_heads heads of queries."""
        return self.n_key_heads or self.n_heads

    @property
    def heads_per_key(self) -> int:
        """How many heads of queries read the same keys and values."""
        return self.n_heads // self.key_heads

    @property
    def score_size(self) -> float:
        """Scores are divided by its square root: the head's size, unless the network differs."""
        if self.score_scale is not None:
            return self.score_scale**-2
        return self.d_model if self.score_divisor == "d_model" else self.d_head

    @property
    def biases_scores(self) -> bool:
        """Whether a number for the distance of two tokens is added to their score."""
        return bool(self.relative_buckets) or POSITIONS[self.positions].is_bias

    @property
    def scores_are_products(self) -> bool:
        """Whether scores are q kT / sqrt(score_size) alone."""
        return not self.biases_scores and self.score_cap is None

    @property
    def scores_from_heads(self) -> bool:
        """Whether scores are q kT / sqrt(D) alone."""
        return self.scores_are_products and self.score_size == self.d_head

    def layer_type(self, layer: int) -> LayerType:
        """Which tokens a layer's self-attention reads, and whether it is rotated."""
        if not self.layer_types:
            return LayerType(slides=True)
        return LAYER_TYPES[self.layer_types[layer % len(self.layer_types)]]

    def window_of(self, layer: int) -> int | None:
        """`window` in a layer that has it, else None."""
        return self.window if self.layer_type(layer).slides else None

    @property
    def has_output_bias(self) -> bool:
        """Whether an attention's output projection has a bias."""
        return self.attention_bias if self.output_bias is None else self.output_bias

    @property
    def rotary(self) -> RotarySettings:
        """How rotary positions rotate a head."""
        return RotarySettings(
            size=self.rotary_size or self.d_head,
            base=self.rotary_base,
            scaling=self.rotary_scaling,
            factor=self.rotary_factor,
            low=self.rotary_low,
            high=self.rotary_high,
            multiplier=self.rotary_multiplier,
            trained_len=self.rotary_trained_len or self.max_len,
            pair_factors=self.rotary_pair_factors,
        )

    def rotary_of(self, layer: int) -> RotarySettings | None:
        """How a layer's self-attention rotates heads; None if it does not."""
        kind = self.layer_type(layer)
        if not (POSITIONS[self.positions].is_rotary and kind.rotates):
            return None
        if self.sliding_rotary_base is None or not kind.slides:
            return self.rotary
        return self.sliding_rotary

    @property
    def sliding_rotary(self) -> RotarySettings:
        """How rotary positions rotate a head in layers with a window, if these differ."""
        base = self.sliding_rotary_base or self.rotary_base
        return self.rotary._replace(base=base, scaling="none", multiplier=1.0)

    @property
    def generates(self) -> bool:
        """Whether a decoder predicts the next token, so that texts can be written."""
        return HEADS[self.head].predicts and STACKS[self.family][-1] == "decoder"

    @property
    def output_vocab_size(self) -> int:
        """Number of logits: the target vocabulary where there is one."""
        return self.target_vocab_size or self.vocab_size

    @property
    def output_n_layers(self) -> int:
        """Number of layers of the last stack."""
        return self.target_n_layers or self.n_layers

    @property
    def output_max_len(self) -> int:
        """Tokens that the last stack reads at once."""
        return self.target_max_len or self.max_len

    @property
    def output_padding_id(self) -> int | None:
        """The padding id of the last stack's input."""
        return self.padding_id if self.target_padding_id is None else self.target_padding_id

    def n_layers_of(self, stack: str) -> int:
        """Number of layers of a stack."""
        return self.output_n_layers if stack == "decoder" else self.n_layers

    def vocab_size_of(self, stack: str) -> int:
        """Number of tokens that a stack embeds."""
        return self.output_vocab_size if stack == "decoder" else self.vocab_size

    def max_len_of(self, stack: str) -> int:
        """Number of positions that a stack has."""
        return self.output_max_len if stack == "decoder" else self.max_len

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
            ours = THEIR_NAMES.get(unknown[0])
            here = f"; here it is {ours}" if ours else ""
            raise ValueError(
                f"unknown model setting {shortened(unknown[0])}{here}; allowed: {sorted(fields)}"
            )
        if "vocab_size" not in values:
            raise ValueError("a model configuration needs vocab_size; got none")
        names = ("labels", "layer_types", "rotary_pair_factors")
        lists = {name: tuple(values.get(name, ())) for name in names}
        return cls(**values | lists)


# The five tutorials that this project grew from, and BERT.
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
    # Four decoder architectures, each with the sizes of the smallest trained network.
    # As OpenAI trained it in 2019: GELU by its tanh formula, the head tied to the embedding.
    "gpt-2": dict(
        family="decoder", norm="pre", positions="learned", activation="gelu-tanh",
        d_model=768, n_heads=12, n_layers=12, d_ff=3072, max_len=1024,
        head_bias=False, tie_embeddings=True, attention_dropout=0.1, init="normal",
    ),
    # Rotary positions, RMS norm, a gated feed-forward, no biases, and three query heads to each
    # key and value head (SmolLM2's sizes).
    "llama": dict(
        family="decoder", norm="pre", norm_kind="rms", positions="rotary", activation="silu",
        d_model=576, n_heads=9, n_key_heads=3, n_layers=30, d_ff=1536, max_len=1024,
        gated=True, attention_bias=False, feed_forward_bias=False, head_bias=False,
        tie_embeddings=True, dropout=0.0, init="normal", rotary_base=100_000.0,
    ),
    # As "llama", with a head size independent of d_model, and queries and keys normalised before
    # they are rotated.
    "qwen3": dict(
        family="decoder", norm="pre", norm_kind="rms", positions="rotary", activation="silu",
        d_model=1024, n_heads=16, n_key_heads=8, head_size=128, n_layers=28, d_ff=3072,
        max_len=1024, norm_heads=True, norm_eps=1e-6, gated=True, attention_bias=False,
        feed_forward_bias=False, head_bias=False, tie_embeddings=True, dropout=0.0,
        init="normal", rotary_base=1_000_000.0,
    ),
    # Pythia: attention and feed-forward in parallel, and a quarter of each head rotated.
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
