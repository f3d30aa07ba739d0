"""Files of a folder that comes from elsewhere, checked before they are read."""

from __future__ import annotations

from pathlib import Path

from transformer.messages import numeral, say

MOST_BYTES = 200_000_000  # of a file that is read at once; the largest tokenizers take 35 MB


def check_file(path: Path) -> None:
    """Raise OSError for what is no plain file (a pipe would be waited for) or is far too large."""
    if not path.exists():
        return  # whoever opens it says so
    if not path.is_file():
        raise OSError(say("{path} is no plain file", path=path))
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise OSError(
            say(
                "it takes {size} MB; allowed: at most {most} MB",
                size=numeral(size / 1e6, ",.0f"),
                most=numeral(MOST_BYTES / 1e6, ",.0f"),
            )
        )


def text_of(path: Path, errors: str = "strict") -> str:
    """A file's text, UTF-8. Raises OSError as `check_file` does, and ValueError for other bytes."""
    check_file(path)
    return path.read_text(encoding="utf-8", errors=errors)
