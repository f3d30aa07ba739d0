"""A folder of transformers (config.json, *.safetensors, a tokenizer) -> a Checkpoint.

Nothing is ever unpickled.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import torch
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
    llama_kinds,
    modernbert,
    mpt,
    neox,
    opt,
    t5,
)
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
from transformer.checkpoint.weight_files import WeightFiles, plain_name, shard_names
from transformer.checks import shortened
from transformer.model.config import ModelConfig
from transformer.model.weights import check_surplus, network_with
from transformer.tokenizer import hf_tokenizers
from transformer.tokenizer.foreign import SpecialIds

# How far results may differ, in standard deviations: in float32, and in a type that rounds.
_SAME, _SAME_ROUNDED = 0.02, 0.25
MAX_LEN = 1024  # the most tokens that a network reads at once, unless told otherwise


def _ids(**ids: int) -> dict[str, int]:
    return {f"{name}_token_id": index for name, index in ids.items()}


class Adapter(Protocol):
    """A module that reads a family's config.json and weights."""

    @property
    def config(self) -> Callable[..., ModelConfig]:
        """config(values, max_len) or config(values, max_len, stored): convert config.json."""

    @property
    def weights(self) -> Callable[..., dict[str, Tensor]]:
        """weights(stored, config) or weights(stored, config, values): rename their weights."""


ADAPTERS: dict[str, Adapter] = {
    "gpt2": gpt2,
    "gpt_bigcode": gpt_bigcode,
    "gpt_neo": gpt_neo,
    **dict.fromkeys(gptj.KINDS, gptj),
    "falcon": falcon,
    "mpt": mpt,
    "opt": opt,
    **dict.fromkeys(neox.KINDS, neox),
    **dict.fromkeys(llama_kinds.KINDS, llama),
    **dict.fromkeys(bert.KINDS, bert),
    "modernbert": modernbert,
    **dict.fromkeys(bart.KINDS, bart),
    **dict.fromkeys(t5.KINDS, t5),
}
# Other names of keys of config.json.
_BART_NAMES = {
    "hidden_size": "d_model",
    "num_attention_heads": "encoder_attention_heads",
    "num_hidden_layers": "encoder_layers",
}
_T5_NAMES = {
    "head_dim": "d_kv",
    "hidden_size": "d_model",
    "num_attention_heads": "num_heads",
    "num_hidden_layers": "num_layers",
}
_GPT_2_NAMES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
OTHER_NAMES: dict[str, dict[str, str]] = {
    **dict.fromkeys(("gpt2", "gpt_bigcode", *gptj.KINDS), _GPT_2_NAMES),
    "gpt_neo": {"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"},
    "mpt": {
        "hidden_size": "d_model",
        "num_attention_heads": "n_heads",
        "num_hidden_layers": "n_layers",
    },
    "bloom": {"num_attention_heads": "n_head", "num_hidden_layers": "n_layer"},
    "distilbert": {
        "hidden_size": "dim",
        "num_attention_heads": "n_heads",
        "num_hidden_layers": "n_layers",
    },
    **dict.fromkeys(bart.KINDS, _BART_NAMES),
    **dict.fromkeys(t5.KINDS, _T5_NAMES),
}


# The ids of start and end that a family has where its files name none.
_DEFAULT_IDS: dict[str, dict[str, int]] = {
    **dict.fromkeys(
        ("gpt2", "gpt_bigcode", "gpt_neo", "gptj", "codegen", "starcoder2"),
        _ids(bos=50256, eos=50256),
    ),
    "falcon": _ids(bos=11, eos=11),
    "opt": _ids(bos=2, eos=2),
    "gpt_neox": _ids(bos=0, eos=2),
    **dict.fromkeys(("bloom", "llama", "mistral", "granite"), _ids(bos=1, eos=2)),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text"), _ids(bos=2, eos=1)),
    "phi3": _ids(bos=1, eos=32000),
    **dict.fromkeys(("olmo", "olmo2", "olmo3"), _ids(eos=50279)),
    "phi": _ids(bos=1, eos=2),
    "cohere": _ids(bos=5, eos=255001),
    "exaone4": _ids(bos=0, eos=2),
    "smollm3": _ids(bos=128000, eos=128001),
    "stablelm": _ids(bos=0, eos=0),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert", "mpnet"), _ids(bos=0, eos=2)),
    "modernbert": _ids(bos=50281, eos=50282),
    "mbart": _ids(bos=0, eos=2),
    **dict.fromkeys(("bart", "m2m_100"), _ids(bos=0, eos=2, decoder_start=2)),
    "marian": _ids(eos=0, decoder_start=58100),
    "t5": _ids(eos=1),
    **dict.fromkeys(("mt5", "umt5"), _ids(eos=1, decoder_start=0)),
}


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
    with _reasons(name):
        values = values_of(folder)
        network, dtypes = network_of(folder, values, max_len)
        checkpoint = _checkpoint(name, values, network, dtypes, folder)
        check_numbers(folder, checkpoint.network, checkpoint.config)
    return dataclasses.replace(checkpoint, card=read_card(folder / "README.md"))


def from_memory(theirs: Any, tokenizer: Any, max_len: int = MAX_LEN) -> Checkpoint:
    """Convert a network and a tokenizer of transformers, whose weights are copied.

    Raises CheckpointError with the reason in one sentence, also for a network that computes
    something else than its weights say: one with hooks, or with modules that were replaced.
    """
    theirs = getattr(theirs, "_orig_mod", theirs)  # of a compiled network
    name = type(theirs).__name__
    special = theirs.generation_config.to_dict() if theirs.can_generate() else None
    values = theirs.config.to_dict() | {"architectures": [name]}
    values = _with_ids(values, special)
    stored = {plain_name(key): x.detach().cpu().clone() for key, x in theirs.state_dict().items()}
    files = TemporaryDirectory()
    try:
        with _reasons(name):
            tokenizer.save_pretrained(files.name)
            config = config_of(values, max_len, stored)
            network, dtypes = _network_with(config, values, stored)
            _check_same_results(theirs, network)
            checkpoint = _checkpoint(name, values, network, dtypes, Path(files.name))
    except BaseException:
        files.cleanup()
        raise
    weakref.finalize(checkpoint.tokenizer, files.cleanup)  # which may copy them when saved
    return checkpoint


@torch.no_grad()
def _check_same_results(theirs: Any, network: Network) -> None:
    """Raise ValueError if the network in memory gives other results than the one made of it."""
    config, training = network.config, [(part, part.training) for part in theirs.modules()]
    few = [index for index in range(3, config.vocab_size) if index != config.padding_id]
    ids = torch.tensor([few[:: max(1, len(few) // 4)][:4]])[:, : config.max_len]
    both = config.family == "encoder-decoder"
    given = {"input_ids": ids} | ({"decoder_input_ids": ids[:, :1]} if both else {})
    try:
        said = theirs.eval()(**{name: x.to(theirs.device) for name, x in given.items()})
    finally:
        for part, was in training:
            part.training = was
    wanted = _results_of(said).float().cpu()
    found = network(*given.values()).view(wanted.shape)
    differs = float((found - wanted).norm() / (wanted.std() * wanted.numel() ** 0.5 + 1e-9))
    allowed = _SAME if theirs.dtype == torch.float32 else _SAME_ROUNDED
    if not differs < allowed:
        raise ValueError(
            f"its results differ by {differs:.0%} from those of its weights in this project's "
            "network; it has hooks, a replaced module, or an option that is not read"
        )


def _results_of(said: Any) -> Tensor:
    """The logits in an output of transformers, or its last hidden states."""
    if hasattr(said, "start_logits"):
        return torch.stack([said.start_logits, said.end_logits], dim=-1)
    names = ("logits", "prediction_logits", "last_hidden_state")
    results: Tensor = next(said[name] for name in names if name in said)
    return results


@contextmanager
def _reasons(name: str) -> Iterator[None]:
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


def _checkpoint(
    name: str, values: Values, network: Network, dtypes: str, folder: Path
) -> Checkpoint:
    """A network with the tokenizer in a folder."""
    config = network.config
    tokenizer = hf_tokenizers.read(folder, _special_ids(values, config), config.vocab_size)
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
    values = _with_usual_names(_object(folder / "config.json"))
    given = folder / "generation_config.json"
    return _with_ids(values, _object(given) if given.is_file() else None)


def _with_ids(values: dict[str, Any], special: Values | None) -> dict[str, Any]:
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
    return (_DEFAULT_IDS.get(kind, {}) if isinstance(kind, str) else {}) | values | ids


def _with_usual_names(values: dict[str, Any]) -> dict[str, Any]:
    """Add keys that config.json has by another name. Raises ValueError if two names differ."""
    kind = values.get("model_type")
    for other, usual in OTHER_NAMES.get(kind, {}).items() if isinstance(kind, str) else ():
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
    return _network_with(config, values, files)


def config_of(values: Values, max_len: int, stored: Mapping[str, Any]) -> ModelConfig:
    """The configuration that config.json and the names of the stored weights describe.

    Raises ValueError for a model_type or an option that is not supported.
    """
    kind = values.get("model_type")
    if not isinstance(kind, str) or kind not in ADAPTERS:
        raise ValueError(
            f"it has model_type {shortened(kind)}, which is not read yet; what is read: "
            f"{sorted(ADAPTERS)}; how to add one: CONTRIBUTING.md"
        )
    only(values, per_layer_config=None, quantization_config=None)
    config: ModelConfig = _call(kind, "config", values, max_len, stored)
    only(values, is_causal={"decoder": True, "encoder": False}.get(config.family))
    return config


def _network_with(
    config: ModelConfig, values: Values, stored: Mapping[str, Tensor]
) -> tuple[Network, str]:
    """The network with these weights, and the types that they are stored in."""
    weights = _call(values["model_type"], "weights", stored, config, values)
    if "head.weight" in weights:  # config.json may claim that it is tied
        config = config.replace(tie_embeddings=False)
    if "target_embedding.tokens.weight" in weights:
        config = config.replace(share_embeddings=False)
    dtypes = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in weights.values()})
    network = network_with(config, weights, as_stored=True)
    return network.eval().requires_grad_(False), ", ".join(dtypes)


def _call(kind: str, name: str, *given: Any) -> Any:
    """Call an adapter's function with two arguments, or with three if it takes them.

    Raises RuntimeError if it takes others: the adapter is wrong, not the folder.
    """
    function = getattr(ADAPTERS[kind], name)
    taken = given[: max(2, len(signature(function).parameters))]
    try:
        signature(function).bind(*taken)
    except TypeError as error:
        needed = {"config": "config(values, max_len)", "weights": "weights(stored, config)"}[name]
        raise RuntimeError(f"the adapter of {kind} must have {needed}: {error}") from error
    return function(*taken)


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
    given = got if isinstance(got, list) else [got]
    return [index for index in given if isinstance(index, int) and 0 <= index < config.vocab_size]


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
