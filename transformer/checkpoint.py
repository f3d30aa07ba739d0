"""A folder on disk <-> configuration, tokenizer, weights and model card.

    NAME/config.json                    {"format": 1, "model": {...}, "metadata": {...}}
    NAME/tokenizer.json                 the tokenizers library's own format
    NAME/model-00001-of-00002.safetensors, ...    weights, each file below SHARD_BYTES
    NAME/README.md                      the model card
    NAME/sample.json                    optional: text that it was not trained on

Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from transformer.inference.engine import AUTO, engine_of
from transformer.inference.model import Model
from transformer.inference.sample import Sample, sample_of
from transformer.model.config import ModelConfig
from transformer.model.weights import network_with, weights_of
from transformer.text import Tokenizer

FORMAT = 1
SHARD_BYTES = 9_000_000  # so that every file stays below 10 MB
BUNDLED = Path(__file__).resolve().parent.parent / "checkpoints"
_DTYPES = {"float32": torch.float32, "float16": torch.float16}


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message says why, in one sentence."""


def bundled_names() -> list[str]:
    """Names of the checkpoints that come with the project."""
    return sorted(path.parent.name for path in BUNDLED.glob("*/config.json"))


def load(
    name_or_folder: str | Path, device: str | torch.device = "cpu", engine: str = AUTO
) -> Model:
    """A model ready to run, from a bundled name ("stories") or a folder.

    engine: what generates one text at a time, one of "auto", "compiled", "packed" and "network"
    (see `inference/engine.py`). Raises CheckpointError (a ValueError) for an unknown name or a
    damaged folder, ValueError for an engine that there is not.
    """
    folder = Path(name_or_folder)
    if str(name_or_folder) in bundled_names():
        folder = BUNDLED / str(name_or_folder)
    if not _is_folder(folder):
        raise CheckpointError(
            f"no checkpoint {str(name_or_folder)!r}; allowed: a folder, or one of {bundled_names()}"
        )
    config, metadata = _read_config(folder)
    tokenizer = _read_tokenizer(folder, config)
    weights = _read_weights(folder)
    try:
        network = network_with(config, weights)
    except ValueError as error:
        raise CheckpointError(f"{folder} does not fit its config.json: {error}") from error
    network.eval().requires_grad_(False).to(device)
    card = folder / "README.md"
    return Model(
        name=folder.resolve().name,
        config=config,
        tokenizer=tokenizer,
        network=network,
        card=card.read_text(encoding="utf-8", errors="replace") if card.is_file() else "",
        metadata=metadata,
        engine=engine_of(network, engine),
        sample=_read_sample(folder, config),
    )


def save(
    folder: Path,
    network: nn.Module,
    config: ModelConfig,
    tokenizer: Tokenizer,
    *,
    dtype: str = "float16",
    card: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Write a checkpoint folder, replacing one that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"format": FORMAT, "model": config.to_dict(), "metadata": metadata or {}}
    (folder / "config.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    tokenizer.save(folder / "tokenizer.json")
    _write_shards(folder, _shards(weights_of(network), _DTYPES[dtype]))
    if card is not None:
        (folder / "README.md").write_text(card, encoding="utf-8")


def _write_shards(folder: Path, shards: list[dict[str, Tensor]]) -> None:
    """All new files are complete before the first old one goes."""
    names = [f"model-{n:05}-of-{len(shards):05}.safetensors" for n in range(1, len(shards) + 1)]
    for name, shard in zip(names, shards, strict=True):
        save_file(shard, folder / f"{name}.unfinished")
    for old in folder.glob("model-*.safetensors"):
        old.unlink()
    for name in names:
        (folder / f"{name}.unfinished").rename(folder / name)


def _shards(weights: dict[str, Tensor], dtype: torch.dtype) -> list[dict[str, Tensor]]:
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in weights.items():
        stored = tensor.detach().cpu().to(dtype).contiguous()
        if size and size + stored.nbytes > SHARD_BYTES:
            shards.append({})
            size = 0
        shards[-1][name] = stored
        size += stored.nbytes
    return shards


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name too long for the file system, or one that may not be looked at
        return False


def _read_config(folder: Path) -> tuple[ModelConfig, dict[str, Any]]:
    path = folder / "config.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{folder} holds no config.json; a checkpoint needs one") from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not readable JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        got = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise CheckpointError(f"{path} has format {got!r}; this version reads format {FORMAT}")
    try:
        config = ModelConfig.from_dict(content["model"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} describes no usable model: {error}") from error
    metadata = content.get("metadata")
    return config, metadata if isinstance(metadata, dict) else {}


def _read_sample(folder: Path, config: ModelConfig) -> Sample | None:
    path = folder / "sample.json"
    if not path.is_file():
        return None
    try:
        return sample_of(json.loads(path.read_text(encoding="utf-8")), config.family)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not a usable sample: {error}") from error


def _read_tokenizer(folder: Path, config: ModelConfig) -> Tokenizer:
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(f"{folder} holds no tokenizer.json; a checkpoint needs one")
    try:
        tokenizer = Tokenizer.load(path)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError(
            f"{path} has {tokenizer.vocab_size} tokens, config.json says {config.vocab_size}; "
            "they must be equal"
        )
    return tokenizer


def _read_weights(folder: Path) -> dict[str, Tensor]:
    paths = sorted(folder.glob("model-*.safetensors"))
    if not paths:
        raise CheckpointError(f"{folder} holds no model-*.safetensors; a checkpoint needs weights")
    match = re.fullmatch(r"model-\d{5}-of-(\d{5})\.safetensors", paths[-1].name)
    if match is None or int(match[1]) != len(paths):
        raise CheckpointError(
            f"{folder} holds {len(paths)} weight files, the last named {paths[-1].name}; "
            "some are missing or misnamed"
        )
    weights: dict[str, Tensor] = {}
    for path in paths:
        try:
            weights |= load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise CheckpointError(f"{path} is not a readable safetensors file: {error}") from error
    for name, tensor in weights.items():
        if not tensor.is_floating_point() or not bool(tensor.isfinite().all()):
            raise CheckpointError(f"{folder} has numbers in {name} that are not finite")
    return weights
