"""hub:OWNER/NAME[@REVISION] -> a folder, by huggingface_hub and its cache."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from transformer.checkpoint.parts import CheckpointError, unusable
from transformer.checkpoint.weight_files import shard_names
from transformer.checks import needs_package, shortened
from transformer.messages import numeral, say

PREFIX = "hub:"
_NAME = re.compile(r"([\w.-]+(?:/[\w.-]+)?)(?:@([\w./-]+))?", re.ASCII)
# All that is read, and nothing that could be run.
PATTERNS = [
    "config.json", "generation_config.json", "model.safetensors", "model.safetensors.index.json",
    "model-*.safetensors", "tokenizer.json", "source.spm", "target.spm", "vocab.json", "README.md",
]  # fmt: skip


def fetched(source: str) -> Path:
    """The folder of hub:OWNER/NAME[@REVISION], fetched once; later starts need no network.

    Says its size on stderr before it is fetched, and how far it is. Raises CheckpointError.
    """
    match = _NAME.fullmatch(source.removeprefix(PREFIX))
    if match is None:
        raise unusable(
            "a model on the hub is hub:OWNER/NAME or hub:OWNER/NAME@REVISION; got {got}",
            got=shortened(source),
        )
    name, revision = match[1], match[2]
    try:
        import huggingface_hub
    except ImportError as error:
        raise CheckpointError(needs_package(source, "huggingface_hub")) from error
    asked: dict[str, Any] = dict(repo_id=name, revision=revision, allow_patterns=PATTERNS)
    try:
        return _whole(Path(huggingface_hub.snapshot_download(**asked, local_files_only=True)))
    except (OSError, ValueError):  # not all of it is here
        pass
    try:
        _say_size(huggingface_hub, name, revision)
        return Path(huggingface_hub.snapshot_download(**asked))
    except Exception as error:  # of many kinds: the network's, the hub's, the disk's
        raise unusable(
            "{source} cannot be fetched: {error}", source=source, error=_first_line(error)
        ) from error


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


def _say_size(hub: Any, name: str, revision: str | None) -> None:
    files = hub.HfApi().model_info(name, revision=revision, files_metadata=True).siblings or []
    wanted = hub.utils.filter_repo_objects(files, allow_patterns=PATTERNS, key=_file_name)
    size = sum(file.size or 0 for file in wanted)
    sentence = say(
        "{name}: {size} MB are fetched once and kept", name=name, size=numeral(size / 1e6, ",.1f")
    )
    print(sentence, file=sys.stderr, flush=True)


def _file_name(file: Any) -> str:
    return str(file.rfilename)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
