"""What users of other libraries expect of this one: plain errors, short reprs, copies, files."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import transformer
from transformer import Run, Site
from transformer.checkpoint import HeldOutSample

TEXT = "the fox said"


def numbers(run: Run | transformer.Batch) -> dict[str, Any]:
    """Every array of a trace by its name."""
    return {
        f"{record.site}/{name}": getattr(record, name)
        for record in run.trace
        for name in ("scores", "pattern", "q", "k", "v", "allowed")
    }


def test_numpy_scalars_are_numbers(tiny_model):
    plain = tiny_model.generate(TEXT, max_new_tokens=6, temperature=0.5, top_k=7, seed=3)
    asked = dict(temperature=np.float32(0.5), top_k=np.int16(7), seed=np.uint8(3))
    run = tiny_model.generate(TEXT, max_new_tokens=np.int64(6), **asked)
    assert (run.request, run.ids) == (plain.request, plain.ids)
    assert transformer.from_json(run.to_json()).request == plain.request
    assert run.attention("decoder.1.self", np.int64(1)).data
    forced = tiny_model.generate(TEXT, max_new_tokens=3, forced_tokens=np.array([70, 71]))
    assert forced.request.forced_tokens == (70, 71)
    seeds = np.arange(2)
    assert [one.request.seed for one in tiny_model.generate_batch([TEXT] * 2, seeds)] == [0, 1]


def test_a_trace_is_its_records_and_says_what_it_has(tiny_model):
    trace = tiny_model.trace("the fox").trace
    assert [record.site for record in trace] == trace.sites
    assert repr(trace).endswith(".self; decoder residual stream>")
    for wrong, said in (
        (3, "a site is .*; recorded: decoder.0.self, decoder.1"),
        (("decoder", 0), "a site is .*; recorded: decoder.0.self, decoder.1"),
        ("attention", "a site is written STACK.LAYER.KIND"),
        (Site("decoder", 9, "self"), "no record of site decoder.9.self; recorded: decoder.0"),
    ):
        with pytest.raises(ValueError, match=said):
            trace[wrong]


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder_decoder", "tiny_encoder"])
def test_a_model_is_copied_and_pickled_with_its_engine(name, request, tmp_path):
    request.getfixturevalue(name).save(tmp_path, dtype="float32")
    model = transformer.load(tmp_path)
    before = numbers(model.trace(TEXT))
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert (again.engine is None) == (model.engine is None)
        assert again.network is not model.network
        if model.engine is not None:
            run = again.generate(TEXT, max_new_tokens=5)
            assert run.ids == model.generate(TEXT, max_new_tokens=5).ids
            assert run.engine == again.engine.name
        with torch.no_grad():
            for parameter in again.network.parameters():
                parameter.zero_()
        after = numbers(model.trace(TEXT))
        assert all(after[key].equal(value) for key, value in before.items())


def test_a_pickled_run_holds_its_own_tokens_and_no_room_for_more():
    model = transformer.load("stories")
    run = model.generate("Once upon a time", max_new_tokens=20)
    assert len(run.ids) == 25
    written = pickle.dumps(run)
    assert len(written) < 1.1 * sum(array.nbytes for array in run.arrays().values())
    assert len(written) < 1_500_000
    for again in (pickle.loads(written), copy.deepcopy(run)):
        assert again.ids == run.ids
        found = numbers(again)
        assert all(found[key].equal(value) for key, value in numbers(run).items())


def test_a_model_is_saved_whole_and_loaded_again(tiny_model, tmp_path):
    sample = HeldOutSample(about="two", texts=(("The fox.",), ("A bird.",)))
    model = dataclasses.replace(tiny_model, card="# A card", metadata={"a": 1}, sample=sample)
    with pytest.raises(ValueError, match=r"dtype must be one of .*float16.*; got 'float8'"):
        model.save(tmp_path / "m", dtype="float8")
    assert not (tmp_path / "m").exists()
    model.save(str(tmp_path / "m"), dtype="float32")
    again = transformer.load(tmp_path / "m")
    assert (again.card, again.metadata, again.sample) == ("# A card", {"a": 1}, sample)
    assert again.generate(TEXT, max_new_tokens=5).ids == model.generate(TEXT, max_new_tokens=5).ids


@pytest.mark.parametrize("device", ["gpu0", "cuda:99", "mps:0", "", 3, "cpu:7"])
def test_a_device_that_is_not_there_gets_a_sentence(tiny_model, device):
    for ask in (lambda: transformer.load("stories", device=device), lambda: tiny_model.to(device)):
        with pytest.raises(ValueError, match=r"device must be one of \['auto', 'cpu'"):
            ask()
