"""A run as a file for the visitor, made in memory, never on the server's disk."""

from __future__ import annotations

import base64
import io
import re
import unicodedata

from transformer.checks import InvalidRequest, check_choice
from transformer.runs.head_data import head_csv
from transformer.runs.request import request_to_dict
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
    "py": "text/x-python",
}
_PROGRAM = """\
# The same run, asked of the page by a program: pip install gradio_client numpy
import base64

import numpy as np
from gradio_client import Client

client = Client({address!r})
run = client.predict(
    {arguments},
    api_name="/{endpoint}",
)
print(run["text"])

# What a head reads: a row for each query, a column for each key.
head = client.predict(run["run"], {site!r}, {head}, packed=True, api_name="/attention")
packed = head["weights"]
weights = np.frombuffer(base64.b64decode(packed["base64"]), packed["dtype"])
weights = weights.reshape(packed["shape"])
print(weights.round(2))

client.view_api()  # everything else that the page answers
"""


def export(
    run: Run,
    *,
    form: str,
    site: str = "",
    head: int = 0,
    stage: str = "weights",
    address: str = "http://127.0.0.1:7860",
) -> Answer:
    """{"name", "type", and "text" or "base64"}: the run in a form of "json", "npz", "html", "csv"
    (one head) or "py" (a program that asks the page for it).

    site, head: the head of "csv" and "py", and what "html" opens on. stage: of "csv".
    address: of the page, for "py".
    Raises ValueError for an unknown form or head, and for a run larger than MAX_EXPORT_BYTES.
    """
    check_choice("form", form, tuple(_TYPES))
    place, content = "", {}
    if form == "csv":
        content["text"] = _BYTE_ORDER_MARK + head_csv(run, site, head, stage=stage)
        place = f"-{_safe(site)}-head-{head}"
    elif form == "py":
        content["text"] = _program(run, address, site or str(run.trace.sites[0]), head)
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


def _program(run: Run, address: str, site: str, head: int) -> str:
    request, plain = run.request, request_to_dict(run.request, defaults=False)
    text = plain.pop("text")
    if request.max_new_tokens:
        settings = {"max_new_tokens": request.max_new_tokens, **plain}
    else:
        settings = {name: plain[name] for name in ("interventions",) if name in plain}
    named = (f"{name}={value!r}" for name, value in {"model": run.model, **settings}.items())
    return _PROGRAM.format(
        address=address, arguments=",\n    ".join((repr(text), *named)),
        endpoint="generate" if request.max_new_tokens else "trace", site=site, head=head,
    )  # fmt: skip


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
