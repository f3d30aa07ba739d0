"""The families that are read, by their model_type, and why others are not.

To add one: an entry of FAMILIES.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from transformer.checkpoint.adapters import (
    bart,
    bert,
    falcon,
    gpt2,
    gpt_bigcode,
    gpt_neo,
    gptj,
    llama,
    modernbert,
    mpt,
    neox,
    opt,
    rotary_bert,
    t5,
    xglm,
)
from transformer.checkpoint.adapters.bert_kinds import KINDS as BERTS
from transformer.checkpoint.adapters.llama_kinds import KINDS as LLAMAS
from transformer.checks import shortened
from transformer.model.config import ModelConfig


class Adapter(Protocol):
    """A module that reads a family's config.json and weights."""

    @property
    def config(self) -> Callable[..., ModelConfig]:
        """config(values, max_len, stored): convert config.json."""

    @property
    def weights(self) -> Callable[..., dict[str, Tensor]]:
        """weights(stored, config, values): rename their weights."""


class Family(NamedTuple):
    """names: usual names of keys of config.json, by the family's own. ids: those of start and end
    where its files name none."""

    adapter: Adapter
    names: Mapping[str, str] = {}
    ids: Mapping[str, int] = {}


def _ids(**ids: int) -> dict[str, int]:
    return {f"{name}_token_id": index for name, index in ids.items()}


def _usual(width: str, heads: str, layers: str, length: str = "") -> dict[str, str]:
    """Names of a family's sizes."""
    theirs = ("hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings")
    pairs = zip(theirs, (width, heads, layers, length), strict=True)
    return {other: usual for other, usual in pairs if usual}


_GPT_2 = _usual("n_embd", "n_head", "n_layer", "n_positions")
_FAIRSEQ = _usual("d_model", "encoder_attention_heads", "encoder_layers")
_T5 = {"head_dim": "d_kv", **_usual("d_model", "num_heads", "num_layers")}
_OF_LLAMAS: dict[str, dict[str, int]] = {
    **dict.fromkeys(("llama", "mistral", "granite", "phi"), _ids(bos=1, eos=2)),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text"), _ids(bos=2, eos=1)),
    **dict.fromkeys(("olmo", "olmo2", "olmo3"), _ids(eos=50279)),
    "phi3": _ids(bos=1, eos=32000),
    "cohere": _ids(bos=5, eos=255001),
    "exaone4": _ids(bos=0, eos=2),
    "smollm3": _ids(bos=128000, eos=128001),
    "stablelm": _ids(bos=0, eos=0),
    "starcoder2": _ids(bos=50256, eos=50256),
}
_OF_BERTS = dict.fromkeys(("roberta", "xlm-roberta", "camembert", "mpnet"), _ids(bos=0, eos=2))
FAMILIES: dict[str, Family] = {
    "gpt2": Family(gpt2, _GPT_2, _ids(bos=50256, eos=50256)),
    "gpt_bigcode": Family(gpt_bigcode, _GPT_2, _ids(bos=50256, eos=50256)),
    "gpt_neo": Family(gpt_neo, _usual("", "num_heads", "num_layers"), _ids(bos=50256, eos=50256)),
    "gptj": Family(gptj, _GPT_2, _ids(bos=50256, eos=50256)),
    "codegen": Family(gptj, _GPT_2, _ids(bos=50256, eos=50256)),
    "falcon": Family(falcon, {}, _ids(bos=11, eos=11)),
    "mpt": Family(mpt, _usual("d_model", "n_heads", "n_layers")),
    "opt": Family(opt, {}, _ids(bos=2, eos=2)),
    "xglm": Family(xglm, _usual("d_model", "attention_heads", "num_layers"), _ids(bos=0, eos=2)),
    "gpt_neox": Family(neox, {}, _ids(bos=0, eos=2)),
    "bloom": Family(neox, _usual("", "n_head", "n_layer"), _ids(bos=1, eos=2)),
    **{kind: Family(llama, {}, _OF_LLAMAS.get(kind, {})) for kind in LLAMAS},
    **{kind: Family(bert, {}, _OF_BERTS.get(kind, {})) for kind in BERTS},
    "albert": Family(bert, {}, _ids(bos=2, eos=3)),
    "distilbert": Family(bert, _usual("dim", "n_heads", "n_layers")),
    **dict.fromkeys(rotary_bert.KINDS, Family(rotary_bert)),
    "modernbert": Family(modernbert, {}, _ids(bos=50281, eos=50282)),
    "bart": Family(bart, _FAIRSEQ, _ids(bos=0, eos=2, decoder_start=2)),
    "mbart": Family(bart, _FAIRSEQ, _ids(bos=0, eos=2)),
    "m2m_100": Family(bart, _FAIRSEQ, _ids(bos=0, eos=2, decoder_start=2)),
    "pegasus": Family(bart, _FAIRSEQ, _ids(eos=1, decoder_start=0)),
    "marian": Family(bart, _FAIRSEQ, _ids(eos=0, decoder_start=58100)),
    "t5": Family(t5, _T5, _ids(eos=1)),
    "mt5": Family(t5, _T5, _ids(eos=1, decoder_start=0)),
    "umt5": Family(t5, _T5, _ids(eos=1, decoder_start=0)),
}


def _why(reason: str, kinds: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(kinds, reason)


# Why a family that people have is not read.
NOT_READ: dict[str, str] = {
    **_why("mixture of experts", (
        "mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss", "deepseek_v2", "deepseek_v3", "olmoe",
        "granitemoe", "phimoe", "dbrx", "glm4_moe", "nllb-moe", "switch_transformers", "jetmoe",
        "minimax", "ernie4_5_moe",
    )),
    **_why("mixture of experts and linear attention", ("qwen3_next", "jamba", "kimi_linear")),
    **_why("state-space model", ("mamba", "mamba2", "falcon_mamba", "zamba", "zamba2")),
    **_why("recurrent network", ("rwkv", "recurrent_gemma", "xlstm")),
    **_why("network with sparse attention", ("longformer", "led", "big_bird", "longt5")),
    **_why("network of images or sounds", (
        "whisper", "vit", "clip", "siglip", "wav2vec2", "speech_to_text",
    )),
}  # fmt: skip


# Networks of images and texts whose text part is read, and what config.json leaves out of it.
TEXT_PARTS: dict[str, dict[str, Any]] = {
    "gemma3": {
        "vocab_size": 262_208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
        "max_position_embeddings": 131_072, "sliding_window": 4096,
    },
    "llava": {}, "llava_next": {}, "mistral3": {},
}  # fmt: skip
_IMAGES = re.compile(r".*(vision_tower|vision_model|multi_modal_projector|image_newline).*")


def text_part(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the text part of a network of images and texts; else the values."""
    kind, inside = values.get("model_type"), values.get("text_config")
    if not isinstance(kind, str) or kind not in TEXT_PARTS or not isinstance(inside, Mapping):
        return dict(values)
    ids = {key: x for key, x in values.items() if key.endswith("token_id")}
    names = ("tie_word_embeddings", "quantization_config")
    whole = {name: values[name] for name in names if values.get(name) is not None}
    return {**TEXT_PARTS[kind], **ids, **inside, **whole, "part_of": kind}


class TextWeights(Mapping[str, Tensor]):
    """The weights of a text part, as a network of texts alone would call them."""

    def __init__(self, stored: Mapping[str, Tensor]) -> None:
        self._stored = stored
        own = (name for name in stored if not _IMAGES.fullmatch(name))
        self._names = {name.replace("language_model.", "", 1): name for name in own}

    def __getitem__(self, name: str) -> Tensor:
        """Read a tensor."""
        return self._stored[self._names[name]]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._names)

    def __len__(self) -> int:
        """The number of tensors."""
        return len(self._names)


def checked_kind(kind: object) -> str:
    """A model_type that is read. Raises ValueError for others, with a reason if there is one."""
    if isinstance(kind, str) and kind in FAMILIES:
        return kind
    reason = NOT_READ.get(kind) if isinstance(kind, str) else None
    about = f", a {reason}" if reason else ""
    raise ValueError(
        f"it has model_type {shortened(kind)}{about}, which is not read; what is read: "
        "python -m transformer.checkpoint families"
    )


def listed() -> Iterator[str]:
    """Lines about what is read, adapter by adapter, and what is not."""
    adapters: dict[str, list[str]] = {}
    for kind, family in FAMILIES.items():
        about = " ".join((family.adapter.__doc__ or "").split())
        adapters.setdefault(about, []).append(kind)
    for about, kinds in adapters.items():
        yield f"{', '.join(sorted(kinds))}: {about}"
    yield "Not read:"
    reasons = dict.fromkeys(NOT_READ.values())
    for reason in reasons:
        yield f"{', '.join(kind for kind, why in NOT_READ.items() if why == reason)}: a {reason}"
