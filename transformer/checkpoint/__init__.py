"""Where a model comes from, and where it is written: a bundled name, a folder, or the hub."""

from __future__ import annotations

from pathlib import Path

from transformer.checkpoint import adapters, folder, hub
from transformer.checkpoint.adapters import MAX_LEN
from transformer.checkpoint.folder import BUNDLED, Checkpoint, bundled_names
from transformer.checkpoint.parts import CheckpointError, HeldOutSample, held_out_sample
from transformer.checkpoint.writing import DTYPES, save

__all__ = [
    "BUNDLED", "DTYPES", "MAX_LEN", "Checkpoint", "CheckpointError", "HeldOutSample",
    "bundled_names", "held_out_sample", "read", "save",
]  # fmt: skip


def read(source: str | Path, max_len: int = MAX_LEN) -> Checkpoint:
    """A bundled checkpoint ("stories"), a folder, or hub:OWNER/NAME[@REVISION].

    max_len: tokens that another project's network reads at once, where it would read more.
    Raises CheckpointError (a ValueError) for what is not there, is damaged or is not read.
    """
    name = str(source)
    of_hub = name.startswith(hub.PREFIX)
    place = hub.fetched(name) if of_hub else source
    if name in bundled_names() or not adapters.is_theirs(Path(place)):
        return folder.read(place)
    short_name = hub.short_name(name) if of_hub else Path(place).resolve().name
    return adapters.read(Path(place), short_name, max_len)
