import math

import pytest

from transformer import PRESETS, ModelConfig, build_transformer
from transformer.model.presets import preset

SMALL = dict(vocab_size=11, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=9)


def test_replacing_a_field_validates_again():
    config = ModelConfig(**SMALL)
    assert config.replace(n_heads=4).n_heads == 4
    assert config.n_heads == 3
    with pytest.raises(ValueError, match="n_heads must divide d_model; got d_model=12, n_heads=5"):
        config.replace(n_heads=5)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"family": "gpt"}, r"family must be one of \['decoder', .*\]; got 'gpt'"),
        ({"norm": "both"}, r"norm must be one of \['pre', 'post'\]; got 'both'"),
        ({"positions": None}, "positions must be one of .*; got None"),
        ({"activation": "tanh"}, "activation must be one of .*; got 'tanh'"),
        ({"init": ["normal"]}, "init must be one of"),
        ({"vocab_size": 0}, "vocab_size must be a whole number of at least 1; got 0"),
        ({"n_layers": True}, "n_layers must be a whole number of at least 1; got True"),
        ({"d_ff": 2.0}, r"d_ff must be a whole number of at least 1; got 2\.0"),
        ({"max_len": "9"}, "max_len must be a whole number of at least 1; got '9'"),
        ({"d_model": 9}, "sinusoidal positions need an even d_model; got 9"),
        ({"dropout": 1.0}, r"dropout must be at least 0 and below 1; got 1\.0"),
        ({"dropout": False}, "dropout must be at least 0 and below 1; got False"),
        ({"attention_dropout": math.nan}, "attention_dropout must be .*; got nan"),
        ({"norm_eps": 0}, "norm_eps must be above 0 and below 1; got 0"),
        ({"norm_eps": 1}, "norm_eps must be above 0 and below 1; got 1"),
        ({"norm_eps": math.inf}, "norm_eps must be above 0 and below 1; got inf"),
        ({"head_bias": "no"}, "head_bias must be True or False; got 'no'"),
        ({"tie_embeddings": 1}, "tie_embeddings must be True or False; got 1"),
        ({"target_vocab_size": 12}, "target_vocab_size is for an encoder-decoder"),
        ({"target_max_len": 12}, "target_max_len is for an encoder-decoder"),
        ({"target_padding_id": 1}, "target_padding_id is for an encoder-decoder"),
        ({"feed_forward_dropout": -0.1}, r"feed_forward_dropout must be .*; got -0\.1"),
        ({"share_embeddings": True}, "share_embeddings needs an encoder-decoder"),
        ({"padding_id": 11}, "padding_id must be an id below 11 or None; got 11"),
        ({"padding_id": -1}, "padding_id must be an id below 11 or None; got -1"),
        ({"padding_id": "0"}, "padding_id must be an id below 11 or None; got '0'"),
        ({"head_size": 0}, "head_size must be a whole number of at least 1; got 0"),
        ({"n_key_heads": 2}, "n_key_heads must divide n_heads; got n_heads=3, n_key_heads=2"),
        ({"n_token_types": -1}, "n_token_types must be a whole number of at least 0; got -1"),
        ({"output_bias": "no"}, "output_bias must be True, False or None; got 'no'"),
        ({"parallel": True, "norm": "post"}, "parallel needs norm='pre'; got norm='post'"),
        ({"shared_projection": True, "head_size": 4}, "shared_projection goes with heads of"),
        ({"padded_start": True}, "padded_start needs an encoder-decoder with a padding_id"),
        ({"rotary_scaling": "yarn"}, "rotary_scaling must be one of .*; got 'yarn'"),
        ({"rotary_base": 0}, "rotary_base must be a number above 0; got 0"),
        ({"rotary_low": 4.0}, r"rotary_low must be below rotary_high; got 4\.0, 4\.0"),
        ({"positions": "rotary", "rotary_size": 3}, "rotate an even number .* 4 features; got 3"),
        ({"positions": "rotary", "rotary_size": 6}, "rotate an even number .* 4 features; got 6"),
        (
            {"positions": "rotary", "rotary_scaling": "dynamic", "rotary_trained_len": 8},
            "beyond the trained 8 tokens; needed: a max_len of at most that; got 9",
        ),
    ],
)
def test_an_impossible_value_gets_a_sentence_with_what_is_allowed(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        ModelConfig(**{**SMALL, **changes})


def test_embeddings_are_shared_only_over_one_joint_vocabulary():
    two = {**SMALL, "family": "encoder-decoder", "share_embeddings": True}
    assert ModelConfig(**two, target_vocab_size=11).share_embeddings
    with pytest.raises(ValueError, match=r"joint vocabulary; got .* target_vocab_size=12"):
        ModelConfig(**two, target_vocab_size=12)


def test_padding_must_be_an_id_of_both_vocabularies():
    two = {**SMALL, "family": "encoder-decoder", "target_vocab_size": 5}
    assert ModelConfig(**two, padding_id=4).padding_id == 4
    with pytest.raises(ValueError, match="padding_id must be an id below 5"):
        ModelConfig(**two, padding_id=5)


def test_source_and_target_may_have_lengths_and_paddings_of_their_own():
    two = {**SMALL, "family": "encoder-decoder", "target_vocab_size": 17}
    made = ModelConfig(**two, target_max_len=5, padding_id=10, target_padding_id=16)
    assert (made.max_len_of("encoder"), made.max_len_of("decoder")) == (9, 5)
    assert (made.padding_id, made.output_padding_id) == (10, 16)
    same = ModelConfig(**two, padding_id=10)
    assert (same.output_max_len, same.output_padding_id) == (9, 10)
    with pytest.raises(
        ValueError, match="target_padding_id must be an id below 17 or None; got 17"
    ):
        ModelConfig(**two, target_padding_id=17)


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
    "bert": dict(family="encoder", norm="post", positions="learned", activation="gelu"),
    "gpt-2": dict(family="decoder", norm="pre", activation="gelu-tanh", tie_embeddings=True),
    "llama": dict(
        norm_kind="rms", positions="rotary", activation="silu", gated=True, n_key_heads=3, n_heads=9
    ),
    "qwen3": dict(
        norm_kind="rms", positions="rotary", norm_heads=True, head_size=128, d_model=1024
    ),
    "neox": dict(norm_kind="layer", positions="rotary", parallel=True, rotary_size=16, d_model=512),
}  # fmt: skip


def test_there_is_one_description_for_each_preset():
    assert set(PRESETS) == set(DESCRIBED)


def test_what_is_not_said_is_as_in_the_papers_base_model():
    config = ModelConfig(vocab_size=37_000)
    sizes = (config.d_model, config.n_heads, config.n_layers, config.d_ff, config.dropout)
    assert sizes == (512, 8, 6, 2048, 0.1)
    assert (config.max_len, config.norm_eps) == (512, 1e-5)


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
