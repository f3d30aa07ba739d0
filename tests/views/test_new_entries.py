"""One more encoding, norm or activation, of which only the least is said: every view, generation,
saving and export goes on, and nothing that is said of it was another's."""

import re
from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go
import pytest
import torch
from kit.client import queries
from kit.models import save_model, tiny, tokenizer_of
from kit.table_entries import NEAR, NOTHING, ODD, RAMP, SINUS

from transformer import Break, Model, Run, load, read_npz, with_lens
from transformer.checkpoint.export import export
from transformer.interventions.breaks import breaks_of
from transformer.model.positions import POSITIONS
from transformer.model.primitives import ACTIVATIONS, NORMS
from transformer.views.export.html import page
from transformer.views.model.equations import TOPICS, answer_equations
from transformer.views.registry import PICTURES

ENTRIES = {
    "ramp": (POSITIONS, "positions", RAMP),
    "near": (POSITIONS, "positions", NEAR),
    "nothing": (POSITIONS, "positions", NOTHING),
    "norm": (NORMS, "norm_kind", ODD),
    "activation": (ACTIVATIONS, "activation", SINUS),
}
FORMULAS = re.compile(r"10000|sin\(|cos\(|table|variance|square|max \(0|tanh|Φ")
FAMILIES = ("decoder", "encoder", "encoder-decoder")


@pytest.fixture(params=ENTRIES)
def entry(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    table, _, value = ENTRIES[request.param]
    monkeypatch.setitem(table, "new", value)  # type: ignore[arg-type]
    return str(request.param)


def model_with(entry: str, family: str) -> Model:
    others = {"positions": "learned", "norm_kind": "rms", "activation": "silu"}
    settings: dict[str, Any] = others | {ENTRIES[entry][1]: "new"}
    return tiny(f"new-{family}", family, tokenizer_of(["the", "[MASK]"]), **settings)


def run_of(model: Model) -> Run:
    if model.config.family == "encoder":
        return with_lens(model, model.trace("the fox"))
    return with_lens(model, model.generate("the fox", max_new_tokens=3))


def figures(answer: dict[str, Any]) -> Iterator[go.Figure]:
    for value in answer.values():
        inside = value.values() if isinstance(value, dict) else [value]
        yield from (one for one in inside if isinstance(one, go.Figure))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_view_draws_a_network_with_a_new_entry_or_says_why_not(entry, family):
    model = model_with(entry, family)
    run = run_of(model)
    stack, kind = run.trace.kinds()[-1]
    first = {"site": f"{stack}.0.{kind}", "stack": stack, "kind": kind, "position": 1}
    drawn, answered = set(), set()
    for picture in PICTURES.values():
        if picture.subject not in ("run", "run or batch"):
            continue
        given = {one.name: first[one.name] for one in picture.parameters if one.name in first}
        subjects = [queries(model), run] if picture.network else [run]
        try:
            answer = picture.ask(*subjects, given=given)
        except ValueError:  # a sentence that says why
            continue
        answered.add(picture.name)
        if any(True for _ in figures(answer)):
            drawn.add(picture.name)
    assert "heatmap" in drawn
    assert "architecture" in answered
    adds = POSITIONS[model.config.positions].adds
    assert ("positions" in drawn) == ("inputs" in drawn) == adds


def test_no_formula_is_shown_of_a_new_entry_but_its_own(entry):
    model = model_with(entry, "decoder")
    run = run_of(model)
    topic = {"norm": "norm", "activation": "feed-forward"}.get(entry, "positions")
    assert topic in TOPICS
    answer = answer_equations(queries(model), run, topic=topic, site="decoder.0.self", head=0)
    assert not FORMULAS.search(" ".join(answer["formula"])), answer["formula"]
    symbols = {one["symbol"] for one in answer["code"]}
    assert not symbols & {"sinusoidal_matrix", "LearnedPositions.forward", "RMSNorm.forward"}
    if entry == "ramp":
        (position,) = [one for one in answer["tensors"] if one["part"] == "position"]
        last = model.network.embedding.positions.matrix[len(run.ids) - 1, 0].item()
        assert position["cells"][0]["value"] == pytest.approx(last)


def test_a_network_with_a_new_entry_is_generated_saved_and_exported(entry, tmp_path):
    model = model_with(entry, "decoder")
    run = run_of(model)
    assert len(run.ids) == run.n_prompt + 3
    alone = model.network(torch.tensor([run.ids[:-1]]))[0].argmax(-1).tolist()
    assert alone[run.n_prompt - 1 :] == list(run.ids[run.n_prompt :])
    save_model(model, tmp_path / "model")
    assert load(tmp_path / "model").generate("the fox", max_new_tokens=3).ids == run.ids
    run.to_npz(tmp_path / "run.npz")
    again = read_npz(tmp_path / "run.npz")
    assert again.ids == run.ids
    assert set(again.position_matrices) == (set() if entry == "nothing" else {"decoder"})
    assert page(again).startswith("<!doctype html>")
    with pytest.raises(ValueError, match="no family that is written has"):
        export(tmp_path / "theirs", model.network, model.config, model.tokenizer)
    for what in breaks_of(model.config):
        model.generate("the fox", max_new_tokens=2, interventions=[Break(what)])


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal-halves", "sinusoidal-fairseq"])
def test_a_waves_shift_takes_each_position_to_the_one_k_steps_on(kind):
    encoding = POSITIONS[kind]
    matrix = encoding.module(40, 12).matrix.double()
    for k in (1, 7):
        torch.testing.assert_close(
            matrix[:-k] @ encoding.shift(k, 12).T, matrix[k:], atol=1e-5, rtol=0
        )
