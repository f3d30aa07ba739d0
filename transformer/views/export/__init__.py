"""A run as a file for the visitor, made in memory, never on the server's disk."""

from __future__ import annotations

import base64
import io
import re
import unicodedata

from transformer.checks import InvalidRequest, check_choice
from transformer.runs.head_data import head_csv
from transformer.runs.run import Run
from transformer.views.declaration import Answer
from transformer.views.export import html

MAX_EXPORT_BYTES = 30_000_000  # of a run's arrays, or of its page, that are made into a file
LONGEST_NAME = 60  # characters of a file's name, without its ending
_BYTE_ORDER_MARK = "\ufeff"  # tells spreadsheets that a text is UTF-8


_TYPES = {
    "json": "application/json",
    "npz": "application/zip",
    "html": "text/html",
    "csv": "text/csv",
}


def export(run: Run, *, form: str, site: str = "", head: int = 0, stage: str = "weights") -> Answer:
    """{"name", "type", and "text" or "base64"}: a file of form "json", "npz", "html" or "csv".

    site, head: of "csv", which holds one head, and what "html" opens on. stage: of "csv".
    Raises ValueError for an unknown form or head, and for a run larger than MAX_EXPORT_BYTES.
    """
    check_choice("form", form, tuple(_TYPES))
    place, content = "", {}
    if form == "csv":
        content["text"] = _BYTE_ORDER_MARK + head_csv(run, site, head, stage=stage)
        place = f"-{_safe(site)}-head-{head}"
    elif form == "html":
        content["text"] = html.page(run, site, head)
        _check_size(len(content["text"]), "page")
    else:
        _check_size(run.npz_bytes(), "arrays")
        if form == "json":
            content["text"] = run.to_json()
        else:
            run.to_npz(file := io.BytesIO())
            content["base64"] = base64.b64encode(file.getbuffer()).decode("ascii")
    return {"name": file_name(run, form, place), "type": _TYPES[form]} | content


def file_name(run: Run, form: str, place: str = "") -> str:
    """The model, the first words and the place, in ASCII letters, digits and hyphens."""
    name = _safe(f"{run.model} {run.request.text[:LONGEST_NAME]}")[:LONGEST_NAME].strip("-")
    return f"{name or 'run'}{place}.{form}"


def _safe(words: str) -> str:
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


def _check_size(size: int, what: str) -> None:
    if size > MAX_EXPORT_BYTES:
        raise InvalidRequest(
            "too_large",
            "this run's {what} would be {size} MB; the page sends at most {most} MB: "
            "take a shorter text, the CSV of one head, or `python -m transformer` "
            "with --json, --npz or --html, which have no limit",
            what=what,
            size=size // 10**6,
            most=MAX_EXPORT_BYTES // 10**6,
        )
