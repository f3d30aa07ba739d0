"""Other people's folders: config.json, *.safetensors, a tokenizer -> a Checkpoint of ours.

Nothing is ever unpickled.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from transformer.checkpoint.adapters import bert, gpt2, llama, marian, neox
from transformer.checkpoint.adapters.options import Values, padding_of
from transformer.checkpoint.folder import Checkpoint, check_numbers, read_card
from transformer.checkpoint.parts import CheckpointError, read_json, unusable
from transformer.checkpoint.weight_files import WeightFiles, shard_names
from transformer.checks import shortened
from transformer.messages import invalid, say
from transformer.model.config import ModelConfig
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly
from transformer.model.weights import check_surplus, network_with
from transformer.tokenizer import hf_tokenizers

MAX_LEN = 1024  # tokens that are read at once, where the network would read more


class Adapter(Protocol):
    """One of the modules beside: how a family's config.json and weights are read."""

    def config(self, values: Values, max_len: int, /) -> ModelConfig:
        """Ours of theirs."""

    @property
    def weights(self) -> Callable[..., dict[str, Tensor]]:
        """weights(stored, config), or weights(stored, config, values): theirs under our names."""


ADAPTERS: dict[str, Adapter] = {
    "gpt2": gpt2,
    "gpt_neox": neox,
    **dict.fromkeys(llama.KINDS, llama),
    **dict.fromkeys(bert.KINDS, bert),
    "marian": marian,
}


def is_theirs(folder: Path) -> bool:
    """Whether a folder is one of another project, which says its model_type."""
    path = folder / "config.json"
    try:
        content = read_json(path) if path.is_file() else None  # a pipe would be waited for
    except (OSError, CheckpointError):
        return False
    return isinstance(content, dict) and "model_type" in content and "format" not in content


Network = DecoderOnly | EncoderOnly | EncoderDecoder


def read(folder: Path, name: str, max_len: int = MAX_LEN) -> Checkpoint:
    """Another project's folder. max_len: tokens that are read at once, where it would read more.

    Raises CheckpointError that says what is wrong, in one sentence.
    """
    values = values_of(folder)
    try:
        network, dtypes = network_of(folder, values, max_len)
        config = network.config
        ids = _special_ids(values, config)
        tokenizer = hf_tokenizers.read(folder, ids, config.vocab_size)
        if config.padding_id is not None and tokenizer.text(config.padding_id):
            # an ordinary token fills up their batches: in a text it is read, and it may be written
            config = network.config = config.replace(padding_id=None)
        check_numbers(folder, network, config)
    except CheckpointError:
        raise
    except ValueError as error:
        raise unusable("{name} cannot be read: {error}", name=name, error=error) from error
    except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise unusable(
            "{name} cannot be read: its config.json holds a value of an unexpected type or "
            "size ({got})",
            name=name,
            got=error,
        ) from error
    return Checkpoint(
        name=name,
        config=config,
        tokenizer=tokenizer,
        network=network,
        card=read_card(folder / "README.md"),
        metadata={
            "model_type": values["model_type"],
            "stored_in": dtypes,
            "tokenizer": hf_tokenizers.settings_of(tokenizer),
        },
        sample=None,
    )


def values_of(folder: Path) -> Values:
    """What config.json says, with the ids of generation_config.json. Raises CheckpointError."""
    values = _object(folder / "config.json")
    given = folder / "generation_config.json"
    special = _object(given) if given.is_file() else {}
    return values | {key: x for key, x in special.items() if key in _IDS and x is not None}


def network_of(folder: Path, values: Values, max_len: int = MAX_LEN) -> tuple[Network, str]:
    """The network of a folder, and what its weights are stored in, such as "bfloat16".

    Raises ValueError for a model_type, an option or weights that are not read.
    """
    kind = values.get("model_type")
    if not isinstance(kind, str) or kind not in ADAPTERS:
        raise invalid(
            "it has model_type {got}, which is not read yet; what is read: {allowed}; how to add "
            "one: docs/contributing.md, 'A model family'",
            got=shortened(kind),
            allowed=sorted(ADAPTERS),
        )
    config = _call(kind, "config", values, max_len)
    files = _files(folder)
    check_surplus(folder, config, files.n_numbers)
    weights = _call(kind, "weights", files, config, values)
    if "head.weight" in weights:  # whatever config.json says: it is stored, with its own numbers
        config = config.replace(tie_embeddings=False)
    if "target_embedding.tokens.weight" in weights:
        config = config.replace(share_embeddings=False)
    dtypes = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in weights.values()})
    network = network_with(config, weights, as_stored=True)
    return network.eval().requires_grad_(False), ", ".join(dtypes)


def _call(kind: str, name: str, *given: Any) -> Any:
    """What an adapter's function gives; `weights` gets config.json's values if it takes three.

    Raises RuntimeError for one that takes other arguments: a mistake in it, not in a folder.
    """
    function = getattr(ADAPTERS[kind], name)
    taken = given[: max(2, len(signature(function).parameters))]
    try:
        signature(function).bind(*taken)
    except TypeError as error:
        needed = {"config": "config(values, max_len)", "weights": "weights(stored, config)"}[name]
        sentence = say(
            "the adapter of {name} must have {needed}: {error}",
            name=kind, needed=needed, error=error,
        )  # fmt: skip
        raise RuntimeError(sentence) from error
    return function(*taken)


_IDS = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")


def _special_ids(values: Values, config: ModelConfig) -> hf_tokenizers.SpecialIds:
    """What begins, ends and fills up a text. A network may know several ends."""
    ends = _ids_in(values.get("eos_token_id"), config)
    two = config.family == "encoder-decoder"
    starts = _ids_in(values.get("pad_token_id" if two else "bos_token_id"), config)
    return hf_tokenizers.SpecialIds(
        start=[*starts, *ends, 0][0],
        ends=frozenset(ends),
        padding=padding_of(values, config.vocab_size),
    )


def _ids_in(got: Any, config: ModelConfig) -> list[int]:
    """One id, or several, as far as the network has them."""
    given = got if isinstance(got, list) else [got]
    return [index for index in given if isinstance(index, int) and 0 <= index < config.vocab_size]


def _object(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise unusable("{path} must hold an object", path=path)
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
    """What to say where a weight file is missing."""
    if any(folder.glob("pytorch_model*.bin")):
        return say(
            "{folder} holds its weights as a pickle, which can run any program and is never read; "
            "needed: model.safetensors, which transformers writes: "
            "AutoModel.from_pretrained(...).save_pretrained(..., safe_serialization=True)",
            folder=folder,
        )
    return say("{folder} holds no {name}; needed: its weights", folder=folder, name=path.name)
