"""A checkpoint folder in this project's format -> a Checkpoint; writing.py writes one.

    NAME/config.json                    {"format": 1, "model": {...}, "metadata": {...}}
    NAME/tokenizer.json                 the tokenizers library's own format
    NAME/model-00001-of-00002.safetensors, ...    weights, each file below SHARD_BYTES
    NAME/README.md                      the model card; README.fr.md: the card in French
    NAME/sample.json                    optional: text that the model was not trained on
    NAME/heads.json                     optional: each head's metrics over many texts
    NAME/neurons.json                   optional: the sentence at which each neuron fires most

Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.checkpoint.weight_files import WeightFiles
from transformer.checks import shortened, text_of
from transformer.model.config import ModelConfig
from transformer.model.sites import Site, sites_of
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly
from transformer.model.weights import check_surplus, network_with
from transformer.tokenizer import Tokenizer, hf_tokenizers

FORMAT = 1
MAX_HELD_OUT = 100  # texts
_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "checkpoints"
_HUB_NAME = re.compile(r"[\w.-]*\w(/[\w.-]*\w)?", re.ASCII)
BUNDLED = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent / "checkpoints"  # of a clone
Network = DecoderOnly | EncoderOnly | EncoderDecoder


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message gives the reason in one sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOutSample:
    """Texts that the model was not trained on: (text,), or (source, target) for a translator."""

    about: str
    texts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Checkpoint:
    """A model read from disk. The network is on the CPU, in evaluation mode.

    cards: the model card in other languages, by language code.
    heads, neurons: the files that `python -m transformer.analysis.corpus` wrote; None without one.
    """

    name: str
    config: ModelConfig
    tokenizer: Tokenizer
    network: Network
    card: str
    metadata: dict[str, Any]
    sample: HeldOutSample | None
    heads: dict[str, Any] | None = None
    neurons: dict[str, Any] | None = None
    cards: Mapping[str, str] = field(default_factory=dict)


def bundled_names() -> list[str]:
    """Names of the checkpoints that come with the project, models that write text first. The page
    opens on the first."""

    def order(path: Path) -> tuple[bool, str]:
        family = json.loads(path.read_text(encoding="utf-8"))["model"].get("family")
        return family == "encoder", path.parent.name

    return [path.parent.name for path in sorted(BUNDLED.glob("*/config.json"), key=order)]


def read(name_or_folder: str | Path) -> Checkpoint:
    """Read a bundled checkpoint ("stories") or a folder.

    Raises CheckpointError for an unknown name or a damaged folder.
    """
    name = str(name_or_folder)
    folder = BUNDLED / name if name in bundled_names() else Path(name)
    if not _is_folder(folder):
        hub = f"hub:{name}" if _HUB_NAME.fullmatch(name) else "hub:OWNER/NAME"
        raise CheckpointError(
            f"no checkpoint {shortened(name)}; allowed: a folder, one of {bundled_names()}, or a "
            f"model of the hub, as {hub}"
        )
    config, metadata = _read_config(folder)
    tokenizer = _read_tokenizer(folder, config, metadata)
    tokenizer.reads_sources = config.family == "encoder-decoder"
    weights = _read_weights(folder, config)
    try:
        network = network_with(config, weights, as_stored="stored_in" in metadata)
    except ValueError as error:
        raise CheckpointError(f"{folder} does not fit its config.json: {error}") from error
    network.eval().requires_grad_(False)
    check_numbers(folder, network, config)
    return Checkpoint(
        name=folder.resolve().name,
        config=config,
        tokenizer=tokenizer,
        network=network,
        card=read_card(folder / "README.md"),
        metadata=metadata,
        sample=_read_sample(folder, config),
        heads=_read_heads(folder, config),
        neurons=_read_neurons(folder, config),
        cards={
            path.suffixes[-2][1:]: read_card(path) for path in sorted(folder.glob("README.??.md"))
        },
    )


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises CheckpointError."""
    try:
        return json.loads(text_of(path))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not readable JSON: {error}") from error


def read_card(path: Path) -> str:
    """A model card; "" without one. Raises CheckpointError if it is too large."""
    try:
        return text_of(path, errors="replace") if path.is_file() else ""
    except OSError as error:
        raise CheckpointError(f"{path} is no usable model card: {error}") from error


def held_out_sample(content: object, family: str) -> HeldOutSample:
    """From JSON: {"about": ..., "texts": [text, ...]}, or [[source, target], ...] for a translator.

    Raises ValueError for anything else.
    """
    width = 2 if family == "encoder-decoder" else 1
    texts = content.get("texts") if isinstance(content, dict) else None
    rows = [[row] if isinstance(row, str) else row for row in texts or () if row]
    good = all(
        isinstance(row, list) and len(row) == width and all(isinstance(t, str) and t for t in row)
        for row in rows
    )
    if not isinstance(texts, list) or not good or not 1 <= len(rows) <= MAX_HELD_OUT:
        wanted = "[source, target] pairs" if width == 2 else "texts"
        raise ValueError(f"a sample must hold from 1 to {MAX_HELD_OUT} {wanted} under 'texts'")
    assert isinstance(content, dict)
    return HeldOutSample(about=str(content.get("about", "")), texts=tuple(map(tuple, rows)))


@torch.inference_mode()
def check_numbers(folder: Path, network: Network, config: ModelConfig) -> None:
    """Raise CheckpointError for finite weights that overflow as soon as they are used."""
    last = min(config.vocab_size, config.output_vocab_size) - 1
    few = [0, last // 3, 2 * last // 3, last][: min(config.max_len, config.output_max_len)]
    ids = torch.tensor([few], device=network.device)
    logits = network(ids, ids) if isinstance(network, EncoderDecoder) else network(ids)
    if not bool(logits.isfinite().all()):
        raise CheckpointError(f"{folder} has weights so large that its results are no numbers")


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # the name is too long, or access is denied
        return False


def _read_config(folder: Path) -> tuple[ModelConfig, dict[str, Any]]:
    """config.json: the configuration and the metadata."""
    path = folder / "config.json"
    if not path.exists():
        raise CheckpointError(
            f"{folder} holds no config.json; a checkpoint needs one{merge_hint(folder)}"
        )
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        got = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise CheckpointError(
            f"{path} has format {shortened(got)}; this version reads format {FORMAT}"
        )
    try:
        config = ModelConfig.from_dict(content["model"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} describes no usable model: {error}") from error
    metadata = content.get("metadata")
    return config, metadata if isinstance(metadata, dict) else {}


def merge_hint(folder: Path) -> str:
    """How to make a model from a folder with only an adapter, such as LoRA's; otherwise ""."""
    if not (folder / "adapter_config.json").is_file():
        return ""
    return (
        "; it holds an adapter, which peft merges into its model: "
        "PeftModel.from_pretrained(model, ...).merge_and_unload().save_pretrained(...)"
    )


def _read_tokenizer(folder: Path, config: ModelConfig, metadata: dict[str, Any]) -> Tokenizer:
    """tokenizer.json, or another project's tokenizer that the metadata describes."""
    path = folder / "tokenizer.json"
    try:
        if "tokenizer" in metadata:
            return hf_tokenizers.from_settings(folder, metadata["tokenizer"], config.vocab_size)
        if not path.is_file():
            raise CheckpointError(f"{folder} holds no tokenizer.json; a checkpoint needs one")
        tokenizer = Tokenizer.load(path)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError(
            f"{path} has {tokenizer.vocab_size} tokens, config.json says {config.vocab_size}; "
            "they must be equal"
        )
    return tokenizer


def _read_weights(folder: Path, config: ModelConfig) -> dict[str, Tensor]:
    """All weights by name, from model-*.safetensors."""
    paths = sorted(folder.glob("model-*.safetensors"))
    if not paths:
        raise CheckpointError(f"{folder} holds no model-*.safetensors; a checkpoint needs weights")
    last = paths[-1].name
    match = re.fullmatch(r"model-\d{5}-of-(\d{5})\.safetensors", last)
    if match is None or int(match[1]) != len(paths):
        raise CheckpointError(
            f"{folder} holds {len(paths)} weight files, the last named {last}; some are missing or "
            "misnamed"
        )
    try:
        files = WeightFiles(paths)
        check_surplus(folder, config, files.n_numbers)
        return dict(files)
    except ValueError as error:
        raise CheckpointError(str(error)) from error


def _read_sample(folder: Path, config: ModelConfig) -> HeldOutSample | None:
    """sample.json; None without one."""
    path = folder / "sample.json"
    if not path.is_file():
        return None
    try:
        return held_out_sample(json.loads(text_of(path)), config.family)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not a usable sample: {error}") from error


def _read_heads(folder: Path, config: ModelConfig) -> dict[str, Any] | None:
    """heads.json; None without one."""
    path = folder / "heads.json"
    if not path.is_file():
        return None
    try:
        content = json.loads(text_of(path))
        for head in content["heads"]:
            site = Site(head["kind"].split(".")[0], head["layer"], head["kind"].split(".")[1])
            numbers = [metric["mean"] for metric in head["metrics"].values()]
            is_there = site in sites_of(config) and head["head"] in range(config.n_heads)
            if not is_there or not all(isinstance(number, int | float) for number in numbers):
                raise ValueError(f"the network has no head {shortened(head)}")
        return {**content, "n_texts": int(content["n_texts"]), "texts": dict(content["texts"])}
    except (OSError, LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is no usable file about heads: {error}") from error


def _read_neurons(folder: Path, config: ModelConfig) -> dict[str, Any] | None:
    """neurons.json; None without one."""
    path = folder / "neurons.json"
    if not path.is_file():
        return None
    try:
        content = json.loads(text_of(path))
        sentences, n_sentences = content["sentences"], int(content["n_sentences"])
        if not all(isinstance(text, str) for texts in sentences for text in texts):
            raise ValueError("its sentences must be lists of texts")
        for place, neurons in content["neurons"].items():
            stack, layer = place.split(".")
            of_each = [neurons[name] for name in ("sentence", "start", "length", "activation")]
            if Site(stack, int(layer), "self") not in sites_of(config):
                raise ValueError(f"the network has no layer {shortened(place)}")
            if {len(one) for one in of_each} != {config.d_ff}:
                raise ValueError(f"layer {shortened(place)} must have {config.d_ff} neurons")
            for sentence, start, length, activation in zip(*of_each, strict=True):
                text = sentences[sentence][-1] if sentence != -1 else ""
                is_there = sentence >= -1 and min(start, length) >= 0
                is_there = is_there and start + length <= len(text)
                if not is_there or not math.isfinite(activation):
                    raise ValueError(f"a neuron of {place} is active at no token of its sentence")
        return {**content, "n_sentences": n_sentences}
    except (OSError, LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is no usable file about neurons: {error}") from error
