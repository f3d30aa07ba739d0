"""A folder on disk <-> a Checkpoint: configuration, tokenizer, weights and model card.

    NAME/config.json                    {"format": 1, "model": {...}, "metadata": {...}}
    NAME/tokenizer.json                 the tokenizers library's own format
    NAME/model-00001-of-00002.safetensors, ...    weights, each file below SHARD_BYTES
    NAME/README.md                      the model card; README.fr.md: the same in French
    NAME/sample.json                    optional: text that it was not trained on
    NAME/heads.json                     optional: what its heads do over many texts

Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from transformer.checkpoint.parts import (
    HeldOutSample,
    read_config,
    read_heads,
    read_sample,
    read_tokenizer,
    read_weights,
    unusable,
)
from transformer.checks import shortened, text_of
from transformer.model.config import ModelConfig
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly
from transformer.model.weights import network_with
from transformer.tokenizer import Tokenizer

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "checkpoints"
_HUB_NAME = re.compile(r"[\w.-]*\w(/[\w.-]*\w)?", re.ASCII)
BUNDLED = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent / "checkpoints"  # of a clone


def bundled_names() -> list[str]:
    """Names of the checkpoints that come with the project. The page opens on the first: those that
    write stand before an encoder alone."""

    def order(path: Path) -> tuple[bool, str]:
        family = json.loads(path.read_text(encoding="utf-8"))["model"].get("family")
        return family == "encoder", path.parent.name

    return [path.parent.name for path in sorted(BUNDLED.glob("*/config.json"), key=order)]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Checkpoint:
    """What a folder holds; the network has its weights, is in evaluation mode and on the CPU.

    cards: the model card in other languages, by their names.
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
    cards: Mapping[str, str] = field(default_factory=dict)


def read(name_or_folder: str | Path) -> Checkpoint:
    """A bundled checkpoint ("stories") or that of a folder.

    Raises CheckpointError (a ValueError) for an unknown name or a damaged folder.
    """
    name = str(name_or_folder)
    folder = BUNDLED / name if name in bundled_names() else Path(name)
    if not _is_folder(folder):
        raise unusable(
            "no checkpoint {name}; allowed: a folder, one of {allowed}, or a model of the hub, "
            "as {hub}",
            name=shortened(name),
            allowed=bundled_names(),
            hub=f"hub:{name}" if _HUB_NAME.fullmatch(name) else "hub:OWNER/NAME",
        )
    config, metadata = read_config(folder)
    tokenizer = read_tokenizer(folder, config, metadata)
    weights = read_weights(folder, config)
    try:
        network = network_with(config, weights, as_stored="stored_in" in metadata)
    except ValueError as error:
        raise unusable(
            "{folder} does not fit its config.json: {error}", folder=folder, error=error
        ) from error
    network.eval().requires_grad_(False)
    check_numbers(folder, network, config)
    card = folder / "README.md"
    return Checkpoint(
        name=folder.resolve().name,
        config=config,
        tokenizer=tokenizer,
        network=network.eval().requires_grad_(False),
        card=read_card(card),
        metadata=metadata,
        sample=read_sample(folder, config),
        heads=read_heads(folder, config),
        cards={one.suffixes[-2][1:]: read_card(one) for one in sorted(folder.glob("README.??.md"))},
    )


def read_card(path: Path) -> str:
    """A model card; "" without one. Raises CheckpointError for one that is too large."""
    try:
        return text_of(path, errors="replace") if path.is_file() else ""
    except OSError as error:
        raise unusable("{path} is no usable model card: {error}", path=path, error=error) from error


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name too long for the file system, or one that may not be looked at
        return False


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
        raise unusable(
            "{folder} has weights so large that its results are no numbers", folder=folder
        )
