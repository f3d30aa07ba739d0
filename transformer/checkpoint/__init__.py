"""Read a model from a bundled name, a folder or the hub, and write one."""

from __future__ import annotations

from pathlib import Path

from transformer.checkpoint import adapters, folder, hub
from transformer.checkpoint.adapters import MAX_LEN
from transformer.checkpoint.adapters.memory import from_memory
from transformer.checkpoint.export import export
from transformer.checkpoint.folder import (
    BUNDLED,
    Checkpoint,
    CheckpointError,
    HeldOutSample,
    bundled_names,
    held_out_sample,
)
from transformer.checkpoint.writing import DTYPES, save

__all__ = [
    "BUNDLED", "DTYPES", "MAX_LEN", "Checkpoint", "CheckpointError", "HeldOutSample",
    "bundled_names", "export", "from_memory", "held_out_sample", "read", "save",
]  # fmt: skip


def read(source: str | Path, max_len: int = MAX_LEN) -> Checkpoint:
    """Read a bundled checkpoint ("stories"), a folder, or hub:OWNER/NAME[@REVISION].

    max_len: limits the tokens that another project's network reads at once.
    Raises CheckpointError (a ValueError) for a model that is missing, damaged or not supported.
    """
    name = str(source)
    on_hub = name.startswith(hub.PREFIX)
    path = hub.fetched(name) if on_hub else adapters.transformer_in(Path(source))
    if name in bundled_names() or not adapters.is_foreign(Path(path)):
        return folder.read(path)
    short_name = hub.short_name(name) if on_hub else Path(path).resolve().name
    return adapters.read(Path(path), short_name, max_len)
