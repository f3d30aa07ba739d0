"""A folder on disk <-> a Checkpoint: configuration, tokenizer, weights and model card.

    NAME/config.json                    {"format": 1, "model": {...}, "metadata": {...}}
    NAME/tokenizer.json                 the tokenizers library's own format
    NAME/model-00001-of-00002.safetensors, ...    weights, each file below SHARD_BYTES
    NAME/README.md                      the model card
    NAME/sample.json                    optional: text that it was not trained on
    NAME/heads.json                     optional: what its heads do over many texts

Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from transformer import their_tokenizers
from transformer.messages import say
from transformer.model.config import ModelConfig
from transformer.model.sites import Site, sites_of
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly
from transformer.model.weights import network_with, weights_of
from transformer.tokenizer import Tokenizer
from transformer.weight_files import WeightFiles

FORMAT = 1
SHARD_BYTES = 9_000_000  # so that every file stays below 10 MB
_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "checkpoints"
BUNDLED = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent / "checkpoints"  # of a clone
MAX_HELD_OUT = 100  # texts
DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message says why, in one sentence."""


def bundled_names() -> list[str]:
    """Names of the checkpoints that come with the project."""
    return sorted(path.parent.name for path in BUNDLED.glob("*/config.json"))


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOutSample:
    """Texts that the model was not trained on: (text,), or (source, target) for a translator."""

    about: str
    texts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Checkpoint:
    """What a folder holds; the network has its weights, is in evaluation mode and on the CPU.

    heads: what `python -m transformer.analysis.corpus` wrote of it; None without.
    """

    name: str
    config: ModelConfig
    tokenizer: Tokenizer
    network: DecoderOnly | EncoderOnly | EncoderDecoder
    card: str
    metadata: dict[str, Any]
    sample: HeldOutSample | None
    heads: dict[str, Any] | None = None


def read(name_or_folder: str | Path) -> Checkpoint:
    """A bundled checkpoint ("stories") or that of a folder.

    Raises CheckpointError (a ValueError) for an unknown name or a damaged folder.
    """
    folder = Path(name_or_folder)
    if str(name_or_folder) in bundled_names():
        folder = BUNDLED / str(name_or_folder)
    if not _is_folder(folder):
        raise CheckpointError(
            say(
                "no checkpoint {name}; allowed: a folder, or one of {allowed}",
                name=repr(str(name_or_folder)),
                allowed=bundled_names(),
            )
        )
    config, metadata = _read_config(folder)
    tokenizer = _read_tokenizer(folder, config, metadata)
    weights = _read_weights(folder)
    try:
        network = network_with(config, weights, as_stored="stored_in" in metadata)
    except ValueError as error:
        raise CheckpointError(
            say("{folder} does not fit its config.json: {error}", folder=folder, error=error)
        ) from error
    network.eval().requires_grad_(False)
    check_numbers(folder, network, config)
    card = folder / "README.md"
    return Checkpoint(
        name=folder.resolve().name,
        config=config,
        tokenizer=tokenizer,
        network=network.eval().requires_grad_(False),
        card=card.read_text(encoding="utf-8", errors="replace") if card.is_file() else "",
        metadata=metadata,
        sample=_read_sample(folder, config),
        heads=_read_heads(folder, config),
    )


def save(
    folder: str | Path,
    network: nn.Module,
    config: ModelConfig,
    tokenizer: Tokenizer,
    *,
    dtype: str = "float16",
    card: str | None = None,
    metadata: dict[str, Any] | None = None,
    sample: HeldOutSample | None = None,
    heads: dict[str, Any] | None = None,
) -> None:
    """Write a checkpoint folder, replacing one that is there.

    dtype: what the weights are stored in, one of DTYPES. Raises ValueError for another,
    before anything is written.
    """
    if dtype not in DTYPES:
        raise ValueError(
            say("dtype must be one of {allowed}; got {got}", allowed=list(DTYPES), got=repr(dtype))
        )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    content = {"format": FORMAT, "model": config.to_dict(), "metadata": metadata or {}}
    (folder / "config.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    tokenizer.save(folder / "tokenizer.json")
    _write_shards(folder, _shards(weights_of(network), DTYPES[dtype]))
    if card is not None:
        (folder / "README.md").write_text(card, encoding="utf-8")
    if sample is not None:
        texts = [list(texts) if len(texts) > 1 else texts[0] for texts in sample.texts]
        content = {"about": sample.about, "texts": texts}
        written = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (folder / "sample.json").write_text(written, encoding="utf-8")
    if heads is not None:
        written = json.dumps(heads, ensure_ascii=False, separators=(",", ":")) + "\n"
        (folder / "heads.json").write_text(written, encoding="utf-8")


def held_out_sample(content: object, family: str) -> HeldOutSample:
    """From JSON: {"about": ..., "texts": [text, ...]}, or [[source, target], ...] for a translator.

    Raises ValueError for anything else.
    """
    width = 2 if family == "encoder-decoder" else 1
    given = content.get("texts") if isinstance(content, dict) else None
    rows = [[row] if isinstance(row, str) else row for row in given or () if row]
    good = all(
        isinstance(row, list) and len(row) == width and all(isinstance(t, str) and t for t in row)
        for row in rows
    )
    if not isinstance(given, list) or not good or not 1 <= len(rows) <= MAX_HELD_OUT:
        raise ValueError(
            say(
                "a sample must hold from 1 to {most} [source, target] pairs under 'texts'",
                most=MAX_HELD_OUT,
            )
            if width == 2
            else say("a sample must hold from 1 to {most} texts under 'texts'", most=MAX_HELD_OUT)
        )
    assert isinstance(content, dict)
    return HeldOutSample(about=str(content.get("about", "")), texts=tuple(map(tuple, rows)))


def _write_shards(folder: Path, shards: list[dict[str, Tensor]]) -> None:
    """All new files are complete before the first old one goes or is replaced."""
    names = [f"model-{n:05}-of-{len(shards):05}.safetensors" for n in range(1, len(shards) + 1)]
    for name, shard in zip(names, shards, strict=True):
        save_file(shard, folder / f"{name}.unfinished")
    for name in names:
        (folder / f"{name}.unfinished").replace(folder / name)
    for old in folder.glob("model-*.safetensors"):
        if old.name not in names:
            old.unlink()


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
        _check_plain(path)
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            say("{folder} holds no config.json; a checkpoint needs one", folder=folder)
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            say("{path} is not readable JSON: {error}", path=path, error=error)
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        got = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise CheckpointError(
            say(
                "{path} has format {got}; this version reads format {format}",
                path=path,
                got=repr(got),
                format=FORMAT,
            )
        )
    try:
        config = ModelConfig.from_dict(content["model"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            say("{path} describes no usable model: {error}", path=path, error=error)
        ) from error
    metadata = content.get("metadata")
    return config, metadata if isinstance(metadata, dict) else {}


def _read_sample(folder: Path, config: ModelConfig) -> HeldOutSample | None:
    path = folder / "sample.json"
    if not path.is_file():
        return None
    try:
        return held_out_sample(json.loads(path.read_text(encoding="utf-8")), config.family)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            say("{path} is not a usable sample: {error}", path=path, error=error)
        ) from error


def _read_heads(folder: Path, config: ModelConfig) -> dict[str, Any] | None:
    path = folder / "heads.json"
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        for one in content["heads"]:
            site = Site(one["kind"].split(".")[0], one["layer"], one["kind"].split(".")[1])
            numbers = [metric["mean"] for metric in one["metrics"].values()]
            known = site in sites_of(config) and one["head"] in range(config.n_heads)
            if not known or not all(isinstance(number, int | float) for number in numbers):
                raise ValueError(say("the network has no head {head}", head=one))
        return {**content, "n_texts": int(content["n_texts"]), "texts": dict(content["texts"])}
    except (OSError, LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise CheckpointError(
            say("{path} is no usable file about heads: {error}", path=path, error=error)
        ) from error


def _read_tokenizer(folder: Path, config: ModelConfig, metadata: dict[str, Any]) -> Tokenizer:
    if "tokenizer" in metadata:  # of another project
        try:
            return their_tokenizers.from_settings(folder, metadata["tokenizer"], config.vocab_size)
        except ValueError as error:
            raise CheckpointError(str(error)) from error
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(
            say("{folder} holds no tokenizer.json; a checkpoint needs one", folder=folder)
        )
    try:
        tokenizer = Tokenizer.load(path)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError(
            say(
                "{path} has {n_tokens} tokens, config.json says {vocab_size}; they must be equal",
                path=path,
                n_tokens=tokenizer.vocab_size,
                vocab_size=config.vocab_size,
            )
        )
    return tokenizer


def _read_weights(folder: Path) -> dict[str, Tensor]:
    paths = sorted(folder.glob("model-*.safetensors"))
    if not paths:
        raise CheckpointError(
            say("{folder} holds no model-*.safetensors; a checkpoint needs weights", folder=folder)
        )
    match = re.fullmatch(r"model-\d{5}-of-(\d{5})\.safetensors", paths[-1].name)
    if match is None or int(match[1]) != len(paths):
        raise CheckpointError(
            say(
                "{folder} holds {n_paths} weight files, the last named {name}; some are "
                "missing or misnamed",
                folder=folder,
                n_paths=len(paths),
                name=paths[-1].name,
            )
        )
    try:
        return dict(WeightFiles(paths))
    except ValueError as error:
        raise CheckpointError(str(error)) from error


def _check_plain(path: Path) -> None:
    """Raise OSError for what is there and is no plain file: a pipe would be waited for."""
    if path.exists() and not path.is_file():
        raise OSError(say("{path} is no plain file", path=path))


@torch.inference_mode()
def check_numbers(
    folder: Path, network: DecoderOnly | EncoderOnly | EncoderDecoder, config: ModelConfig
) -> None:
    """Raise CheckpointError for weights that are finite and overflow as soon as they are used."""
    last = min(config.vocab_size, config.output_vocab_size) - 1
    few = [0, last // 3, 2 * last // 3, last][: min(config.max_len, config.output_max_len)]
    ids = torch.tensor([few], device=network.device)
    logits = network(ids, ids) if isinstance(network, EncoderDecoder) else network(ids)
    if not bool(logits.isfinite().all()):
        raise CheckpointError(
            say("{folder} has weights so large that its results are no numbers", folder=folder)
        )
