"""The files of a checkpoint folder, read and checked one by one.

Each raises CheckpointError, which names the file, for what cannot be used.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from transformer.checkpoint.weight_files import WeightFiles
from transformer.checks import shortened, text_of
from transformer.messages import Invalid, invalid
from transformer.model.config import ModelConfig
from transformer.model.sites import Site, sites_of
from transformer.model.weights import check_surplus
from transformer.tokenizer import Tokenizer, hf_tokenizers

FORMAT = 1
MAX_HELD_OUT = 100  # texts


class CheckpointError(Invalid):
    """A checkpoint that cannot be used; the message says why, in one sentence."""


def unusable(sentence: str, /, **values: object) -> CheckpointError:
    """The error of a checkpoint that cannot be used: to raise, with its reason said."""
    return CheckpointError(sentence, **values)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOutSample:
    """Texts that the model was not trained on: (text,), or (source, target) for a translator."""

    about: str
    texts: tuple[tuple[str, ...], ...]


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
        if width == 2:
            raise invalid(
                "a sample must hold from 1 to {most} [source, target] pairs under 'texts'",
                most=MAX_HELD_OUT,
            )
        raise invalid("a sample must hold from 1 to {most} texts under 'texts'", most=MAX_HELD_OUT)
    assert isinstance(content, dict)
    return HeldOutSample(about=str(content.get("about", "")), texts=tuple(map(tuple, rows)))


def read_json(path: Path) -> Any:
    """What a JSON file holds. Raises CheckpointError."""
    try:
        return json.loads(text_of(path))
    except (OSError, ValueError, RecursionError) as error:
        raise unusable("{path} is not readable JSON: {error}", path=path, error=error) from error


def read_config(folder: Path) -> tuple[ModelConfig, dict[str, Any]]:
    """config.json: the configuration, and what else is said of the model."""
    path = folder / "config.json"
    if not path.exists():
        raise unusable("{folder} holds no config.json; a checkpoint needs one", folder=folder)
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        got = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise unusable(
            "{path} has format {got}; this version reads format {format}",
            path=path,
            got=shortened(got),
            format=FORMAT,
        )
    try:
        config = ModelConfig.from_dict(content["model"])
    except (KeyError, TypeError, ValueError) as error:
        raise unusable(
            "{path} describes no usable model: {error}", path=path, error=error
        ) from error
    metadata = content.get("metadata")
    return config, metadata if isinstance(metadata, dict) else {}


def read_sample(folder: Path, config: ModelConfig) -> HeldOutSample | None:
    """sample.json; None without one."""
    path = folder / "sample.json"
    if not path.is_file():
        return None
    try:
        return held_out_sample(json.loads(text_of(path)), config.family)
    except (OSError, ValueError, RecursionError) as error:
        raise unusable("{path} is not a usable sample: {error}", path=path, error=error) from error


def read_heads(folder: Path, config: ModelConfig) -> dict[str, Any] | None:
    """heads.json; None without one."""
    path = folder / "heads.json"
    if not path.is_file():
        return None
    try:
        content = json.loads(text_of(path))
        for one in content["heads"]:
            site = Site(one["kind"].split(".")[0], one["layer"], one["kind"].split(".")[1])
            numbers = [metric["mean"] for metric in one["metrics"].values()]
            known = site in sites_of(config) and one["head"] in range(config.n_heads)
            if not known or not all(isinstance(number, int | float) for number in numbers):
                raise invalid("the network has no head {head}", head=one)
        return {**content, "n_texts": int(content["n_texts"]), "texts": dict(content["texts"])}
    except (OSError, LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise unusable(
            "{path} is no usable file about heads: {error}", path=path, error=error
        ) from error


def read_tokenizer(folder: Path, config: ModelConfig, metadata: dict[str, Any]) -> Tokenizer:
    """tokenizer.json, or the one of another project that the metadata describes."""
    if "tokenizer" in metadata:  # of another project
        try:
            return hf_tokenizers.from_settings(folder, metadata["tokenizer"], config.vocab_size)
        except ValueError as error:
            raise CheckpointError(str(error)) from error
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise unusable("{folder} holds no tokenizer.json; a checkpoint needs one", folder=folder)
    try:
        tokenizer = Tokenizer.load(path)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    if tokenizer.vocab_size != config.vocab_size:
        raise unusable(
            "{path} has {n_tokens} tokens, config.json says {vocab_size}; they must be equal",
            path=path,
            n_tokens=tokenizer.vocab_size,
            vocab_size=config.vocab_size,
        )
    return tokenizer


def read_weights(folder: Path, config: ModelConfig) -> dict[str, Tensor]:
    """Every weight by its name, from all model-*.safetensors."""
    paths = sorted(folder.glob("model-*.safetensors"))
    if not paths:
        raise unusable(
            "{folder} holds no model-*.safetensors; a checkpoint needs weights", folder=folder
        )
    match = re.fullmatch(r"model-\d{5}-of-(\d{5})\.safetensors", paths[-1].name)
    if match is None or int(match[1]) != len(paths):
        raise unusable(
            "{folder} holds {n_paths} weight files, the last named {name}; some are "
            "missing or misnamed",
            folder=folder,
            n_paths=len(paths),
            name=paths[-1].name,
        )
    try:
        files = WeightFiles(paths)
        check_surplus(folder, config, files.n_numbers)
        return dict(files)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
