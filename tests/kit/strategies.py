"""Configurations drawn at random, over every field and beyond the presets."""

from typing import Any

from hypothesis import strategies as st
from kit.models import model_of

from transformer import Model, ModelConfig, Tokenizer
from transformer.model.config_checks import FAMILIES, SCORE_DIVISORS
from transformer.model.positions import LAYER_TYPES, POSITIONS
from transformer.model.primitives import ACTIVATIONS, INITS, NORMS, PLACEMENTS
from transformer.model.rotary import SCALINGS

N_READ = 6  # tokens that all of them can read
VOCAB = st.integers(6, 40)


def rarely(strategy: st.SearchStrategy[Any], usual: Any = None) -> st.SearchStrategy[Any]:
    """The usual value but for one time in eight."""
    return st.integers(0, 7).flatmap(lambda n: strategy if n == 7 else st.just(usual))


yes_or_no = st.booleans()
# How each field is drawn. A new field must be drawn too: a test of the engines says so.
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "family": st.sampled_from(FAMILIES),
    "vocab_size": VOCAB,
    "target_vocab_size": st.none() | VOCAB,
    "d_model": st.integers(1, 12),  # times n_heads, unless heads have another size; even for pairs
    "n_heads": st.integers(1, 5),
    "n_layers": st.integers(1, 3),
    "target_n_layers": rarely(st.integers(1, 4)),
    "d_ff": st.integers(1, 70),
    "max_len": st.integers(N_READ, 20),
    "target_max_len": st.none() | st.integers(N_READ, 20),
    "norm": st.sampled_from(list(PLACEMENTS)),
    "norm_kind": st.sampled_from(list(NORMS)),
    "positions": st.sampled_from(list(POSITIONS)),
    "activation": st.sampled_from(list(ACTIVATIONS)),
    "head_size": st.none() | st.integers(1, 5).map(lambda half: 2 * half),
    "n_key_heads": st.none() | st.integers(1, 5),  # made to divide n_heads
    "embedding_size": st.none() | st.integers(1, 12),  # of an encoder
    "relative_buckets": st.sampled_from([0, 0, 8]),
    "relative_farthest": st.sampled_from([128, 128, 9]),
    "head": st.just("tokens"),
    "labels": st.just(()),
    "label_activation": st.none(),
    "label_probabilities": st.just("one label"),
    "norm_heads": st.integers(0, 2).map(lambda drawn: drawn == 0),
    "norm_all_heads": st.integers(0, 5).map(lambda drawn: drawn == 0),
    "layer_types": st.lists(st.sampled_from(list(LAYER_TYPES)), max_size=3).map(tuple),
    "window": st.none() | st.integers(1, 8),
    "parallel": yes_or_no,  # only with norms before blocks
    "gated": yes_or_no,
    "attention_bias": yes_or_no,
    "output_bias": st.none() | yes_or_no,
    "score_divisor": st.sampled_from(["d_head"] * 5 + list(SCORE_DIVISORS)),
    "score_scale": rarely(st.sampled_from([0.2, 1.0])),
    "score_cap": rarely(st.just(2.0)),
    "logit_scale": rarely(st.just(0.25), 1.0),
    "logit_cap": rarely(st.just(3.0)),
    "residual_scale": rarely(st.just(0.5), 1.0),
    "embedding_scale": st.sampled_from([1.0, 12.0]),
    "shared_projection": st.integers(0, 5).map(lambda drawn: drawn == 0),
    "feed_forward_bias": yes_or_no,
    "head_bias": yes_or_no,
    "head_transform": st.integers(0, 3).map(lambda drawn: drawn == 0),
    "dropout": st.sampled_from([0.0, 0.3]),
    "attention_dropout": st.sampled_from([0.0, 0.3]),
    "feed_forward_dropout": st.sampled_from([0.0, 0.3]),
    "norm_eps": st.sampled_from([1e-12, 1e-5, 1e-2]),
    "n_token_types": st.sampled_from([0, 0, 2]),
    "norm_embeddings": yes_or_no,
    "tie_embeddings": yes_or_no,
    "share_embeddings": yes_or_no,
    "scale_embeddings": yes_or_no,
    "init": st.sampled_from(list(INITS)),
    "padding_id": st.none() | st.just(0),
    "target_padding_id": st.none() | st.just(0),
    "rotary_size": st.none() | st.just(2),
    "rotary_base": st.sampled_from([100.0, 10_000.0]),
    "sliding_rotary_base": rarely(st.just(50.0)),
    "rotary_pair_factors": st.just(()),  # as many as pairs, for "longrope"
    "rotary_multiplier": st.sampled_from([1.0, 1.0, 1.2]),
    "rotary_scaling": st.sampled_from(list(SCALINGS)),
    "rotary_factor": st.sampled_from([1.0, 4.0]),
    "rotary_low": st.just(1.0),
    "rotary_high": st.just(4.0),
    "rotary_trained_len": st.none() | st.just(32),
}


@st.composite
def configurations(draw: st.DrawFn, **fixed: Any) -> ModelConfig:
    """Any possible one, of any family, but with these fields."""
    fields = {name: draw(strategy) for name, strategy in FIELDS.items()} | fixed
    encoding = POSITIONS[fields["positions"]]
    pairs = 2 if encoding.pairs or encoding.is_rotary else 1
    fields["d_model"] *= pairs * (1 if fields["head_size"] else fields["n_heads"])
    if fields["family"] != "encoder" or pairs == 2:
        fields["embedding_size"] = None
    if fields["positions"] in ("rotary", "alibi"):
        fields["relative_buckets"] = 0
    elif POSITIONS[fields["positions"]].is_bias:
        fields["relative_buckets"] = fields["relative_buckets"] or 8
    if fields["tie_embeddings"] and not fields["head_transform"]:
        fields["embedding_size"] = None
    two_stacks = fields["family"] == "encoder-decoder"
    if not two_stacks or fields["share_embeddings"]:
        fields["target_vocab_size"] = None
    if not two_stacks:
        fields["target_max_len"] = fields["target_padding_id"] = fields["target_n_layers"] = None
    if SCALINGS[fields["rotary_scaling"]].changes:  # needs at most the trained number of tokens
        fields["target_max_len"] = None
    fields["share_embeddings"] &= two_stacks
    fields["parallel"] &= fields["norm"] == "pre"
    if fields["n_key_heads"] and fields["n_heads"] % fields["n_key_heads"]:
        fields["n_key_heads"] = 1
    fields["norm_all_heads"] &= not fields["norm_heads"]
    if any(fields[name] for name in ("head_size", "n_key_heads", "norm_heads", "norm_all_heads")):
        fields["shared_projection"] = False
    if fields["rotary_scaling"] == "longrope" and encoding.is_rotary:
        d_head = fields["head_size"] or fields["d_model"] // fields["n_heads"]
        fields["rotary_pair_factors"] = (1.5,) * ((fields["rotary_size"] or d_head) // 2)
    return ModelConfig(**fields)


def model_of_drawn(config: ModelConfig, tokenizer: Tokenizer) -> Model:
    """A model that is configured so but for its vocabulary, which is the tokenizer's."""
    known = {"vocab_size": tokenizer.vocab_size, "target_vocab_size": None}
    return model_of("drawn", config.replace(**known), tokenizer)
