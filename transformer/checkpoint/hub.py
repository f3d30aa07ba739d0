"""hub:OWNER/NAME[@REVISION] -> a folder in the cache of huggingface_hub."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from transformer.checkpoint.folder import CheckpointError
from transformer.checkpoint.weight_files import shard_names
from transformer.checks import needs_package, shortened

PREFIX = "hub:"
_NAME = re.compile(r"([\w.-]+(?:/[\w.-]+)?)(?:@([\w./-]+))?", re.ASCII)
# The files that are read; no code, no pickles.
PATTERNS = [
    "config.json", "generation_config.json", "model.safetensors", "model.safetensors.index.json",
    "model-*.safetensors", "tokenizer.json", "source.spm", "target.spm", "vocab.json", "vocab.txt",
    "merges.txt", "tokenizer.model", "spiece.model", "spm.model", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "README.md",
]  # fmt: skip


def fetched(source: str) -> Path:
    """The folder of hub:OWNER/NAME[@REVISION], fetched once; later starts need no connection.

    Prints size and progress on stderr while fetching. Raises CheckpointError.
    """
    match = _NAME.fullmatch(source.removeprefix(PREFIX))
    if match is None:
        raise CheckpointError(
            "a model on the hub is hub:OWNER/NAME or hub:OWNER/NAME@REVISION; got "
            f"{shortened(source)}"
        )
    name, revision = match[1], match[2]
    try:
        import huggingface_hub
    except ImportError as error:
        raise CheckpointError(needs_package(source, "huggingface_hub")) from error
    request: dict[str, Any] = dict(repo_id=name, revision=revision, allow_patterns=PATTERNS)
    try:
        return _whole(Path(huggingface_hub.snapshot_download(**request, local_files_only=True)))
    except (OSError, ValueError):  # not all files are cached
        pass
    try:
        _print_size(huggingface_hub, name, revision)
        return Path(huggingface_hub.snapshot_download(**request))
    except Exception as error:  # raised by the network, the hub or the disk
        raise CheckpointError(f"{source} cannot be fetched: {_first_line(error)}") from error


def short_name(source: str) -> str:
    """NAME of hub:OWNER/NAME@REVISION."""
    return source.removeprefix(PREFIX).split("@")[0].rsplit("/", maxsplit=1)[-1]


def _whole(folder: Path) -> Path:
    """The folder; raises OSError if a file is missing."""
    index = folder / "model.safetensors.index.json"
    names = {"model.safetensors"}
    if index.is_file() and not (folder / "model.safetensors").is_file():
        names = set(shard_names(index))
    for name in ("config.json", *names):
        if not (folder / name).is_file():
            raise FileNotFoundError(folder / name)
    return folder


def _print_size(hub: Any, name: str, revision: str | None) -> None:
    files = hub.HfApi().model_info(name, revision=revision, files_metadata=True).siblings or []
    wanted = hub.utils.filter_repo_objects(files, allow_patterns=PATTERNS, key=_file_name)
    size = sum(file.size or 0 for file in wanted)
    print(f"{name}: {size / 1e6:,.1f} MB are fetched once and kept", file=sys.stderr, flush=True)


def _file_name(file: Any) -> str:
    return str(file.rfilename)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
