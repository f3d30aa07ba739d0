"""Runs as JSON, NPZ and CSV: the trace's numbers, read by plain readers, and the same run back."""

import base64
import csv
import io
import json
import os
import pickle
import re
import tracemalloc
import zipfile
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from kit.runs import HOSTILE, relabelled

import transformer
from transformer import Ablate, Run, with_lens
from transformer.runs import archive
from transformer.runs.request import request_from_dict, request_to_dict

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "library" / "run.schema.json").read_text(encoding="utf-8"))
SILENCE = [{"type": "ablate", "stack": "decoder", "layer": 1, "heads": [0]}]


@st.composite
def drawn(draw: st.DrawFn) -> dict[str, Any]:
    """A drawn model and request, and whether its lens is computed."""
    name = draw(st.sampled_from(["decoder", "encoder-decoder", "encoder"]))
    new = draw(st.integers(1, 6))
    options: dict[str, Any] = {"max_new_tokens": new}
    if name == "encoder-decoder" and draw(st.booleans()):
        options |= {"beams": draw(st.integers(2, 4)), "length_penalty": 0.5}
    else:
        filters = {
            "temperature": st.just(0.7), "top_k": st.just(9), "seed": st.integers(0, 9),
            "stop": st.just(("e",)), "repetition_penalty": st.just(1.2),
        }  # fmt: skip
        options |= draw(st.fixed_dictionaries({}, optional=filters))
        if not {"temperature", "top_k"} & options.keys():
            options.pop("seed", None)  # where nothing is drawn it is refused
        options["forced_tokens"] = draw(st.lists(st.integers(5, 300), max_size=new))
        options["interventions"] = draw(st.sampled_from([[], SILENCE]))
    text = draw(st.sampled_from(["the fox said", "the fox é🦊 ", "the fox\x00 \u2028 é "]))
    return {"name": name, "text": text, "options": options, "hostile": draw(st.booleans()),
            "lens": draw(st.booleans())}  # fmt: skip


def complaints(value: Any) -> list[str]:
    """What is wrong with a run by the schema of the document."""
    return [error.json_path for error in Draft202012Validator(SCHEMA).iter_errors(value)]


def same(one: Run, other: Run, *, vectors: bool = True) -> None:
    """Equal in all that the formats keep. vectors: not in JSON."""
    for field in (
        "model", "config", "request", "ids", "labels", "n_prompt", "source_ids", "source_labels",
        "text", "steps", "stopped", "trace_start", "candidate_labels", "surprisal", "search",
        "read_as", "warnings", "weights", "altered_by",
    ):  # fmt: skip
        assert getattr(one, field) == getattr(other, field), field
    assert one.trace.sites == other.trace.sites
    for site in other.trace.sites:
        for field in ("scores", "pattern", "allowed", *(("q", "k", "v") if vectors else ())):
            assert getattr(one.trace[site], field).equal(getattr(other.trace[site], field))
    assert one.position_matrices.keys() == other.position_matrices.keys()
    for stack, matrix in other.position_matrices.items():
        assert one.position_matrices[stack].equal(matrix)
    for name in ("embed", "pos_embed", "residuals") if vectors else ():
        left, right = getattr(one.trace, name), getattr(other.trace, name)
        assert left.keys() == right.keys()
        assert all(map(torch.equal, chain(*left.values()), chain(*right.values())))
    assert (one.lens is None) == (other.lens is None)
    if one.lens is not None and other.lens is not None:
        assert one.lens.ids.equal(other.lens.ids)
        assert one.lens.probabilities.equal(other.lens.probabilities)


@settings(max_examples=16, suppress_health_check=list(HealthCheck))
@given(drawn=drawn())
def test_a_run_comes_back_the_same_from_every_format(
    tiny_model, tiny_encoder, tiny_encoder_decoder, tmp_path, drawn
):
    """Without us too: plain bytes in JSON, arrays in NPZ, by a schema."""
    models = {"encoder": tiny_encoder, "encoder-decoder": tiny_encoder_decoder}
    model = models.get(drawn["name"], tiny_model)
    is_encoder = model is tiny_encoder
    run: Any = (
        model.trace(drawn["text"])
        if is_encoder
        else model.generate(drawn["text"], **drawn["options"])
    )
    run = with_lens(model, run) if drawn["lens"] else run
    run = relabelled(run, HOSTILE) if drawn["hostile"] else run

    text = run.to_json()
    found = json.loads(text)
    assert text.isascii()
    assert complaints(found) == []
    assert found["schema"] == SCHEMA["title"] == archive.SCHEMA
    path = tmp_path / "run.npz"
    run.to_npz(path)
    with np.load(path, allow_pickle=False) as loaded:
        arrays = dict(loaded)
    assert complaints(json.loads(bytes(arrays.pop("run"))) | {"arrays": {}}) == []
    held = sum(array.nbytes for array in arrays.values())
    assert run.npz_bytes() == held - 8 * (len(run.ids) + len(run.source_ids))
    assert arrays["ids"].tolist() == list(run.ids)
    for record in run.trace:
        for field in ("scores", "pattern", "mask", "q", "k", "v"):
            value = record.allowed if field == "mask" else getattr(record, field)
            name = f"{record.site}/{field}"
            np.testing.assert_array_equal(arrays[name], value[0].numpy(), strict=True)
            assert (name in found["arrays"]) == (field in ("scores", "pattern", "mask"))
            if name in found["arrays"]:
                raw = base64.b64decode(found["arrays"][name]["base64"])
                kind = "?" if field == "mask" else "<f4"
                written = np.frombuffer(raw, kind).reshape(found["arrays"][name]["shape"])
                np.testing.assert_array_equal(written, arrays[name])
    for stack, streams in run.trace.residuals.items():
        np.testing.assert_array_equal(arrays[f"residual/{stack}"], torch.cat(streams).numpy())
        for name in ("embed", "pos_embed"):
            wanted = getattr(run.trace, name)[stack][0].numpy()
            np.testing.assert_array_equal(arrays[f"{name}/{stack}"], wanted)

    same(transformer.from_json(text), run, vectors=False)
    same(transformer.read_npz(path), run)
    same(pickle.loads(pickle.dumps(run)), run)
    for defaults in (True, False):
        assert request_from_dict(request_to_dict(run.request, defaults=defaults)) == run.request
    again = transformer.read_npz(path).draw("attention_math", run.trace.sites[0], 1).to_json()
    assert again == run.draw("attention_math", run.trace.sites[0], 1).to_json()


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder", "tiny_encoder_decoder"])
def test_a_batch_comes_back_the_same(name, request, tmp_path):
    model = request.getfixturevalue(name)
    off = [Ablate(model.network.last_stack.name, 1, [0])]
    batch = model.trace(["the fox said", "the"], off)
    batch.to_npz(tmp_path / "batch.npz")
    again = transformer.read_batch(tmp_path / "batch.npz")
    for field in ("model", "config", "texts", "request", "stopped", "labels", "outputs"):
        assert getattr(again, field) == getattr(batch, field), field
    for one, other in zip(again, batch, strict=True):
        same(one, other)
    with pytest.raises(ValueError, match="holds no run of the format transformer-run/4"):
        transformer.read_npz(tmp_path / "batch.npz")
    batch[0].to_npz(tmp_path / "run.npz")
    with pytest.raises(ValueError, match="holds no batch of the format transformer-batch/3"):
        transformer.read_batch(tmp_path / "run.npz")


def test_json_without_attention_is_small_and_has_the_rest(tiny_model):
    run = tiny_model.generate("the fox said", max_new_tokens=20)
    short = run.to_json(attention=False)
    assert not [name for name in json.loads(short)["arrays"] if name.startswith("decoder")]
    assert complaints(json.loads(short)) == []
    assert transformer.from_json(short).steps == run.steps


NO_RUNS = [
    ("{", "this is not JSON"),
    ("[" * 100_000, "this is not JSON"),
    ("[]", "of the format transformer-run/4; got 'list'"),
    ('{"schema": "transformer-run/9"}', "got 'transformer-run/9'"),
    ('{"schema": "transformer-run/4"}', "this run is not whole"),
    ('{"schema": "transformer-run/4", "arrays": {"a": 3}}', "this run is not whole"),
]


@pytest.mark.parametrize(("text", "sentence"), NO_RUNS)
def test_what_is_no_run_gets_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        transformer.from_json(text)


def test_another_file_is_not_read_as_a_run(tmp_path):
    """Nor one with a pickle inside, which would be executed."""
    np.savez(tmp_path / "other.npz", x=np.zeros(2))
    np.savez(tmp_path / "pickle.npz", run=np.array([{"a": 1}], dtype=object))
    for number, content in enumerate((b"", b"PK\x03\x04", b"not numpy at all")):
        (tmp_path / f"{number}.npz").write_bytes(content)
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match="holds no run of the format"):
            transformer.read_npz(path)


def header(shape: tuple[int, ...]) -> bytes:
    """What an array of NumPy's format begins with."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"shape": shape, "fortran_order": False, "descr": "<f4"}
    )
    return file.getvalue()


HOSTILE_ARRAYS = {
    "many": header((10**18,)),
    "large": header((25 * 10**9,)) + bytes(400),
    "negative": header((-1, 4)) + bytes(16),
    "short": header((100,)) + bytes(40),
    "text": b"not an array",
    "bomb": header((30_000_000,)) + bytes(120_000_000),
}


@pytest.mark.parametrize("name", HOSTILE_ARRAYS)
def test_an_array_with_a_false_header_uses_no_memory(tiny_model, tmp_path, name):
    tiny_model.trace("the fox").to_npz(tmp_path / "run.npz")
    site = "decoder.0.self/pattern.npy"
    with zipfile.ZipFile(tmp_path / "run.npz") as good:
        members = {one: good.read(one) for one in good.namelist()}
    with zipfile.ZipFile(tmp_path / "bad.npz", "w", zipfile.ZIP_DEFLATED) as bad:
        for one, content in (members | {site: HOSTILE_ARRAYS[name]}).items():
            bad.writestr(one, content)
    tracemalloc.start()
    said = (
        r"take 120 MB in memory; allowed .* size: \d+ MB" if name == "bomb" else "holds no run of"
    )
    with pytest.raises(ValueError, match=said):
        transformer.read_npz(tmp_path / "bad.npz")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_arrays_of_no_run_are_not_unpacked(tiny_model, tmp_path):
    run, path = tiny_model.trace("the fox"), tmp_path / "run.npz"
    run.to_npz(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as more:
        more.writestr("other.npy", HOSTILE_ARRAYS["bomb"])
    tracemalloc.start()
    same(transformer.read_npz(path), run)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("kind", ["encrypted", "bzip2", "pipe"])
def test_a_file_that_cannot_be_unpacked_gets_a_sentence(tiny_model, tmp_path, kind):
    path = tmp_path / "run.npz"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        method = zipfile.ZIP_BZIP2 if kind == "bzip2" else zipfile.ZIP_STORED
        tiny_model.trace("the fox").to_npz(tmp_path / "good.npz")
        with zipfile.ZipFile(tmp_path / "good.npz") as good, zipfile.ZipFile(path, "w") as bad:
            for one in good.namelist():
                bad.writestr(one, good.read(one), method)
        if kind == "encrypted":  # so the directory says, behind each of its signatures
            parts = path.read_bytes().split(b"PK\x01\x02")
            path.write_bytes(
                b"PK\x01\x02".join([parts[0], *(one[:4] + b"\x01" + one[5:] for one in parts[1:])])
            )
    with pytest.raises(ValueError, match=r"holds no run of|is not a regular file"):
        transformer.read_npz(path)


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_csv_has_a_heads_numbers_under_tokens_that_are_no_formula(tiny_model, translation):
    odd = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", 'a"b,c', "\r\n=2", *HOSTILE)
    run = relabelled(tiny_model.trace("the fox said hello to the bird"), odd)
    record = run.trace["decoder.0.self"]
    hidden = ~record.allowed[0].numpy()
    for stage in ("weights", "masked", "scores"):
        head, *lines = rows_of(run.attention_csv("decoder.0.self", 1, stage=stage))
        for names in (head[1:], [line[0] for line in lines]):
            assert all(name.startswith(f"[{at}] ") for at, name in enumerate(names))
        empty = np.array([[cell == "" for cell in line[1:]] for line in lines])
        np.testing.assert_array_equal(empty, hidden & (stage != "scores"))
        found = [np.float32(cell or 0) for line in lines for cell in line[1:]]
        wanted = (record.pattern if stage == "weights" else record.scores)[0, 1].numpy()
        np.testing.assert_array_equal(found, np.where(empty, 0, wanted).ravel())
    head, *lines = rows_of(translation.attention_csv("decoder.1.cross", 1))
    for names, labels in (
        (head[1:], translation.source_labels), ([line[0] for line in lines], translation.labels),
    ):  # fmt: skip
        assert names == [f"[{place}] {label}" for place, label in enumerate(labels)]
