"""What a config.json of another project says: read as transformers reads it, or refused by name."""

import json
import re
import shutil

import pytest
import torch
from kit.hf_folders import GONE, change
from kit.hf_models import DECODERS, ENCODERS, FAMILIES, LLAMAS, SEQ2SEQ, V, made
from safetensors.torch import load_file

from transformer.checkpoint.adapters import (
    _special_ids,
    config_of,
    network_of,
    values_of,
    with_ids,
    with_usual_names,
)
from transformer.checkpoint.adapters.families import FAMILIES as READ
from transformer.checkpoint.adapters.options import padding_of

pytestmark = pytest.mark.filterwarnings("ignore")

ROTARY = (*LLAMAS, "gpt_neox")
SCALED = tuple(family for family in ROTARY if family != "phi3")
WHOLE = tuple(  # that rotate whole heads
    family
    for family in LLAMAS
    if family not in ("gemma3_text", "olmo3", "phi3", "stablelm", "glm", "glm4", "phi")
)
HALF = {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5}
LINEAR = {"rope_type": "linear", "factor": 4.0}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}  # fmt: skip
PUBLISHED_MODERNBERT = {  # keys of answerdotai/ModernBERT-base that transformers writes no more
    "rope_parameters": GONE, "layer_types": GONE, "global_attn_every_n_layers": 2,
    "global_rope_theta": 50.0, "local_rope_theta": 9.0, "layer_norm_eps": 1e-5,
    "position_embedding_type": "absolute", "deterministic_flash_attn": False,
}  # fmt: skip
LONG = {
    "rope_type": "longrope", "short_factor": [1.0, 1.1, 1.5, 3.0], "long_factor": [8.0] * 4,
    "factor": 4.0, "original_max_position_embeddings": 97,
}  # fmt: skip
PUBLISHED_PHI_3 = {  # 128k, but for the sizes
    "rope_parameters": GONE, "rope_theta": 500.0, "original_max_position_embeddings": 97,
    "rope_scaling": {
        "type": "longrope", "short_factor": [1.0, 1.1, 1.5, 3.0], "long_factor": [8.0] * 4,
    },
    "max_position_embeddings": 2000, "sliding_window": 262_144, "embd_pdrop": 0.0,
    "auto_map": {"AutoConfig": "x.Y"},
}  # fmt: skip
OF_LAYERS = ("layer_types", "no_rope_layers", "sliding_window")
SLIDING, FULL = ["sliding_attention"] * 2, ["full_attention"] * 2
OPTIONS = [
    (("t5", "mt5"), {"relative_attention_max_distance": 20}),
    (FAMILIES, {"unheard_of": 1, "torch_dtype": "float16", "chunk_size_feed_forward": 2}),
    (ROTARY, {"sliding_window": 5}),
    (ROTARY, {"sliding_window": 5, "use_sliding_window": True, "max_window_layers": 0}),
    (ROTARY, {"sliding_window": 5, "use_sliding_window": True, "layer_types": SLIDING}),
    (ROTARY, {"sliding_window": 5, "use_sliding_window": True, "layer_types": FULL}),
    (ROTARY, {"partial_rotary_factor": 0.5}),
    (ROTARY, {"rope_parameters": GONE, "partial_rotary_factor": 0.5}),
    (ROTARY, {"rope_parameters": HALF}),
    (ROTARY, {"rope_parameters": GONE, "rotary_pct": 0.5}),
    (ROTARY, {"rope_parameters": GONE, "rope_theta": 50.0}),
    (ROTARY, {"rope_parameters": GONE, "rotary_emb_base": 50.0}),
    (ROTARY, {"rope_theta": 50.0, "rotary_emb_base": 60.0}),
    (SCALED, {"rope_scaling": LINEAR}),
    (SCALED, {"rope_parameters": GONE, "rope_scaling": {"type": "linear", "factor": 4.0}}),
    (SCALED, {"rope_parameters": LLAMA3}),
    (SCALED, {"rope_parameters": LLAMA3, "original_max_position_embeddings": 40}),
    (("llama", "mistral", "qwen2"), {"rope_parameters": {**LONG, "rope_theta": 500.0}}),
    (("phi3",), {"rope_parameters": {**LONG}, "max_position_embeddings": 900}),
    (("phi3",), {"rope_parameters": GONE, "rope_scaling": {**LONG, "rope_type": "su"}}),
    (("phi3",), {"rope_parameters": GONE, "rope_scaling": {**LONG, "rope_type": "yarn"}}),
    (("phi3",), PUBLISHED_PHI_3),
    (LLAMAS, {"rms_norm_eps": 0.3}),
    (LLAMAS, {"hidden_activation": "relu"}),
    (("gemma",), {"hidden_act": "gelu"}),
    (("llama", "mistral", "qwen2"), {"hidden_act": "gelu"}),
    (("bert",), {"relative_attention_num_buckets": 9}),
    (("bert", "opt"), {"hidden_act": "gelu_python", "activation_function": "gelu_python"}),
    (("bert", "mpnet"), {"embedding_size": 8}),
    (("distilbert",), {"sinusoidal_pos_embds": True}),
    (("gpt_neo",), {"attention_types": GONE, "attention_layers": ["global", "local"]}),
    (("gpt2",), {"n_head": GONE, "num_attention_heads": 1, "n_embd": GONE, "hidden_size": 24}),
    (("gpt_neo",), {"num_heads": GONE, "num_attention_heads": 1}),
    (
        ("bloom",),
        {
            "n_head": GONE,
            "num_attention_heads": 1,
            "n_layer": GONE,
            "n_embed": 24,
            "num_hidden_layers": 2,
            "hidden_size": GONE,
        },
    ),
    (("distilbert",), {"n_heads": GONE, "num_attention_heads": 1}),
    (("t5", "mt5"), {"num_heads": GONE, "num_attention_heads": 3, "d_kv": GONE, "head_dim": 8}),
    (("gpt_neox", "bert", "roberta", "distilbert"), {"layer_norm_eps": 0.3}),
    (("gpt2",), {"layer_norm_epsilon": 0.3}),
    (("t5",), {"scale_decoder_outputs": GONE, "tie_word_embeddings": GONE}),
    (("t5",), {"scale_decoder_outputs": GONE, "tie_word_embeddings": False}),
    (("t5",), {"layer_norm_epsilon": 0.3, "feed_forward_proj": GONE, "n_positions": 5}),
    (("t5", "mt5", "umt5"), {"feed_forward_proj": "gelu", "dense_act_fn": "silu"}),
    (("t5",), {"feed_forward_proj": "gated-gelu", "is_gated_act": False, "dense_act_fn": "gelu"}),
    (("t5",), {"feed_forward_proj": "silu", "is_gated_act": GONE, "dense_act_fn": GONE}),
    (LLAMAS, {"pretraining_tp": 2}),
    (("bert", "roberta", "distilbert"), {"position_embedding_type": "relative_key"}),
    (("roberta",), {"pad_token_id": GONE}),
    (("modernbert",), PUBLISHED_MODERNBERT),
    (("modernbert",), {"sliding_window": 5}),
    (("gemma3_text",), {"attn_logit_softcapping": 0.5}),
    (("bloom",), {"pretraining_tp": 1, "slow_but_exact": True}),
    (("smollm3",), {"sliding_window": 5, "use_sliding_window": False, "layer_types": SLIDING}),
    (("smollm3",), {"sliding_window": 5, "use_sliding_window": False}),
    (("modernbert",), {"rope_parameters": {"full_attention": {"rope_type": "default"}}}),
]
REFUSED = [
    ((*DECODERS, *SEQ2SEQ), {"is_causal": False}, "is_causal"),
    ((*ENCODERS, *SEQ2SEQ), {"is_causal": True}, "is_causal"),
    (FAMILIES, {"per_layer_config": {"0": {"sliding_window": 4}}}, "per_layer_config"),
    (("gpt_neox",), {"head_dim": 4}, "head_dim"),
    (WHOLE, {"rope_parameters": {**HALF, **LINEAR}}, "partial_rotary_factor"),
    (WHOLE, {"partial_rotary_factor": 0.5, "rope_scaling": LINEAR}, "partial_rotary_factor"),
    (("phi3",), {"rope_parameters": LINEAR}, "rope_type"),
    (("phi3",), {"rope_parameters": {**LLAMA3, "rope_type": "llama3"}}, "rope_type"),
    (("stablelm",), {"qk_layernorm": True}, "qk_layernorm"),
    (("bloom",), {"pretraining_tp": 2, "slow_but_exact": True}, "slow_but_exact"),
    (("modernbert",), {"rope_scaling": LINEAR}, "rope_type"),
    (("modernbert",), {"classifier_activation": "relu"}, "classifier_activation"),
    (("stablelm",), {"use_parallel_residual": True}, "use_parallel_residual"),
]
ONLY = [  # each has one value that is read
    (
        ("gpt2",),
        dict(
            scale_attn_weights=False, scale_attn_by_inverse_layer_idx=True,
            add_cross_attention=True, tie_word_embeddings=False,
        ),
    ),
    (("bloom",), dict(apply_residual_connection_post_layernorm=True)),
    ([kind for kind in LLAMAS if kind != "gemma3_text"], dict(use_bidirectional_attention=True)),
    (
        ("bert", "roberta", "distilbert"),
        dict(
            is_decoder=True, add_cross_attention=True, tie_word_embeddings=False,
        ),
    ),
    (
        ("marian",),
        dict(
            share_encoder_decoder_embeddings=False, tie_word_embeddings=False,
            normalize_before=True, normalize_embedding=True, add_final_layer_norm=True,
            static_position_embeddings=False, add_bias_logits=True, decoder_vocab_size=9,
        ),
    ),
    (("deberta-v2",), dict(share_att_key=False, conv_kernel_size=3, pooler_hidden_act="relu")),
    (("falcon",), dict(alibi=True)),
    (("phi",), dict(qk_layernorm=True)),
    (("cohere",), dict(use_qk_norm=True)),
    (("m2m_100",), dict(pad_token_id=5)),  # generation_config.json has 1
    (("mpnet",), dict(pad_token_id=5, relative_attention_num_buckets=64)),
]  # fmt: skip
REFUSED += [(of, {name: got}, name) for of, options in ONLY for name, got in options.items()]
HEADS = {**dict.fromkeys(ENCODERS, "MaskedLM"), **dict.fromkeys(SEQ2SEQ, "Seq2SeqLM")}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """By family: a folder as transformers saves it."""
    folder = tmp_path_factory.mktemp("saved")
    for family in FAMILIES:
        made(family, 0).save_pretrained(folder / family)
    return folder


def changed(saved, family, options, folder):
    """A copy of a family's folder whose config.json says something else."""
    shutil.copytree(saved / family, folder, dirs_exist_ok=True)
    change(folder / "config.json", **options)
    return folder


def named(case):
    families, options, *_ = case
    words = (f"{name}={'gone' if x is GONE else x}" for name, x in options.items())
    return f"{len(families)} {' '.join(words)}"[:80]


@pytest.mark.parametrize("case", OPTIONS, ids=named)
def test_an_option_is_read_as_transformers_reads_it(case, saved, tmp_path):
    import transformers

    families, options = case
    torch.manual_seed(1)
    ids = torch.randint(3, V - 1, (1, 20))
    for family in families:
        folder = changed(saved, family, options, tmp_path / family)
        auto = getattr(transformers, f"AutoModelFor{HEADS.get(family, 'CausalLM')}")
        theirs = auto.from_pretrained(folder, dtype=torch.float32).eval()
        ours, _ = network_of(folder, values_of(folder), 96)
        target = [ids[:, :7]] if family in SEQ2SEQ else []
        target_ids = {"decoder_input_ids": target[0]} if target else {}
        with torch.no_grad():
            wanted = theirs(ids, **target_ids).logits
            assert torch.allclose(ours(ids, *target), wanted, atol=1e-4, rtol=1e-4), family


@pytest.mark.parametrize("family", FAMILIES)
def test_a_key_that_is_not_there_has_the_value_that_transformers_gives_it(family, saved):
    from transformers import CONFIG_MAPPING

    stored = load_file(saved / family / "model.safetensors")
    own = json.loads((saved / family / "config.json").read_text(encoding="utf-8"))
    own = {key: x for key, x in own.items() if key not in OF_LAYERS}
    large = {"max_position_embeddings": 9_000, "num_hidden_layers": 30}  # more than any default
    own |= {key: x for key, x in large.items() if key in own}
    own |= {"use_sliding_window": family != "smollm3", "max_window_layers": 1}
    every = CONFIG_MAPPING[family](**own).to_dict() | own

    def read(values):
        """The network and the special ids, or why it is not read."""
        values = with_ids(with_usual_names(dict(values)), {})
        try:
            config = config_of(values, 9_000, stored)
        except ValueError as error:
            return str(error)
        return config.replace(n_key_heads=config.key_heads), _special_ids(values, config)

    for key in every.keys() - {"model_type", "pad_token_id"}:
        values = {name: x for name, x in every.items() if name not in (key, *OF_LAYERS[:2])}
        ours = read(values)
        if not re.search("has no .*; needed: a number", str(ours)):
            assert ours == read(CONFIG_MAPPING[family](**values).to_dict()), key


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_an_option_that_would_give_other_numbers_is_refused_by_name(case, saved, tmp_path):
    families, options, name = case
    for family in families:
        folder = changed(saved, family, options, tmp_path / family)
        with pytest.raises(ValueError, match=rf"it has {name}=.*; what is read: ({name}=|\[')"):
            network_of(folder, values_of(folder), 96)


@pytest.mark.parametrize("family", sorted(READ.keys() - {"new"}))  # which has a file of its own
def test_other_names_of_keys_are_those_of_transformers(family):
    from transformers import CONFIG_MAPPING

    assert READ[family].names == CONFIG_MAPPING[family].attribute_map


def test_two_names_of_one_number_must_agree(saved, tmp_path):
    for family, other, usual in (
        ("gpt2", "num_attention_heads", "n_head"), ("bloom", "num_hidden_layers", "n_layer"),
        ("distilbert", "num_attention_heads", "n_heads"), ("t5", "head_dim", "d_kv"),
        ("bart", "num_attention_heads", "encoder_attention_heads"),
    ):  # fmt: skip
        folder = changed(saved, family, {other: 1}, tmp_path / family)
        said = f"it has {other}=1 and {usual}=., two names of one number; needed: the same"
        with pytest.raises(ValueError, match=said):
            values_of(folder)


def test_a_window_that_no_text_or_layer_has_is_none(saved, tmp_path):
    for number, options in enumerate(({"sliding_window": 96}, {"layer_types": FULL})):
        folder = changed(saved, "mistral", {"sliding_window": 5} | options, tmp_path / str(number))
        assert config_of(values_of(folder), 96, {}).window is None
    options = {"sliding_window": 96, "use_sliding_window": True, "no_rope_layers": [0, 1]}
    folder = changed(saved, "smollm3", options, tmp_path / "smollm3")
    types = config_of(values_of(folder), 96, {}).layer_types
    assert types == ("full_attention_nope", "full_attention")


def test_padding_is_an_existing_id_that_is_not_text():
    for got, wanted in ((0, 0), (60, 60), (61, None), (-1, None), (None, None), (2, None)):
        assert padding_of({"pad_token_id": got, "eos_token_id": [1, 2]}, 61, ["eos_token_id"]) == (
            wanted
        )
