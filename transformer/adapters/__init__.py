"""Where a model comes from: a bundled name, a folder of ours or of other people, or the hub."""

from __future__ import annotations

from pathlib import Path

from transformer import checkpoint
from transformer.adapters import folder, hub
from transformer.adapters.folder import MAX_LEN

__all__ = ["MAX_LEN", "read"]


def read(source: str | Path, max_len: int = MAX_LEN) -> checkpoint.Checkpoint:
    """A bundled checkpoint ("stories"), a folder, or hub:OWNER/NAME[@REVISION].

    max_len: tokens that another project's network reads at once, where it would read more.
    Raises CheckpointError (a ValueError) for what is not there, is damaged or is not read.
    """
    name = str(source)
    if name.startswith(hub.PREFIX):
        place = hub.fetched(name)
        if folder.is_theirs(place):
            return folder.read(place, hub.short_name(name), max_len)
        return checkpoint.read(place)
    if name not in checkpoint.bundled_names() and folder.is_theirs(Path(source)):
        return folder.read(Path(source), Path(source).resolve().name, max_len)
    return checkpoint.read(source)
