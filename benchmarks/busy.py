"""How busy the machine is with other work: if much, a benchmark's figures are noise."""

from __future__ import annotations

import os
import time
from pathlib import Path

WAITING = (3, 4)  # idle and waiting for a disk, among the columns of /proc/stat


def others_share(seconds: float) -> float | None:
    """Share of all cores' time, 0 to 1, that is used while this process sleeps so long.

    None where the system does not say; Linux does.
    """
    before = used_s()
    started = time.monotonic()
    time.sleep(seconds)
    after = used_s()
    if before is None or after is None:
        return None
    whole = (time.monotonic() - started) * (os.cpu_count() or 1)
    return min(1.0, (after - before) / whole)


def used_s() -> float | None:
    """Seconds that all cores together have worked since the system started."""
    try:
        first = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()
    except OSError:
        return None
    ticks = [int(count) for place, count in enumerate(first[1:9]) if place not in WAITING]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")
