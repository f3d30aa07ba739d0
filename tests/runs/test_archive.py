"""Runs as JSON, NPZ and CSV: the trace's numbers, read by plain readers, and the same run back."""

from __future__ import annotations

import base64
import csv
import io
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jsonschema import Draft202012Validator
from pictured import HOSTILE, relabelled

import transformer
from transformer import Ablate, Model, Run, with_lens
from transformer.former_names import FORMER_NAMES
from transformer.runs import archive

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "run.schema.json").read_text(encoding="utf-8"))
SILENCE = [{"type": "ablate", "stack": "decoder", "layer": 1, "heads": [0]}]


@pytest.fixture(params=["sampled", "altered", "read", "bare", "searched", "encoder"])
def run(
    request: pytest.FixtureRequest,
    tiny_model: Model,
    tiny_encoder: Model,
    tiny_encoder_decoder: Model,
) -> Run:
    """One of each kind."""
    made = {
        "sampled": lambda: tiny_model.generate("the fox é🦊 ", max_new_tokens=30, top_k=9, seed=2),
        "altered": lambda: tiny_model.generate(
            "the fox", max_new_tokens=4, interventions=SILENCE, forced_tokens=[7]
        ),
        "read": lambda: tiny_model.trace("the fox"),
        "bare": lambda: tiny_model.generate("the fox said", max_new_tokens=3),
        "searched": lambda: tiny_encoder_decoder.generate("the fox", beams=3, max_new_tokens=6),
        "encoder": lambda: tiny_encoder.trace("the fox"),
    }
    model = {"searched": tiny_encoder_decoder, "encoder": tiny_encoder}.get(
        request.param, tiny_model
    )
    found = made[request.param]()
    return found if request.param == "bare" else with_lens(model, found)


def complaints(value: Any) -> list[str]:
    """What is wrong with a run by the schema of the document."""
    return [error.json_path for error in Draft202012Validator(SCHEMA).iter_errors(value)]


def same(one: Run, other: Run) -> None:
    """Equal in all that the formats keep."""
    for field in (
        "model", "config", "request", "ids", "labels", "n_prompt", "source_ids", "source_labels",
        "text", "steps", "stopped", "trace_start", "candidate_labels", "surprisal", "search",
    ):  # fmt: skip
        assert getattr(one, field) == getattr(other, field), field
    for site in other.trace.sites:
        for field in ("scores", "pattern", "allowed"):
            left, right = getattr(one.trace[site], field), getattr(other.trace[site], field)
            torch.testing.assert_close(left, right, rtol=0, atol=0)
    assert (one.lens is None) == (other.lens is None)
    if one.lens is not None and other.lens is not None:
        assert one.lens.ids.equal(other.lens.ids)
        assert one.lens.probabilities.equal(other.lens.probabilities)


# --- JSON -----------------------------------------------------------------------------------------


def test_json_keeps_the_schema_that_the_document_states(run: Run) -> None:
    found = json.loads(run.to_json())
    assert complaints(found) == []
    assert found["schema"] == SCHEMA["title"] == archive.SCHEMA
    broken = found | {"stopped": "bored", "ids": ["a"], "extra": 1}
    assert set(complaints(broken)) == {"$", "$.stopped", "$.ids[0]"}


def test_json_holds_the_trace_as_plain_bytes(run: Run) -> None:
    found = json.loads(run.to_json())
    assert found["sites"] == [str(site) for site in run.trace.sites]
    for site in run.trace.sites:
        for name, kind in (("pattern", "<f4"), ("mask", "?")):
            written = found["arrays"][f"{site}/{name}"]
            numbers = np.frombuffer(base64.b64decode(written["base64"]), kind)
            wanted = run.trace[site].pattern[0] if name == "pattern" else run.trace[site].allowed[0]
            np.testing.assert_array_equal(numbers.reshape(written["shape"]), wanted.numpy())


def test_a_run_comes_back_the_same_from_every_format(run: Run, tmp_path: Path) -> None:
    run.to_npz(tmp_path / "run.npz")
    inside = sum(array.nbytes for array in run.arrays().values())
    assert run.npz_bytes() == pytest.approx(inside, rel=0.05)
    back, site = transformer.read_npz(tmp_path / "run.npz"), run.trace.sites[0]
    for again in (back, transformer.from_json(run.to_json()), pickle.loads(pickle.dumps(run))):
        same(again, run)
    assert (
        back.draw("attention_math", site, 1).to_json()
        == run.draw("attention_math", site, 1).to_json()
    )
    stream = run.trace.residuals[site.stack][1]
    torch.testing.assert_close(back.trace.residuals[site.stack][1], stream)


def test_json_without_attention_is_small_and_has_the_rest(tiny_model: Model) -> None:
    run = tiny_model.generate("the fox said", max_new_tokens=20)
    short = run.to_json(attention=False)
    assert not [name for name in json.loads(short)["arrays"] if name.startswith("decoder")]
    assert complaints(json.loads(short)) == []
    assert transformer.from_json(short).steps == run.steps


def test_a_file_of_the_first_version_is_read_with_its_lens() -> None:
    text = (ROOT / "tests" / "data" / "run-1.json").read_text()
    assert json.loads(text)["schema"] == "transformer-run/1"
    run = transformer.from_json(text)
    assert (run.request.forced_tokens, run.ids[run.n_prompt]) == ((70,), 70)
    assert run.request.interventions[0] == Ablate(stack="decoder", layer=1, heads=(0,))
    assert run.lens is not None
    assert run.lens.ids.shape == (3, len(run.labels), 5)
    assert run.surprisal is not None
    assert run.draw("surprisal").layout.meta["summary"]["n_tokens"] == len(run.labels) - 1
    assert complaints(json.loads(run.to_json())) == []


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_with_the_names_of_earlier_versions_are_read(
    run: Run, version: int, tmp_path: Path
) -> None:
    former = {today: name for name, today in FORMER_NAMES.items()}

    def renamed(name: str) -> str:
        return "/".join(former.get(part, part) for part in name.split("/"))

    run.to_npz(tmp_path / "run.npz")
    found = dict(np.load(tmp_path / "run.npz"))
    values = json.loads(bytes(found.pop("run"))) | {"schema": f"transformer-run/{version}"}
    values["surprise"] = values.pop("surprisal")
    if version == 1:
        values["request"]["taken"] = values["request"].pop("forced_tokens", [])
    arrays = {renamed(name): value for name, value in found.items()}
    assert {"queries", "keys", "values", "weights"} <= {name.rpartition("/")[2] for name in arrays}
    archive.write_npz(tmp_path / "old.npz", "run", values, arrays)
    old, new = (
        transformer.read_npz(tmp_path / "old.npz"),
        transformer.read_npz(tmp_path / "run.npz"),
    )
    same(old, new)
    for site in new.trace.sites:
        for name in ("q", "k", "v"):
            assert torch.equal(getattr(old.trace[site], name), getattr(new.trace[site], name))
    for name in ("embed", "pos_embed"):
        for stack, value in getattr(new.trace, name).items():
            assert torch.equal(getattr(old.trace, name)[stack], value)
    assert old.trace.residuals.keys() == new.trace.residuals.keys()


def test_odd_text_survives(tiny_model: Model) -> None:
    run = relabelled(tiny_model.trace("the fox\x00 \u2028 é"), HOSTILE)
    back = transformer.from_json(run.to_json())
    assert (back.labels, back.request.text) == (run.labels, run.request.text)
    assert run.to_json().isascii()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "this is not JSON"),
        ("[" * 100_000, "this is not JSON"),
        (
            "[]",
            "'transformer-run/2', 'transformer-run/3', 'transformer-run/4']; got 'list'",
        ),
        ('{"schema": "transformer-run/9"}', "got 'transformer-run/9'"),
        ('{"schema": "transformer-run/1"}', "this run is not whole"),
        ('{"schema": "transformer-run/1", "arrays": {"a": 3}}', "this run is not whole"),
    ],
)
def test_what_is_no_run_gets_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        transformer.from_json(text)


# --- NPZ ------------------------------------------------------------------------------------------


def test_npz_arrays_are_named_by_site_and_need_no_pickle(run: Run, tmp_path: Path) -> None:
    run.to_npz(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as found:
        assert found["ids"].tolist() == list(run.ids)
        for site in run.trace.sites:
            record = run.trace[site]
            for field in ("scores", "pattern", "q", "k", "v"):
                value = getattr(record, field)[0].numpy()
                np.testing.assert_array_equal(found[f"{site}/{field}"], value)
                assert found[f"{site}/{field}"].dtype == np.float32
            assert found[f"{site}/mask"].dtype == np.bool_
        for stack, streams in run.trace.residuals.items():
            np.testing.assert_array_equal(found[f"residual/{stack}"][-1], streams[-1][0].numpy())
            positions = run.trace.pos_embed[stack][0].numpy()
            np.testing.assert_array_equal(found[f"pos_embed/{stack}"], positions)
        rest = json.loads(bytes(found["run"]))
    assert complaints(rest | {"arrays": {}}) == []


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not numpy at all"])
def test_another_file_is_not_read_as_a_run(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.npz").write_bytes(content)
    with pytest.raises(ValueError, match="holds no run of the formats"):
        transformer.read_npz(tmp_path / "odd.npz")


def test_an_npz_of_something_else_or_with_a_pickle_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(2))
    np.savez(tmp_path / "b.npz", run=np.array([{"a": 1}], dtype=object))
    for name in ("a.npz", "b.npz"):
        with pytest.raises(ValueError, match="holds no run of the formats"):
            transformer.read_npz(tmp_path / name)


# --- CSV ------------------------------------------------------------------------------------------


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_csv_has_the_weights_of_a_head_under_its_tokens(tiny_encoder_decoder: Model) -> None:
    run = tiny_encoder_decoder.generate("the fox said", max_new_tokens=5)
    head, *lines = rows_of(run.attention_csv("decoder.1.cross", 1))
    assert head[1:] == [f"[{place}] {label}" for place, label in enumerate(run.source_labels)]
    assert [line[0] for line in lines] == [f"[{i}] {text}" for i, text in enumerate(run.labels)]
    found = np.array([[np.float32(cell) for cell in line[1:]] for line in lines])
    np.testing.assert_array_equal(found, run.trace["decoder.1.cross"].pattern[0, 1].numpy())


def test_csv_leaves_hidden_cells_empty_but_for_raw_scores(tiny_model: Model) -> None:
    run = tiny_model.trace("the fox said")
    record = run.trace["decoder.0.self"]
    for stage in ("weights", "masked", "scores"):
        _, *lines = rows_of(run.attention_csv("decoder.0.self", 0, stage))
        empty = np.array([[cell == "" for cell in line[1:]] for line in lines])
        hidden = ~record.allowed[0].numpy()
        np.testing.assert_array_equal(empty, hidden & (stage != "scores"))
    assert float(lines[2][4]) == record.scores[0, 0, 2, 3]


def test_no_token_in_a_csv_can_become_a_formula(tiny_model: Model) -> None:
    odd = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", 'a"b,c', "\r\n=2", *HOSTILE)
    run = relabelled(tiny_model.trace("the fox said hello to the bird"), odd)
    text = run.attention_csv("decoder.0.self", 0)
    head, *lines = rows_of(text)
    names = head[1:] + [line[0] for line in lines]
    assert all(name.startswith("[") for name in names)
    assert any("=1+1" in name for name in names)
    numbers = [cell for line in lines for cell in line[1:] if cell]
    assert all(re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell) for cell in numbers)


def test_csv_of_what_is_not_there_lists_what_is(tiny_model: Model) -> None:
    run = tiny_model.trace("the fox")
    with pytest.raises(ValueError, match="head must be a whole number from 0 to 1 or 'mean'"):
        run.attention_csv("decoder.0.self", 7)
    with pytest.raises(ValueError, match="stage must be one of"):
        run.attention_csv("decoder.0.self", 0, "raw")
