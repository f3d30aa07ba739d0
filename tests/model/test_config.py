import itertools
import math

import pytest
import transformers

from transformer import PRESETS, ModelConfig, build_transformer
from transformer.checkpoint.adapters import config_of
from transformer.model.config import preset

SMALL = dict(vocab_size=11, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=9)


WHOLE = "vocab_size d_model n_heads n_layers d_ff max_len head_size n_key_heads window rotary_size"
CHOICES = "family norm norm_kind score_divisor positions activation rotary_scaling init"
BOTH = {"family": "encoder-decoder", "target_vocab_size": 5}
VALUES = [  # fields; what none of them may be; what is allowed
    (WHOLE, (0, True, 2.0, "9"), "a whole number of at least 1"),
    (CHOICES, ("gpt", ["normal"], 3), "one of "),
    ("dropout attention_dropout feed_forward_dropout", (1.0, -0.1, False, math.nan),
     "at least 0 and below 1"),
    ("norm_eps", (0, 1, math.inf), "above 0 and below 1"),
    ("head_bias tie_embeddings gated", ("no", 1), "True or False"),
    ("output_bias", ("no",), "True, False or None"),
    ("n_token_types", (-1,), "a whole number of at least 0"),
    ("padding_id", (11, -1, "0", True), "an id below 11 or None"),
    ("rotary_base rotary_factor rotary_low", (0, math.inf, "1"), "a number above 0"),
]  # fmt: skip
TOGETHER = [
    (dict(n_heads=5), "n_heads must divide d_model; got d_model=12, n_heads=5"),
    (dict(d_model=9), "sinusoidal positions need an even d_model; got 9"),
    (dict(target_vocab_size=12), "target_vocab_size is for an encoder-decoder"),
    (dict(target_max_len=12), "target_max_len is for an encoder-decoder"),
    (dict(target_padding_id=1), "target_padding_id is for an encoder-decoder"),
    (dict(share_embeddings=True), "share_embeddings needs an encoder-decoder"),
    (dict(**BOTH, share_embeddings=True), "joint vocabulary; got .* target_vocab_size=5"),
    (dict(**BOTH, padding_id=5), "padding_id must be an id below 5"),
    (dict(**BOTH, target_padding_id=5), "target_padding_id must be an id below 5 or None; got 5"),
    (dict(n_key_heads=2), "n_key_heads must divide n_heads; got n_heads=3, n_key_heads=2"),
    (dict(parallel=True, norm="post"), "parallel needs norm='pre'; got norm='post'"),
    (dict(shared_projection=True, head_size=4), "shared_projection goes with heads of"),
    (dict(rotary_low=4.0), r"rotary_low must be below rotary_high; got 4\.0, 4\.0"),
    (dict(positions="rotary", rotary_size=3), "rotate an even number .* 4 features; got 3"),
    (dict(positions="rotary", rotary_size=6), "rotate an even number .* 4 features; got 6"),
    (dict(positions="rotary", rotary_scaling="dynamic", rotary_trained_len=8),
     "beyond the trained 8 tokens; needed: a max_len of at most that; got 9"),
    (dict(positions="rotary", rotary_scaling="longrope", rotary_pair_factors=(1.0,)),
     r"rotary_pair_factors must be 2 numbers above 0 with .*'longrope'; got \(1\.0,\)"),
    (dict(positions="rotary", rotary_scaling="longrope", rotary_pair_factors=(1.0, -1.0)),
     r"rotary_pair_factors must be 2 numbers above 0 .*; got \(1\.0, -1\.0\)"),
    (dict(family="encoder", tie_embeddings=True, embedding_size=18), "needs head_transform=True"),
    (dict(family="encoder", tie_embeddings=True, embedding_size=6), "needs head_transform=True"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "values", "allowed"), VALUES)
def test_a_value_of_the_wrong_type_is_refused_with_what_is_allowed(fields, values, allowed):
    for name, value in itertools.product(fields.split(), values):
        with pytest.raises(ValueError, match=rf"^{name} must be {allowed}.*; got "):
            ModelConfig(**{**SMALL, name: value})


@pytest.mark.parametrize(("changes", "sentence"), TOGETHER)
def test_values_that_do_not_go_together_get_a_sentence(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        ModelConfig(**{**SMALL, **changes})


def test_an_unknown_or_missing_field_is_named():
    with pytest.raises(ValueError, match=r"unknown model setting 'heads'; allowed: .*n_heads"):
        ModelConfig.from_dict({**SMALL, "layers": 2, "heads": 3})
    with pytest.raises(ValueError, match="needs vocab_size"):
        ModelConfig.from_dict({"d_model": 12})


# What each of the five tutorials, the style that one of them contrasts, and each family describes.
PAPER = dict(n_layers=6, n_heads=8, d_model=512, d_ff=2048, scale_embeddings=True)
DESCRIBED = {
    "pre-norm": dict(
        **PAPER, family="encoder-decoder", norm="pre", positions="sinusoidal", activation="relu",
        attention_bias=False, init="xavier",
    ),
    "vaswani-2017": dict(
        **PAPER, family="encoder-decoder", norm="post", positions="sinusoidal", activation="relu",
        tie_embeddings=True, share_embeddings=True, dropout=0.1,
    ),
    "learned-positions": dict(
        family="encoder-decoder", norm="post", positions="learned", activation="relu",
        n_layers=6, n_heads=8, d_model=256, d_ff=1024, max_len=100,
    ),
    "gelu-post-norm": dict(
        family="encoder-decoder", norm="post", positions="sinusoidal", activation="gelu",
        attention_bias=False,
    ),
    "gpt": dict(
        family="decoder", norm="pre", positions="learned", activation="gelu",
        tie_embeddings=False, head_bias=False, init="normal",
    ),
}  # fmt: skip

# The published configuration of each family's smallest network, where transformers' defaults
# differ, and the fields in which the preset departs from it.
PUBLISHED = {
    "bert": (
        transformers.BertConfig, {},
        {"attention_dropout", "head", "n_token_types", "tie_embeddings"},
    ),
    "gpt-2": (transformers.GPT2Config, {}, {"attention_dropout"}),
    "llama": (  # SmolLM2-135M
        transformers.LlamaConfig,
        dict(
            hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
            num_key_value_heads=3, rms_norm_eps=1e-5, tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
        ),
        {"rotary_size"},
    ),
    "qwen3": (  # Qwen3-0.6B
        transformers.Qwen3Config,
        dict(
            hidden_size=1024, intermediate_size=3072, num_hidden_layers=28,
            num_attention_heads=16, num_key_value_heads=8, tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        ),
        {"rotary_size"},
    ),
    "neox": (  # Pythia-70M
        transformers.GPTNeoXConfig,
        dict(hidden_size=512, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=8),
        {"dropout"},
    ),
}  # fmt: skip


def test_defaults_are_the_papers_base_model():
    config = ModelConfig(vocab_size=37_000)
    sizes = (config.d_model, config.n_heads, config.n_layers, config.d_ff, config.dropout)
    assert sizes == (512, 8, 6, 2048, 0.1)
    assert (config.max_len, config.norm_eps) == (512, 1e-5)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_familys_preset_is_its_published_configuration(name):
    make, changes, departures = PUBLISHED[name]
    wanted = config_of(make(vocab_size=29, **changes).to_dict(), 1024, {}).to_dict()
    found = preset(name, vocab_size=29).to_dict()
    assert {field for field in wanted if found[field] != wanted[field]} == departures
    assert set(DESCRIBED) | set(PUBLISHED) == set(PRESETS)


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_preset_is_what_its_tutorial_describes(name):
    config = preset(name, vocab_size=29)
    got = {field: getattr(config, field) for field in DESCRIBED[name]}
    assert got == DESCRIBED[name]
    assert config.vocab_size == 29


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown preset 'gpt-5'; allowed: .*'vaswani-2017'"):
        build_transformer("gpt-5", vocab_size=10)
    with pytest.raises(ValueError, match="needs vocab_size"):
        build_transformer("gpt")
