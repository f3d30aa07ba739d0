"""A folder of transformers (config.json, *.safetensors, a tokenizer) -> a Checkpoint.

Nothing is ever unpickled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

from torch import Tensor

from transformer.checkpoint.adapters.families import FAMILIES, TextWeights, checked_kind, text_part
from transformer.checkpoint.adapters.options import Values, only, padding_of
from transformer.checkpoint.folder import (
    Checkpoint,
    CheckpointError,
    Network,
    check_numbers,
    merge_hint,
    read_card,
    read_json,
)
from transformer.checkpoint.weight_files import WeightFiles, shard_names
from transformer.checks import shortened
from transformer.model.config import ModelConfig
from transformer.model.weights import check_surplus, network_with
from transformer.tokenizer import hf_tokenizers
from transformer.tokenizer.foreign import SpecialIds

MAX_LEN = 1024  # the most tokens that a network reads at once, unless told otherwise


def transformer_in(folder: Path) -> Path:
    """The part of a folder of sentence-transformers that is a network; else the folder itself."""
    path = folder / "modules.json"
    try:
        if (folder / "config.json").is_file() or not path.is_file():
            return folder
        parts = [part["path"] for part in read_json(path) if part["type"].endswith("Transformer")]
        name = Path(parts[0]).name
        return folder / name if (folder / name / "config.json").is_file() else folder
    except (OSError, CheckpointError, LookupError, TypeError, AttributeError):
        return folder


def is_foreign(folder: Path) -> bool:
    """Whether a folder is another project's: its config.json has a model_type."""
    path = folder / "config.json"
    try:
        content = read_json(path) if path.is_file() else None  # a pipe would block
    except (OSError, CheckpointError):
        return False
    return isinstance(content, dict) and "model_type" in content and "format" not in content


def read(folder: Path, name: str, max_len: int = MAX_LEN) -> Checkpoint:
    """Read another project's folder. max_len: limits the tokens that are read at once.

    Raises CheckpointError with the reason in one sentence.
    """
    with reasons(name):
        values = values_of(folder)
        network, dtypes = network_of(folder, values, max_len)
        checkpoint = checkpoint_of(name, values, network, dtypes, folder)
        check_numbers(folder, checkpoint.network, checkpoint.config)
    return dataclasses.replace(checkpoint, card=read_card(folder / "README.md"))


@contextmanager
def reasons(name: str) -> Iterator[None]:
    """Turn errors raised inside into a CheckpointError that names the model."""
    try:
        yield
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{name} cannot be read: {error}") from error
    except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise CheckpointError(
            f"{name} cannot be read: its config.json holds a value of an unexpected type or size "
            f"({error})"
        ) from error


def checkpoint_of(
    name: str, values: Values, network: Network, dtypes: str, folder: Path
) -> Checkpoint:
    """A network with the tokenizer in a folder."""
    config = network.config
    tokenizer = hf_tokenizers.read(folder, _special_ids(values, config), config.vocab_size)
    tokenizer.reads_sources = config.family == "encoder-decoder"
    if config.padding_id is not None and tokenizer.text(config.padding_id):
        # batches are padded with an ordinary token, which a text may contain
        config = network.config = config.replace(padding_id=None)
    return Checkpoint(
        name=name,
        config=config,
        tokenizer=tokenizer,
        network=network,
        card="",
        metadata={"model_type": values["model_type"], "stored_in": dtypes},
        sample=None,
    )


def values_of(folder: Path) -> Values:
    """The values of config.json and the ids of generation_config.json. Raises ValueError."""
    values = with_usual_names(text_part(_object(folder / "config.json")))
    path = folder / "generation_config.json"
    return with_ids(values, _object(path) if path.is_file() else None)


def with_ids(values: dict[str, Any], special: Values | None) -> dict[str, Any]:
    """Add the ids of generation_config.json, if there is one: those that are forced are then read
    from it alone. config.json's padding stays: positions may count from it."""
    if special is None:
        special = {}
    else:
        values = {key: x for key, x in values.items() if not key.startswith("forced_")}
    ids = {key: special[key] for key in _IDS if special.get(key) is not None}
    if values.get("pad_token_id") is not None:
        ids.pop("pad_token_id", None)
    kind = values.get("model_type")
    return {**_names_and_ids(kind)[1], **values, **ids}


def _names_and_ids(kind: Any) -> tuple[Mapping[str, str], Mapping[str, int]]:
    """A family's names of keys and its usual ids; none for a model_type that is not read."""
    is_read = isinstance(kind, str) and kind in FAMILIES
    return FAMILIES[kind][1:] if is_read else ({}, {})


def with_usual_names(values: dict[str, Any]) -> dict[str, Any]:
    """Add keys that config.json has by another name. Raises ValueError if two names differ."""
    kind = values.get("model_type")
    for other, usual in _names_and_ids(kind)[0].items():
        got = values.get(other)
        if got is not None and values.setdefault(usual, got) != got:
            raise ValueError(
                f"it has {other}={shortened(got)} and {usual}="
                f"{shortened(values[usual])}, two names of one number; needed: the same"
            )
    return values


def network_of(folder: Path, values: Values, max_len: int = MAX_LEN) -> tuple[Network, str]:
    """The network of a folder, and the type of its stored weights, such as "bfloat16".

    Raises ValueError for a model_type, an option or weights that are not supported.
    """
    files = _files(folder)
    config = config_of(values, max_len, files)
    check_surplus(folder, config, files.n_numbers)
    return network_from(config, values, files)


def config_of(values: Values, max_len: int, stored: Mapping[str, Any]) -> ModelConfig:
    """The configuration that config.json and the names of the stored weights describe.

    Raises ValueError for a model_type or an option that is not supported.
    """
    stored = weights_of_text(values, stored)
    kind = checked_kind(values.get("model_type"))
    only(values, per_layer_config=None)
    if quantized := values.get("quantization_config"):
        method = quantized.get("quant_method") if isinstance(quantized, dict) else quantized
        raise ValueError(
            f"its weights are quantized ({shortened(method)}), which is not read; needed: the "
            "model that it was made from"
        )
    config: ModelConfig = _call(kind, "config", values, max_len, stored)
    only(values, is_causal={"decoder": True, "encoder": False}.get(config.family))
    return config


def weights_of_text(values: Values, stored: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The stored weights, without those of images."""
    return TextWeights(stored) if "part_of" in values else stored


def network_from(
    config: ModelConfig, values: Values, stored: Mapping[str, Tensor]
) -> tuple[Network, str]:
    """The network with these weights, and the types that they are stored in."""
    stored = weights_of_text(values, stored)
    weights = _call(values["model_type"], "weights", stored, config, values)
    if "head.weight" in weights:  # config.json may claim that it is tied
        config = config.replace(tie_embeddings=False)
    if "target_embedding.tokens.weight" in weights:
        config = config.replace(share_embeddings=False)
    dtypes = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in weights.values()})
    network = network_with(config, weights, as_stored=True)
    return network.eval().requires_grad_(False), ", ".join(dtypes)


def _call(kind: str, name: str, *arguments: Any) -> Any:
    """Call an adapter's function.

    Raises RuntimeError if it takes other parameters: the adapter is wrong, not the folder.
    """
    function = getattr(FAMILIES[kind].adapter, name)
    try:
        signature(function).bind(*arguments)
    except TypeError as error:
        raise RuntimeError(
            f"the adapter of {kind} must have {_SIGNATURES[name]}: {error}"
        ) from error
    return function(*arguments)


_SIGNATURES = {
    "config": "config(values, max_len, stored)", "weights": "weights(stored, config, values)",
}  # fmt: skip
_IDS = (
    "bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id",
    "forced_bos_token_id", "forced_eos_token_id",
)  # fmt: skip


def _special_ids(values: Values, config: ModelConfig) -> SpecialIds:
    """The ids of start, ends and padding."""
    ends = _ids_in(values.get("eos_token_id"), config)
    names, then = ["bos_token_id"], list[int]()
    if config.family == "encoder-decoder":
        names = ["decoder_start_token_id", "bos_token_id", "pad_token_id"]
        then = _ids_in(values.get("forced_bos_token_id"), config)
    starts = [index for name in names for index in _ids_in(values.get(name), config)]
    return SpecialIds(
        start=[*starts, *ends, 0][0],
        then=tuple(then),
        ends=frozenset(ends),
        forced_end=min(_ids_in(values.get("forced_eos_token_id"), config), default=None),
        padding=padding_of(values, config.vocab_size),
    )


def _ids_in(got: Any, config: ModelConfig) -> list[int]:
    """One id or a list of them, without those outside the vocabulary."""
    ids = got if isinstance(got, list) else [got]
    return [index for index in ids if isinstance(index, int) and 0 <= index < config.vocab_size]


def _object(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} must hold an object")
    return content


def _files(folder: Path) -> WeightFiles:
    """The tensors of model.safetensors, else of the files that an index names."""
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    names = shard_names(index) if index.is_file() else []
    if whole.is_file() or not names:
        names = [whole.name]
    paths = [folder / name for name in names]
    for path in paths:
        if not path.is_file():
            raise CheckpointError(_without(folder, path))
    return WeightFiles(paths)


def _without(folder: Path, path: Path) -> str:
    """The error message for a missing weight file."""
    if any(folder.glob("pytorch_model*.bin")):
        return (
            f"{folder} holds its weights as a pickle, which can run any program and is never read; "
            "needed: model.safetensors, which transformers writes: "
            "AutoModel.from_pretrained(...).save_pretrained(..., safe_serialization=True)"
        )
    return f"{folder} holds no {path.name}; needed: its weights{merge_hint(folder)}"
