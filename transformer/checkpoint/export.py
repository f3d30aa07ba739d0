"""Write a model as a folder that transformers opens: the reverse of the adapters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from transformer.checkpoint.adapters import bert_kinds, config_of, gpt2, llama, llama_kinds, neox
from transformer.checkpoint.adapters.options import ACTIVATIONS
from transformer.checkpoint.writing import make_folder
from transformer.checks import shortened
from transformer.model.config import ModelConfig
from transformer.model.weights import weights_of
from transformer.tokenizer import Tokenizer
from transformer.tokenizer.foreign import TheirTokenizer

Weights = dict[str, Tensor]
# Fields of a ModelConfig that a trained network's logits do not depend on. Those of rotary
# positions are compared together.
_UNIMPORTANT = (
    "dropout", "attention_dropout", "feed_forward_dropout", "init", "padding_id",
    "target_padding_id", "rotary_size", "rotary_base", "rotary_factor", "rotary_low", "rotary_high",
    "rotary_trained_len", "rotary_scaling", "rotary_multiplier", "rotary_pair_factors",
)  # fmt: skip


class Target(NamedTuple):
    """A family that is written.

    architecture: its class in transformers. prefix: of all names but the head's. values: its
    config.json. names: its name for each of our modules, with {layer}. changed: converts our
    tensors before they are renamed.
    """

    architecture: str
    prefix: str
    values: Callable[[ModelConfig], dict[str, Any]]
    names: Mapping[str, str]
    changed: Callable[[Weights, ModelConfig], Weights] = lambda weights, config: weights


def export(
    folder: str | Path, network: nn.Module, config: ModelConfig, tokenizer: Tokenizer
) -> str:
    """Write a folder that AutoModelForCausalLM (a BERT: AutoModelForMaskedLM) and AutoTokenizer
    open, with the same logits and ids; returns its model_type.

    Raises ValueError for a network that none of these families describes; OSError if writing fails.
    """
    stored = {name: x.detach().cpu() for name, x in weights_of(network).items()}
    name, values = _described(config)
    target = TARGETS[name]
    folder = make_folder(folder)
    renamed = _renamed(target, config, target.changed(stored, config))
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    ids = {
        "bos_token_id": tokenizer.start_id if _is_theirs(tokenizer) else tokenizer.end_id,
        "eos_token_id": sorted(tokenizer.end_ids),
        "pad_token_id": config.padding_id,
    }
    values |= {"architectures": [target.architecture], "model_type": name, **ids}
    _write(folder / "config.json", values)
    if config.family == "decoder":
        _write(folder / "generation_config.json", ids)
    _write_tokenizer(folder, config, tokenizer)
    return name


def _described(config: ModelConfig) -> tuple[str, dict[str, Any]]:
    """The family and the config.json that are read as this configuration.

    Raises ValueError that names what the nearest family lacks.
    """
    wanted, differences = _meaning(config), dict[str, list[str]]()
    for name, target in TARGETS.items():
        values = target.values(config) | {"model_type": name}
        names = dict.fromkeys(target.names.values())
        meaning = _meaning(config_of(values, config.max_len, names))
        differences[name] = sorted(key for key in wanted if wanted[key] != meaning[key])
        if not differences[name]:
            return name, values
    nearest = min(differences, key=lambda name: len(differences[name]))
    got = ", ".join(f"{key}={wanted[key]!r}" for key in differences[nearest])
    raise ValueError(
        f"no family that is written has {got}; what is written: {list(TARGETS)}, as transformers "
        "has them"
    )


def _meaning(config: ModelConfig) -> dict[str, Any]:
    """The fields that decide what a network computes, with defaults filled in."""
    values = {key: x for key, x in config.to_dict().items() if key not in _UNIMPORTANT}
    return values | {
        "n_key_heads": config.key_heads,
        "head_size": config.d_head,
        "output_bias": config.has_output_bias,
        "n_token_types": max(int(config.family == "encoder"), config.n_token_types),
        "rotary": config.rotary if config.positions == "rotary" else None,
    }


def _renamed(target: Target, config: ModelConfig, weights: Weights) -> Weights:
    """Tensors under the family's names. Each has its own memory, as safetensors needs."""
    names = {}
    for ours, theirs in target.names.items():
        for layer in range(config.n_layers) if "{layer}" in ours else (0,):
            names[ours.format(layer=layer)] = theirs.format(layer=layer)
    named = {}
    for name, tensor in weights.items():
        module, _, kind = name.rpartition(".")
        theirs = names.get(name) or f"{names[module]}.{kind}"
        whole = theirs if theirs.startswith(_HEADS) else f"{target.prefix}{theirs}"
        named[whole] = tensor.contiguous().clone()
    return named


_HEADS = ("lm_head", "embed_out", "cls.")


def _write(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _is_theirs(tokenizer: Tokenizer) -> bool:
    return isinstance(tokenizer, TheirTokenizer)


def _write_tokenizer(folder: Path, config: ModelConfig, tokenizer: Tokenizer) -> None:
    """tokenizer.json, with the end of another text before each text, and the special tokens."""
    path = folder / "tokenizer.json"
    tokenizer.save(path)
    if not path.is_file():  # a SentencePiece file, which its settings came with
        return
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.max_len,
        "clean_up_tokenization_spaces": False,
    }
    named = {"eos_token": tokenizer.end_id, "bos_token": tokenizer.start_id}
    named |= {} if config.padding_id is None else {"pad_token": config.padding_id}
    named |= {} if tokenizer.mask_id is None else {"mask_token": tokenizer.mask_id}
    if not _is_theirs(tokenizer):
        named["bos_token"] = tokenizer.end_id
        content = json.loads(path.read_text(encoding="utf-8"))
        end = tokenizer.label(tokenizer.end_id)
        content["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": end, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
            ],
            "pair": [],
            "special_tokens": {end: {"id": end, "ids": [tokenizer.end_id], "tokens": [end]}},
        }  # fmt: skip
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    settings |= {name: tokenizer.label(index) for name, index in named.items()}
    _write(folder / "tokenizer_config.json", settings)


def _activation(config: ModelConfig) -> str:
    """transformers' name of the activation. Raises ValueError where it has none."""
    names = [theirs for theirs, ours in ACTIVATIONS.items() if ours == config.activation]
    if not names:
        raise ValueError(f"no family that is written has activation={shortened(config.activation)}")
    return names[0]


def _usual(config: ModelConfig) -> dict[str, Any]:
    """The keys that most families share."""
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_attention_heads": config.n_heads,
        "num_hidden_layers": config.n_layers,
        "max_position_embeddings": config.max_len,
        "intermediate_size": config.d_ff,
        "hidden_act": _activation(config),
        "tie_word_embeddings": config.tie_embeddings,
    }


def _gpt2(config: ModelConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocab_size,
        "n_embd": config.d_model,
        "n_head": config.n_heads,
        "n_layer": config.n_layers,
        "n_positions": config.max_len,
        "n_inner": config.d_ff,
        "activation_function": _activation(config),
        "layer_norm_epsilon": config.norm_eps,
        "tie_word_embeddings": config.tie_embeddings,
    }


def _llama(config: ModelConfig) -> dict[str, Any]:
    return _usual(config) | {
        "num_key_value_heads": config.key_heads,
        "head_dim": config.d_head,
        "rms_norm_eps": config.norm_eps,
        "attention_bias": config.attention_bias,
        "mlp_bias": config.feed_forward_bias,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
    }


def _neox(config: ModelConfig) -> dict[str, Any]:
    share = config.rotary.size / config.d_head
    return _usual(config) | {
        "layer_norm_eps": config.norm_eps,
        "attention_bias": config.attention_bias,
        "use_parallel_residual": config.parallel,
        "rope_parameters": {
            "rope_type": "default", "rope_theta": config.rotary_base, "partial_rotary_factor": share
        },
    }  # fmt: skip


def _bert(config: ModelConfig) -> dict[str, Any]:
    types = max(1, config.n_token_types)
    return _usual(config) | {"layer_norm_eps": config.norm_eps, "type_vocab_size": types}


def _joined(weights: Weights, config: ModelConfig, by_head: bool) -> Weights:
    """Each layer's q, k and v in one matrix: one after the other, or head by head."""
    joined = dict(weights)
    for layer in range(config.n_layers):
        here = f"decoder.layers.{layer}.self_attention"
        for kind in ("weight", "bias"):
            names = [f"{here}.{part}.{kind}" for part in ("query", "key", "value")]
            if names[0] not in joined:
                continue
            parts = [joined.pop(name) for name in names]
            if by_head:
                heads = [x.unflatten(0, (config.n_heads, config.d_head)) for x in parts]
                joined[f"{here}.joined.{kind}"] = torch.stack(heads, dim=1).flatten(0, 2)
            else:
                joined[f"{here}.joined.{kind}"] = torch.cat(parts)
    return joined


def _transposed(weights: Weights, config: ModelConfig) -> Weights:
    """GPT-2's matrices are stored (in, out)."""
    return {
        name: x.T if name.startswith("decoder.layers.") and x.dim() == 2 else x
        for name, x in _joined(weights, config, by_head=False).items()
    }


def _bert_weights(weights: Weights, config: ModelConfig) -> Weights:
    """BERT always adds a vector of the token's type. transformers reads a bias of its own for a
    head that is not tied."""
    none = torch.zeros(1, config.d_model)
    own = {} if config.tie_embeddings else {"head.own_bias": weights["head.bias"]}
    return {"embedding.types.weight": none, **weights, **own}


def _layers(names: Mapping[str, str], stack: str, theirs: str) -> dict[str, str]:
    return {
        f"{stack}.layers.{{layer}}.{key}": f"{theirs}.{{layer}}.{x}" for key, x in names.items()
    }


def _llama_names(kind: str) -> dict[str, str]:
    return {
        "embedding.tokens": "embed_tokens",
        "head": "lm_head",
        "decoder.norm": "norm",
        **_layers(llama_kinds.KINDS[kind].layer, "decoder", "layers"),
    }


_NEOX, _BERT = neox.KINDS["gpt_neox"], bert_kinds.KINDS["bert"]
TARGETS: dict[str, Target] = {
    "gpt2": Target(
        "GPT2LMHeadModel", gpt2.PREFIX, _gpt2,
        {
            "embedding.tokens": "wte",
            "embedding.positions.table": "wpe",
            "head": "lm_head",
            "decoder.norm": "ln_f",
            **_layers(gpt2.LAYER | {"self_attention.joined": "attn.c_attn"}, "decoder", "h"),
        },
        _transposed,
    ),
    "llama": Target("LlamaForCausalLM", llama.PREFIX, _llama, _llama_names("llama")),
    "qwen3": Target("Qwen3ForCausalLM", llama.PREFIX, _llama, _llama_names("qwen3")),
    "gpt_neox": Target(
        "GPTNeoXForCausalLM", _NEOX.prefix, _neox,
        {
            "embedding.tokens": _NEOX.tokens,
            "head": _NEOX.head,
            "decoder.norm": _NEOX.norm,
            **_layers(
                neox.LAYER
                | {
                    "self_attention.joined": "attention.query_key_value",
                    "self_attention.output": "attention.dense",
                },
                "decoder", _NEOX.layers,
            ),
        },
        lambda weights, config: _joined(weights, config, by_head=True),
    ),
    "bert": Target(
        "BertForMaskedLM", _BERT.prefix, _bert,
        {
            "embedding.tokens": "embeddings.word_embeddings",
            "embedding.positions.table": "embeddings.position_embeddings",
            "embedding.types": "embeddings.token_type_embeddings",
            "embedding.norm": "embeddings.LayerNorm",
            "transform.dense": _BERT.token_head.dense,
            "transform.norm": _BERT.token_head.norm,
            "head.weight": f"{_BERT.token_head.decoder}.weight",
            "head.bias": _BERT.token_head.bias,
            "head.own_bias": f"{_BERT.token_head.decoder}.bias",
            **_layers(_BERT.inside, "encoder", _BERT.layer),
        },
        _bert_weights,
    ),
}  # fmt: skip
