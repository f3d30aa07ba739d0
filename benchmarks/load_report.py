"""What a load test found: figures, and what of them is not as promised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CLICK_P95_S = 1.0
GROWTH = 1.10


@dataclass(slots=True)
class Report:
    """What happened. Times in seconds, memory in bytes."""

    visitors: int
    seconds: float
    opened: list[float] = field(default_factory=list)
    generated: list[float] = field(default_factory=list)
    clicked: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    trained: list[float] = field(default_factory=list)
    tokens: int = 0
    farthest_place: int = 0
    may_lose: bool = False  # the connection, which the page tells, and comes back
    lost: list[str] = field(default_factory=list)
    made_again: int = 0
    faults: list[str] = field(default_factory=list)
    memory_settled: int = 0
    memory_end: int = 0
    kept_runs: int = 0
    kept_settled: int = 0
    kept_bytes: int = 0

    def figures(self) -> dict[str, Any]:
        """The same, summed up."""
        return {
            "visitors": self.visitors,
            "seconds": round(self.seconds, 1),
            "pages_opened": len(self.opened),
            "open_p95_s": percentile(self.opened, 95),
            "generations": len(self.generated),
            "tokens": self.tokens,
            "generation_median_s": percentile(self.generated, 50),
            "generation_p95_s": percentile(self.generated, 95),
            "trainings": len(self.trained),
            "clicks": len(self.clicked),
            "click_median_s": percentile(self.clicked, 50),
            "click_p95_s": percentile(self.clicked, 95),
            "health_p95_s": percentile(self.health, 95),
            "farthest_place_in_queue": self.farthest_place,
            "memory_settled_bytes": self.memory_settled,
            "memory_end_bytes": self.memory_end,
            "kept_settled_bytes": self.kept_settled,
            "kept_runs": self.kept_runs,
            "kept_bytes": self.kept_bytes,
            "connections_lost": len(self.lost),
            "runs_made_again": self.made_again,
            "faults": len(self.faults),
        }

    def failures(self) -> list[str]:
        """What is not as promised, a sentence each; at most a few of the faults."""
        found = self.faults[:5] + ([] if self.may_lose else self.lost[:5])
        if not self.clicked:
            found.append("no visitor came as far as choosing a head")
        elif percentile(self.clicked, 95) > CLICK_P95_S:
            found.append(f"95 % of clicks took up to {percentile(self.clicked, 95):.2f} s")
        kept = self.kept_bytes - self.kept_settled  # in a budget of its own
        if self.memory_end > GROWTH * (self.memory_settled + kept) > 0:
            before, after = self.memory_settled / 1e6, self.memory_end / 1e6
            kept_mb = f"{kept / 1e6:.0f} MB of it kept for visits"
            found.append(f"memory grew from {before:.0f} to {after:.0f} MB, {kept_mb}")
        return found


def percentile(values: Sequence[float], percent: float) -> float:
    """NaN of nothing."""
    return round(float(np.percentile(values, percent)), 3) if values else float("nan")
