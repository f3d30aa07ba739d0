"""A run read back from the JSON or NPZ that `archive` writes, of this and of older versions."""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.messages import invalid
from transformer.model.config import ModelConfig
from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord, Trace
from transformer.runs.archive import TEXT, TYPES, Arrays, opened
from transformer.runs.candidates import Candidate, GenerationStep
from transformer.runs.data import Lens
from transformer.runs.plain_values import SCHEMA
from transformer.runs.request import Request
from transformer.runs.run import Run
from transformer.runs.search import BeamNode, Hypothesis, Search

READ = ("transformer-run/1", SCHEMA)


def from_json(text: str) -> Run:
    """The run of a JSON text. Raises ValueError for one of another format or without its parts."""
    try:
        written = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise invalid("this is not JSON: {error}", error=error) from error
    return _read(
        written, lambda: {name: _unwritten(value) for name, value in written["arrays"].items()}
    )


def read_npz(place: str | Path | IO[bytes]) -> Run:
    """The run of an NPZ. Raises OSError if it cannot be read, ValueError if it holds no run."""
    try:
        with opened(place) as file, np.load(file, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
        written = json.loads(bytes(arrays.pop(TEXT)))
    except (ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise invalid(
            "this file holds no run of the formats {allowed}", allowed=list(READ)
        ) from error
    return _read(written, lambda: arrays)


def _unwritten(value: dict[str, Any]) -> NDArray[Any]:
    raw = np.frombuffer(base64.b64decode(value["base64"], validate=True), TYPES[value["dtype"]])
    return raw.reshape(value["shape"]).astype(value["dtype"])


def _read(written: Any, arrays: Callable[[], Arrays]) -> Run:
    if not isinstance(written, dict) or written.get("schema") not in READ:
        got = written.get("schema") if isinstance(written, dict) else type(written).__name__
        raise invalid(
            "this is not a run of the formats {allowed}; got {got}",
            allowed=list(READ),
            got=repr(got),
        )
    try:
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in arrays().items()}
        return _run_from(written, tensors)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise invalid(
            "this run is not whole: {error_type} at {error}",
            error_type=type(error).__name__,
            error=error,
        ) from error


def _run_from(written: dict[str, Any], tensors: dict[str, Tensor]) -> Run:
    """The inverse of `plain_values.values_of`, with the arrays of `archive.arrays_of` as tensors.

    Raises KeyError, TypeError and the like for missing or odd parts, ValueError for wrong values.
    """
    return Run(
        model=written["model"],
        config=ModelConfig.from_dict(written["config"]),
        request=_request(written["request"]),
        ids=tuple(written["ids"]),
        labels=tuple(written["labels"]),
        n_prompt=written["n_prompt"],
        source_ids=tuple(written["source_ids"]),
        source_labels=tuple(written["source_labels"]),
        read_as=written.get("read_as"),  # of old there was none
        doubts=tuple(written.get("doubts", ())),
        text=written["text"],
        steps=tuple(_step_of(step) for step in written["steps"]),
        stopped=written["stopped"],
        trace=_trace(written["sites"], tensors),
        trace_start=written["trace_start"],
        position_matrices=_named(tensors, "position_matrix/"),
        candidate_labels={int(key): label for key, label in written["candidate_labels"].items()},
        surprise=None if written["surprise"] is None else tuple(written["surprise"]),
        lens=Lens(**lens) if (lens := _named(tensors, "lens/")) else None,
        search=None if written["search"] is None else _search_of(written["search"]),
    )


def _request(values: dict[str, Any]) -> Request:
    """In version 1 the forced tokens were called "taken"."""
    known = {"forced_tokens" if name == "taken" else name: value for name, value in values.items()}
    return Request(**known)


def _trace(sites: list[str], tensors: dict[str, Tensor]) -> Trace:
    """Records of the sites whose arrays are there, with the batch axis of one text again."""
    records = {}
    for site in map(Site.parse, sites):
        fields = {name: value[None] for name, value in _named(tensors, f"{site}/").items()}
        if "weights" in fields:
            mask = fields.pop("mask")[:, None]
            records[site] = AttentionRecord(site=site, mask=mask, **fields)
    return Trace(
        records=records,
        embedded={key: value[None] for key, value in _named(tensors, "embedded/").items()},
        positions={key: value[None] for key, value in _named(tensors, "positions/").items()},
        residuals={
            key: [x[None] for x in value] for key, value in _named(tensors, "residual/").items()
        },
    )


def _named(tensors: dict[str, Tensor], start: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)
    }


def _step_of(step: dict[str, Any]) -> GenerationStep:
    candidates = tuple(Candidate(**candidate) for candidate in step["candidates"])
    return GenerationStep(**step | {"window": tuple(step["window"]), "candidates": candidates})


def _search_of(search: dict[str, Any]) -> Search:
    found = [dict(one) for one in search["hypotheses"]]
    texts = tuple(one.pop("text") for one in found)
    return Search(
        hypotheses=tuple(Hypothesis(**one | {"ids": tuple(one["ids"])}) for one in found),
        texts=texts,
        tree=tuple(tuple(BeamNode(**node) for node in nodes) for nodes in search["tree"]),
    )
