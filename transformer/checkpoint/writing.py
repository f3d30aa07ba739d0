"""Write a checkpoint folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from transformer.checkpoint.folder import FORMAT, HeldOutSample
from transformer.checks import check_choice, shortened
from transformer.model.config import ModelConfig
from transformer.model.weights import weights_of
from transformer.tokenizer import Tokenizer
from transformer.tokenizer.foreign import TheirTokenizer
from transformer.tokenizer.hf_tokenizers import settings_of

SHARD_BYTES = 9_000_000  # so that every file stays below 10 MB
DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


def save(
    folder: str | Path,
    network: nn.Module,
    config: ModelConfig,
    tokenizer: Tokenizer,
    *,
    dtype: str | None = None,
    card: str | None = None,
    metadata: dict[str, Any] | None = None,
    sample: HeldOutSample | None = None,
    heads: dict[str, Any] | None = None,
    neurons: dict[str, Any] | None = None,
) -> None:
    """Write a checkpoint folder, replacing one that is there.

    dtype: the type that the weights are stored in, one of DTYPES; None = the smallest that holds
    every number exactly. Raises ValueError, before anything is written, for an unknown type or one
    that is too small for a weight; OSError if writing fails.
    """
    if dtype is not None:
        check_choice("dtype", dtype, DTYPES)
    weights = weights_of(network)
    kind = _exact(weights) if dtype is None else DTYPES[dtype]
    _check_holds(kind, weights)
    folder = make_folder(folder)
    more = {"tokenizer": settings_of(tokenizer)} if isinstance(tokenizer, TheirTokenizer) else {}
    facts = {**(metadata or {}), **more}
    content = {"format": FORMAT, "model": config.to_dict(), "metadata": facts}
    (folder / "config.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    tokenizer.save(folder / "tokenizer.json")
    _write_shards(folder, _shards(weights, kind))
    if card is not None:
        (folder / "README.md").write_text(card, encoding="utf-8")
    if sample is not None:
        texts = [list(texts) if len(texts) > 1 else texts[0] for texts in sample.texts]
        content = {"about": sample.about, "texts": texts}
        written = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (folder / "sample.json").write_text(written, encoding="utf-8")
    for name, measured in (("heads", heads), ("neurons", neurons)):
        if measured is not None:
            written = json.dumps(measured, ensure_ascii=False, separators=(",", ":")) + "\n"
            (folder / f"{name}.json").write_text(written, encoding="utf-8")


def make_folder(folder: str | Path) -> Path:
    """Make a folder unless it is there. Raises ValueError if it is a file."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"a model is saved as a folder; {folder} is a file") from None
    return folder


def _exact(weights: dict[str, Tensor]) -> torch.dtype:
    """The smallest type that holds all of these numbers exactly."""
    for kind in (torch.bfloat16, torch.float16):  # in this order: most bfloat16 numbers fit float16
        if all(x.to(kind).to(x.dtype).equal(x) for x in weights.values()):
            return kind
    return torch.float32


def _check_holds(kind: torch.dtype, weights: dict[str, Tensor]) -> None:
    """Raise ValueError for a weight with a number that is not finite in this type."""
    for name, tensor in weights.items():
        ends = torch.stack(tensor.detach().aminmax()) if tensor.numel() else tensor
        if not bool(ends.isfinite().all()):
            raise ValueError(f"{name} has numbers that are not finite")
        if not bool(ends.to(kind).isfinite().all()):
            dtype = shortened(str(kind).removeprefix("torch."))
            raise ValueError(
                f"{name} has numbers up to {float(ends.abs().max()):g}, too large for "
                f"dtype={dtype}; allowed: 'float32' or 'bfloat16'"
            )


def _write_shards(folder: Path, shards: list[dict[str, Tensor]]) -> None:
    """Complete all new files before replacing or removing old ones."""
    names = [f"model-{n:05}-of-{len(shards):05}.safetensors" for n in range(1, len(shards) + 1)]
    for name, shard in zip(names, shards, strict=True):
        try:
            save_file(shard, folder / f"{name}.unfinished")
        except SafetensorError as error:
            raise OSError(str(error)) from error
    for name in names:
        (folder / f"{name}.unfinished").replace(folder / name)
    for old in folder.glob("model-*.safetensors"):
        if old.name not in names:
            old.unlink()


def _shards(weights: dict[str, Tensor], dtype: torch.dtype) -> list[dict[str, Tensor]]:
    shards: list[dict[str, Tensor]] = [{}]
    size, written = 0, set[int]()
    for name, tensor in weights.items():
        stored = tensor.detach().cpu().to(dtype).contiguous()
        if stored.data_ptr() in written:  # ALBERT's layers share their memory
            stored = stored.clone()
        written.add(stored.data_ptr())
        if size and size + stored.nbytes > SHARD_BYTES:
            shards.append({})
            size = 0
        shards[-1][name] = stored
        size += stored.nbytes
    return shards
