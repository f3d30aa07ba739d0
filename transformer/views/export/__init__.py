"""A run as a file for the visitor, made in memory: nothing of it comes to the server's disk."""

from __future__ import annotations

import base64
import io
import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from transformer.checks import check_choice
from transformer.messages import invalid, numeral
from transformer.runs.run import Run
from transformer.views.attention.csv import head_csv
from transformer.views.declaration import Answer
from transformer.views.export import html

MAX_EXPORT_BYTES = 30_000_000  # of a run's arrays, or of its page, that are made into a file
LONGEST_NAME = 60  # characters of a file's name, without its ending
_BYTE_ORDER_MARK = "\ufeff"  # tells spreadsheets that a text is UTF-8


class Asked(NamedTuple):
    """A run, and the head for what holds one head only."""

    run: Run
    site: str
    head: int
    stage: str


def export(run: Run, *, form: str, site: str = "", head: int = 0, stage: str = "weights") -> Answer:
    """{"name", "type", and "text" or "base64"}: a file of form "json", "npz", "html" or "csv".

    site, head, stage: for "csv", which holds one head. Raises ValueError for an unknown form or
    head, and for a run larger than MAX_EXPORT_BYTES.
    """
    asked = Asked(run, site, head, stage)
    check_choice("form", form, tuple(_FORMS))
    return _FORMS[form](asked) | {"name": file_name(asked, form)}


def file_name(asked: Asked, form: str) -> str:
    """The model and the first words (and the head), in ASCII letters, digits and hyphens."""
    run, site, head, _ = asked
    name = _safe(f"{run.model} {run.request.text[:LONGEST_NAME]}")[:LONGEST_NAME].strip("-")
    place = f"-{_safe(site)}-head-{head}" if form == "csv" else ""
    return f"{name or 'run'}{place}.{form}"


def _safe(words: str) -> str:
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


def _json(asked: Asked) -> Answer:
    _check_size(asked.run.npz_bytes(), "arrays")
    return {"type": "application/json", "text": asked.run.to_json()}


def _npz(asked: Asked) -> Answer:
    _check_size(asked.run.npz_bytes(), "arrays")
    file = io.BytesIO()
    asked.run.to_npz(file)
    sent = base64.b64encode(file.getbuffer()).decode("ascii")
    return {"type": "application/zip", "base64": sent}


def _page(asked: Asked) -> Answer:
    text = html.page(asked.run)
    _check_size(len(text), "page")
    return {"type": "text/html", "text": text}


def _csv(asked: Asked) -> Answer:
    text = head_csv(asked.run, asked.site, asked.head, stage=asked.stage)
    return {"type": "text/csv", "text": _BYTE_ORDER_MARK + text}


def _check_size(size: int, what: str) -> None:
    if size > MAX_EXPORT_BYTES:
        raise invalid(
            "this run's {what} would be {size} MB; the page sends at most {most} MB: "
            "take a shorter text, the CSV of one head, or `python -m transformer` "
            "with --json, --npz or --html, which have no limit",
            what=what,
            size=numeral(size / 1e6, ".0f"),
            most=numeral(MAX_EXPORT_BYTES / 1e6, ".0f"),
        )


_FORMS: dict[str, Callable[[Asked], Answer]] = {
    "json": _json,
    "npz": _npz,
    "html": _page,
    "csv": _csv,
}
