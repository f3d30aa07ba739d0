"""A progress bar for work of more than a moment."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm

from transformer.inference import deadline

DELAY_S = 2  # without a bar


def progress_bar(what: str, total: int | None, shown: bool = True, unit: str = "it") -> Any:
    """A bar on stderr that appears after DELAY_S and is removed at the end; none if not `shown`,
    and none for a request of a server, which has a deadline.

    total: how many units there are to do; None where that is not known.
    """
    hidden = not shown or deadline.current().has_end
    return tqdm(total=total, desc=what, delay=DELAY_S, leave=False, disable=hidden, unit=unit)
