"""Networks of transformers with random weights, in folders as it saves them: the tests' oracle."""

import re
from typing import Any

import torch

V = 61
SIZES = [  # (features, heads, heads of keys, layers, wide, tied)
    (24, 3, 1, 2, 40, True),
    (32, 4, 2, 1, 52, False),
    (16, 2, 2, 3, 36, False),
    (48, 6, 3, 2, 64, True),
    (40, 5, 1, 1, 24, False),
]
ENCODERS = {  # and how the names of their classes begin
    "bert": "Bert", "distilbert": "DistilBert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta",
    "camembert": "Camembert", "mpnet": "MPNet", "electra": "Electra", "modernbert": "ModernBert",
    "albert": "Albert", "deberta-v2": "DebertaV2", "nomic_bert": "NomicBert", "gte": "Gte",
}  # fmt: skip
LLAMAS = {  # relatives of Llama, likewise
    "llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "gemma": "Gemma",
    "gemma2": "Gemma2", "gemma3_text": "Gemma3", "phi3": "Phi3", "olmo": "Olmo",
    "olmo2": "Olmo2", "olmo3": "Olmo3", "exaone4": "Exaone4", "glm": "Glm", "glm4": "Glm4",
    "phi": "Phi", "cohere": "Cohere",
    "smollm3": "SmolLM3", "granite": "Granite", "stablelm": "StableLm", "starcoder2": "Starcoder2",
}  # fmt: skip
DECODERS = (
    "gpt2",
    "gpt_bigcode",
    "gptj",
    "codegen",
    "mpt",
    "falcon",
    "gpt_neo",
    "opt",
    "xglm",
    "gpt_neox",
    "bloom",
    *LLAMAS,
)
SEQ2SEQ = {  # and their classes
    "marian": "MarianMTModel", "t5": "T5ForConditionalGeneration",
    "mt5": "MT5ForConditionalGeneration", "umt5": "UMT5ForConditionalGeneration",
    "bart": "BartForConditionalGeneration", "mbart": "MBartForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration", "pegasus": "PegasusForConditionalGeneration",
}  # fmt: skip
FAMILIES = (*DECODERS, *ENCODERS, *SEQ2SEQ)
LLAMA3 = dict(
    rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=64,
)  # fmt: skip
ROTARY = [
    dict(rope_type="default", rope_theta=10_000.0),
    LLAMA3,
    dict(rope_type="linear", rope_theta=1_000.0, factor=4.0),
    dict(rope_type="dynamic", rope_theta=10_000.0, factor=2.0),
    dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=32),
]
PLAIN = dict(rope_type="default", rope_theta=500.0)


def made(
    family: str, size: int, seed: int = 0, vocab_size: int = V, head: str = "", **options: Any
) -> Any:
    """A network of a family, in evaluation mode, its weights spread; size: 0 to 4.

    head: what its class is called after the family, "Model" for one without a head; "": the one
    that predicts tokens.
    options: of its configuration.
    """
    import transformers  # slow to import, so only where needed

    torch.manual_seed(seed)
    config = _config(transformers, family, size, vocab_size)
    config.update(options)
    model = getattr(transformers, class_of(family, head))(config).eval()
    plus_one = family.startswith("gemma")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if family in ("marian", "pegasus") and "embed_positions" in name:
                continue  # fixed waves
            noise = torch.randn_like(parameter)
            is_norm = "norm" in name.lower() or "ln_" in name
            middle = 1.0 if is_norm and name.endswith("weight") and not plus_one else 0.0
            parameter.copy_(middle + (0.2 if is_norm or "bias" in name else 0.3) * noise)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
    return model


def class_of(family: str, head: str) -> str:
    """The name of a family's class with a head; see `made`."""
    if not head:
        return _CLASSES[family]
    name = re.sub("LMHeadModel|For[A-Z].*|MTModel", "", _CLASSES[family])
    return f"{name}{'Text' * (family == 'gemma3_text')}{head}"


_CLASSES = {
    "gpt2": "GPT2LMHeadModel",
    "gpt_bigcode": "GPTBigCodeForCausalLM",
    "gptj": "GPTJForCausalLM",
    "codegen": "CodeGenForCausalLM",
    "mpt": "MptForCausalLM",
    "falcon": "FalconForCausalLM",
    "gpt_neo": "GPTNeoForCausalLM",
    "opt": "OPTForCausalLM",
    "xglm": "XGLMForCausalLM",
    "gpt_neox": "GPTNeoXForCausalLM",
    "bloom": "BloomForCausalLM",
    **{family: f"{name}ForCausalLM" for family, name in LLAMAS.items()},
    **{family: f"{name}ForMaskedLM" for family, name in ENCODERS.items()},
    **SEQ2SEQ,
}


def _config(transformers: Any, family: str, size: int, vocab_size: int) -> Any:
    width, heads, key_heads, layers, wide, tied = SIZES[size]
    ids: dict[str, Any] = dict(
        vocab_size=vocab_size, bos_token_id=1, eos_token_id=2, pad_token_id=0
    )
    if family == "gpt2":
        sizes = dict(n_embd=width, n_head=heads, n_layer=layers, n_positions=100)
        sizes["n_inner"] = wide if size != 3 else None  # four times as wide
        act = ["gelu_new", "gelu", "relu", "quick_gelu", "silu"][size]
        return transformers.GPT2Config(**ids, **sizes, activation_function=act)
    if family == "falcon":
        kinds = [dict(), dict(new_decoder_architecture=True, num_kv_heads=2),
                 dict(multi_query=False, parallel_attn=False, bias=True),
                 dict(new_decoder_architecture=True, num_kv_heads=3, num_ln_in_parallel_attn=1),
                 dict(multi_query=False, bias=True)]  # fmt: skip
        return transformers.FalconConfig(
            **ids, hidden_size=width, num_attention_heads=heads, num_hidden_layers=layers,
            max_position_embeddings=100, alibi=False, ffn_hidden_size=wide,
            rope_parameters=ROTARY[size], tie_word_embeddings=tied, **kinds[size],
            attn_implementation="eager",  # chosen later, it loses its causal mask
        )  # fmt: skip
    if family == "mpt":
        attention = dict(softmax_scale=0.4) if size == 1 else {}
        return transformers.MptConfig(
            **ids, d_model=width, n_heads=heads, n_layers=layers, max_seq_len=100,
            layer_norm_epsilon=[1e-5, 1e-3][size == 2], attn_config=attention,
        )  # fmt: skip
    if family == "gpt_bigcode":
        return transformers.GPTBigCodeConfig(
            **ids, n_embd=width, n_head=heads, n_layer=layers, n_positions=100,
            n_inner=wide if size != 3 else None, multi_query=size not in (1, 4),
            activation_function=["gelu_pytorch_tanh", "gelu", "relu", "silu", "gelu_new"][size],
        )  # fmt: skip
    if family in ("gptj", "codegen"):
        many = family == "codegen"  # which has heads in fours
        name = "CodeGenConfig" if many else "GPTJConfig"
        return getattr(transformers, name)(
            **ids, n_embd=32 if many else width, n_head=[4, 8][size == 3] if many else heads,
            n_layer=layers, n_positions=100, n_inner=wide if size != 3 else None,
            rotary_dim=[4, 4, 8, 2, 4][size] if size != 3 or not many else 4,
            activation_function=["gelu_new", "gelu", "relu", "gelu_new", "silu"][size],
        )  # fmt: skip
    if family == "gpt_neo":
        return transformers.GPTNeoConfig(
            **ids, hidden_size=width, num_heads=heads, num_layers=layers, window_size=5,
            intermediate_size=wide if size != 3 else None, max_position_embeddings=100,
            attention_types=[[["local"], 1], [["global", "local"][: layers - 1], 1]],
            activation_function=["gelu_new", "gelu", "relu", "gelu_new", "silu"][size],
        )  # fmt: skip
    if family == "bloom":
        return transformers.BloomConfig(**ids, hidden_size=width, n_head=heads, n_layer=layers)
    if family == "opt":
        return transformers.OPTConfig(
            **ids, hidden_size=width, num_attention_heads=heads, num_hidden_layers=layers,
            ffn_dim=wide, max_position_embeddings=100, do_layer_norm_before=size != 3,
            word_embed_proj_dim=10 if size in (1, 3) else width, enable_bias=size != 2,
            activation_function="relu" if size else "gelu",
        )  # fmt: skip
    if family == "xglm":
        return transformers.XGLMConfig(
            **ids | {"pad_token_id": 1, "bos_token_id": 0}, d_model=width, attention_heads=heads,
            num_layers=layers,
            ffn_dim=wide, max_position_embeddings=100, scale_embedding=tied,
            activation_function=["gelu", "relu", "gelu_new", "gelu", "silu"][size],
        )  # fmt: skip
    usual = dict(
        hidden_size=width, num_attention_heads=heads, num_hidden_layers=layers,
        intermediate_size=wide, max_position_embeddings=100,
    )  # fmt: skip
    if family == "gpt_neox":
        shares = [0.25, 0.5, 1.0, 0.5, 0.5]
        return transformers.GPTNeoXConfig(
            **ids, **usual, tie_word_embeddings=tied, use_parallel_residual=size != 2,
            attention_bias=size != 3, hidden_act="gelu" if size else "gelu_new",
            rope_parameters={**ROTARY[size], "partial_rotary_factor": shares[size]},
        )  # fmt: skip
    if family in LLAMAS:
        own = dict(
            num_key_value_heads=key_heads, tie_word_embeddings=tied, rope_parameters=ROTARY[size]
        )
        own |= _OWN[family](size, width, heads)
        name = f"{LLAMAS[family]}{'Text' * (family == 'gemma3_text')}Config"
        return getattr(transformers, name)(**ids, **usual, **own)
    act = (
        ["gelu", "relu", "gelu_new", "gelu", "silu"][size]
        if family in ("bert", "distilbert")
        else "gelu"
    )
    if family == "distilbert":
        sizes = dict(dim=width, n_heads=heads, n_layers=layers, hidden_dim=wide, activation=act)
        return transformers.DistilBertConfig(
            vocab_size=vocab_size, pad_token_id=0, max_position_embeddings=100, **sizes
        )
    if family == "modernbert":
        pattern = [{}, dict(global_attn_every_n_layers=2), {}, {}, {}][size]
        if size == 2:
            pattern = dict(layer_types=["sliding_attention"] * 2 + ["full_attention"])
        return transformers.ModernBertConfig(
            **ids, **usual, **pattern, cls_token_id=1, sep_token_id=2, tie_word_embeddings=tied,
            local_attention=[6, 4, 9, 128, 3][size], hidden_activation=["gelu", "silu"][size == 1],
            classifier_activation=["gelu", "silu"][size == 1], norm_bias=size == 1,
            attention_bias=size == 2, mlp_bias=size == 3, decoder_bias=size != 2,
            classifier_bias=size == 3, classifier_pooling=["cls", "mean"][size % 2],
        )  # fmt: skip
    if family == "albert":
        shared = [dict(), dict(), dict(num_hidden_groups=2), dict(inner_group_num=2), dict()][size]
        return transformers.AlbertConfig(
            vocab_size=vocab_size, pad_token_id=0, **usual, **shared, embedding_size=10,
            hidden_act=["gelu_new", "relu", "gelu", "gelu_new", "silu"][size],
        )  # fmt: skip
    if family == "deberta-v2":
        return transformers.DebertaV2Config(
            vocab_size=vocab_size, pad_token_id=0, **usual, type_vocab_size=[0, 2, 0, 0, 0][size],
            hidden_act=["gelu", "relu", "gelu_new", "gelu", "silu"][size], relative_attention=True,
            position_biased_input=False, share_att_key=True, norm_rel_ebd="layer_norm",
            pos_att_type=["p2c|c2p", ["c2p", "p2c"]][size % 2],
            position_buckets=[8, 4, 16, 6, 256][size],
            max_relative_positions=[-1, 12, 40, -1, -1][size],
        )  # fmt: skip
    if family in ("nomic_bert", "gte"):
        config = getattr(transformers, f"{ENCODERS[family]}Config")
        return config(
            vocab_size=vocab_size, pad_token_id=0, **usual,
            type_vocab_size=[2, 1, 2 * (family != "gte"), 1, 2][size],
            hidden_act="gelu" if family == "gte" or size == 3 else "silu",
            rope_parameters=ROTARY[size],
        )  # fmt: skip
    if family in ENCODERS:
        two = family in ("bert", "electra")  # types of tokens
        own = {"embedding_size": width if size == 1 else 10} if family == "electra" else {}
        return getattr(transformers, f"{ENCODERS[family]}Config")(
            vocab_size=vocab_size,
            pad_token_id=0 if two else 1,
            **usual,
            **own,
            hidden_act=act,
            type_vocab_size=2 if two else 1,
        )
    if family in ("t5", "mt5", "umt5"):
        return getattr(transformers, f"{family.upper()}Config")(
            vocab_size=vocab_size, d_model=width, d_ff=wide,
            d_kv=[8, 8, 5, 8, 12][size] - 3 * (family == "umt5"),
            num_layers=layers, num_heads=heads, tie_word_embeddings=tied,
            num_decoder_layers=1 if size in (0, 2) else layers,
            feed_forward_proj=["relu", "gated-gelu", "gated-silu", "gated-gelu", "gelu"][size],
            relative_attention_num_buckets=[32, 8, 12, 6, 32][size], decoder_start_token_id=0,
        )  # fmt: skip
    sides = {
        f"{side}_{name}": x
        for side in ("encoder", "decoder")
        for name, x in (("layers", layers), ("attention_heads", heads), ("ffn_dim", wide))
    }
    sides["decoder_layers"] = 1 if size in (0, 2) else layers  # as distilbart and ByT5 have
    ids = dict(pad_token_id=1, decoder_start_token_id=2, eos_token_id=2)
    if family == "marian":
        ids = dict.fromkeys(("pad_token_id", "decoder_start_token_id"), vocab_size - 1)
        ids["eos_token_id"] = 0
    names = {
        "marian": "Marian",
        "bart": "Bart",
        "mbart": "MBart",
        "m2m_100": "M2M100",
        "pegasus": "Pegasus",
    }
    return getattr(transformers, f"{names[family]}Config")(
        vocab_size=vocab_size, d_model=width, **sides, scale_embedding=tied, **ids,
        activation_function=["swish", "relu", "gelu", "swish", "silu"][size],
        max_position_embeddings=100, forced_eos_token_id=None,
    )  # fmt: skip


def _phi3_rope(share: float, size: int, head_size: int) -> dict[str, Any]:
    plain = {**PLAIN, "partial_rotary_factor": share}
    if size < 3:  # two of them as Phi-3 4k, three as 128k
        return plain
    n_pairs = int(head_size * share) // 2
    short = [1.0 + 0.1 * pair for pair in range(n_pairs)]
    return plain | dict(
        rope_type="longrope", short_factor=short, long_factor=[9.0] * n_pairs,
        **{"attention_factor": 1.3} if size == 3 else {},
    )  # fmt: skip


_OWN: dict[str, Any] = {
    "llama": lambda size, width, heads: dict(
        attention_bias=size == 1, mlp_bias=size == 2, head_dim=12 if size == 4 else None
    ),
    "mistral": lambda size, width, heads: dict(
        sliding_window=[None, 5, 200, 7, None][size], head_dim=[None, 4, None, 16, None][size]
    ),
    "qwen2": lambda size, width, heads: dict(
        use_sliding_window=size == 3, sliding_window=6, max_window_layers=0
    ),
    "qwen3": lambda size, width, heads: dict(head_dim=[8, 12, 8, 16, 6][size]),
    "gemma": lambda size, width, heads: dict(head_dim=[16, 8, 8, 12, 8][size]),
    "gemma2": lambda size, width, heads: dict(
        head_dim=[16, 8, 8, 12, 8][size],
        query_pre_attn_scalar=[24, 8, 5, 256, 8][size],
        sliding_window=[5, 4, 6, 200, 3][size],
        attn_logit_softcapping=[2.0, None][size == 1],
        final_logit_softcapping=[3.0, None][size == 2],
        attention_bias=size == 4,
    ),
    "gemma3_text": lambda size, width, heads: dict(
        head_dim=[16, 8, 8, 12, 8][size],
        query_pre_attn_scalar=[24, 8, 5, 256, 8][size],
        sliding_window=[5, 4, 6, 200, 3][size],
        sliding_window_pattern=[2, 6, 3, 2, 1][size],
        rope_parameters={"full_attention": ROTARY[size], "sliding_attention": PLAIN},
    ),
    "phi3": lambda size, width, heads: dict(
        original_max_position_embeddings=97,
        rope_parameters=_phi3_rope([1.0, 0.5][size in (1, 3)], size, width // heads),
        sliding_window=[None, 5, 200, 7, None][size],
    ),
    "olmo": lambda size, width, heads: dict(attention_bias=size == 1),
    "olmo2": lambda size, width, heads: dict(attention_bias=size == 1),
    "olmo3": lambda size, width, heads: dict(
        attention_bias=size == 1,
        sliding_window=[5, 4, 6, 200, 3][size],
        rope_parameters={"full_attention": ROTARY[size], "sliding_attention": PLAIN},
    ),
    "exaone4": lambda size, width, heads: dict(
        sliding_window=[5, None, 6, 200, 3][size],
        layer_types=None
        if size in (0, 3)
        else ["full_attention", "sliding_attention", "full_attention"][: SIZES[size][3]],
    ),
    "glm": lambda size, width, heads: dict(
        attention_bias=size != 2,
        head_dim=[8, 12, 16, 8, 8][size],
        rope_parameters={**ROTARY[size], "partial_rotary_factor": [0.5, 1.0][size == 3]},
    ),
    "glm4": lambda size, width, heads: dict(
        attention_bias=size == 1,
        head_dim=[8, 12, 16, 8, 8][size],
        rope_parameters={**ROTARY[size], "partial_rotary_factor": [0.5, 1.0][size == 3]},
    ),
    "phi": lambda size, width, heads: dict(
        hidden_act=["gelu_new", "gelu"][size == 1],
        rope_parameters={**ROTARY[size], "partial_rotary_factor": [0.5, 1.0][size == 3]},
        tie_word_embeddings=False,
    ),
    "cohere": lambda size, width, heads: dict(
        attention_bias=size == 1, logit_scale=[0.0625, 1.0][size == 2]
    ),
    "smollm3": lambda size, width, heads: dict(
        no_rope_layer_interval=[2, 4, 3, 1, 2][size],
        attention_bias=size == 1,
        mlp_bias=size == 2,
        use_sliding_window=size > 1,
        sliding_window=6,
    ),
    "granite": lambda size, width, heads: dict(
        embedding_multiplier=[1.0, 12.0][size > 0],
        residual_multiplier=[1.0, 0.22][size > 1],
        attention_multiplier=[1.0, 0.1][size > 1],
        logits_scaling=[1.0, 8.0][size > 0],
        attention_bias=size == 1,
        mlp_bias=size == 2,
    ),
    "stablelm": lambda size, width, heads: dict(
        use_qkv_bias=size in (1, 2),
        rope_parameters={**ROTARY[size], "partial_rotary_factor": [0.25, 0.5][size > 0]},
    ),
    "starcoder2": lambda size, width, heads: dict(
        use_bias=size != 2, sliding_window=[None, 5, 200, 7, None][size]
    ),
}
