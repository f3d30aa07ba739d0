"""A head that is switched off reads nothing: no number, picture or sentence about reading has it,
while the trace keeps what was computed."""

import json
import math

import numpy as np
import pytest

from transformer import Ablate, Model, Run
from transformer.analysis.atlas import reading_weights
from transformer.analysis.attention_flow import flow_weights
from transformer.analysis.head_metrics import head_metrics, strongest
from transformer.lessons.check_header import check_of
from transformer.lessons.measures import GradingContext, of
from transformer.runs.head_data import array, head_csv, head_view
from transformer.views.attention.heatmap import attention_heatmap
from transformer.views.attention.lines import alignment, alignment_weights, query_lines
from transformer.views.export.notebook import _kind
from transformer.views.export.packing import Pack
from transformer.views.export.recorded import _read, heads_of
from transformer.views.registry import PICTURES
from transformer.views.runs.attention_difference import attention_difference

SITE, OFF, ON = "decoder.1.self", 1, 0
TEXT = "The fox ran to the fox and the dog"


@pytest.fixture(scope="module", params=["zero", "mean"])
def run(tiny_model: Model, request: pytest.FixtureRequest) -> Run:
    return tiny_model.trace(TEXT, interventions=[Ablate("decoder", 1, [OFF], by=request.param)])


@pytest.fixture(scope="module")
def translation(tiny_encoder_decoder: Model) -> Run:
    off = [Ablate("decoder", layer, [OFF], kind="cross") for layer in (0, 1)]
    return tiny_encoder_decoder.generate("The fox ran.", max_new_tokens=5, interventions=off)


def patterns(run: Run, stack: str = "decoder", kind: str = "self") -> np.ndarray:
    """(L, H, Tq, Tk), as the trace has them."""
    sites = [one for one in run.trace.sites if (one.stack, one.kind) == (stack, kind)]
    return np.stack([array(run.trace[site].pattern[0]) for site in sites])


def test_the_trace_keeps_an_ablated_head_that_nothing_else_shows(run):
    recorded = patterns(run)
    np.testing.assert_allclose(recorded[1, OFF].sum(axis=-1), 1, atol=1e-5)
    view = head_view(run, SITE, OFF)
    assert view.is_off
    assert not view.weights.any()
    np.testing.assert_array_equal(head_view(run, SITE, ON).weights, recorded[1, ON])
    others = np.delete(recorded[1], OFF, axis=0).mean(axis=0)
    np.testing.assert_allclose(head_view(run, SITE, "mean").weights, others, atol=1e-6)
    sent = PICTURES["heatmap"].ask(run, given={"site": SITE, "head": OFF, "numbers": True})
    assert not sent["weights"].any()
    pixels = PICTURES["atlas"].answer(run, stack="decoder", kind="self")["pixels"]
    assert not pixels[1, OFF].any()
    assert pixels[1, ON].any()
    read = reading_weights(run, "decoder", "self", 4, 2).numpy()
    wanted = recorded[:, :, 4, 2].copy()
    wanted[1, OFF] = 0
    np.testing.assert_allclose(read, wanted, atol=1e-6)
    ranked = PICTURES["readers"].answer(run, stack="decoder", query=4, kind="self", key=2)["ranked"]
    assert (1, OFF) not in [(one["layer"], one["head"]) for one in ranked]


def test_means_are_of_the_heads_that_read(run, tiny_model):
    recorded = patterns(run)
    reading = [head for at, layer in enumerate(recorded) for h, head in enumerate(layer)
               if (at, h) != (1, OFF)]  # fmt: skip
    every = flow_weights(run, "decoder")
    np.testing.assert_allclose(every, np.mean(reading, axis=0), atol=1e-6)
    silent = tiny_model.trace(
        TEXT, interventions=[Ablate("decoder", 1, range(tiny_model.config.n_heads))]
    )
    first = patterns(silent)[0].mean(axis=0)
    np.testing.assert_allclose(flow_weights(silent, "decoder"), first, atol=1e-6)
    whole = flow_weights(silent, "decoder", "rollout")
    np.testing.assert_allclose(whole, (first + np.eye(len(first))) / 2, atol=1e-6)
    assert not flow_weights(silent, "decoder", "joint").any()
    assert not head_view(silent, SITE, "mean").weights.any()


def test_figures_and_files_explain_why_they_draw_nothing(run, tiny_model):
    figure = attention_heatmap(run, SITE, OFF)
    assert "switched off" in figure.layout.title.text
    assert np.nanmax(figure.data[0].z) == 0
    assert "switched off" not in attention_heatmap(run, SITE, ON).layout.title.text
    lines = query_lines(run, SITE, OFF, threshold=0.0)
    assert lines.layout.meta["links"] == []
    assert "switched off" in lines.layout.title.text
    cells = [line.split(",")[1:] for line in head_csv(run, SITE, OFF).splitlines()[1:]]
    assert {float(cell) for row in cells for cell in row if cell} == {0.0}
    other = tiny_model.trace(TEXT)
    change = attention_difference(other, run, SITE, OFF)
    in_a = head_view(other, SITE, OFF).weights
    shown = np.asarray(change.data[0].z, dtype=float)
    np.testing.assert_allclose(np.nan_to_num(shown), -np.tril(in_a), atol=1e-6)
    assert "head 1, switched off in B" in change.layout.title.text
    kind = _kind(run, "decoder", "self", 64, Pack())
    assert kind["off"] == [[], [OFF]]
    pack = Pack()
    assert "weights" in heads_of(_read(run, run.trace[SITE]), pack)


def test_an_alignment_has_no_line_of_it_and_its_mean_is_of_the_others(translation):
    figure = alignment(translation, 0, OFF)
    assert figure.layout.meta["links"] == []
    assert "switched off" in json.dumps(figure.to_dict(), default=str)
    recorded = patterns(translation, "decoder", "cross")
    found = alignment_weights(translation, "mean", "mean", by="read")
    np.testing.assert_allclose(found[:3], np.delete(recorded, OFF, axis=1).mean(axis=(0, 1))[:3],
                               atol=1e-6)  # fmt: skip


def test_it_has_no_metric_no_label_and_is_no_finding(run):
    found = head_metrics(run, "decoder", "self")
    silent = next(one for one in found.heads if (one.layer, one.head) == (1, OFF))
    assert all(math.isnan(value) for value in silent.values.values())
    assert silent.label is None
    best = strongest(run, found)
    assert best is None or (best.layer, best.head) != (1, OFF)
    answer = PICTURES["metrics"].answer(run, stack="decoder", kind="self")
    assert json.loads(json.dumps(answer, allow_nan=False))
    PICTURES["metric_map"].figure(run, "decoder", "self", "previous")
    context = GradingContext(run=run, models=None)
    assert of(context, "weight", {"site": SITE, "head": OFF, "query": 4, "key": 2}) == 0
    check = check_of({"click": "head", "of": "previous", "within": 1.0})
    assert [check.grade(context, one).right for one in check.answers(context)] == [True] * 3
    with pytest.raises(ValueError, match="no previous to measure"):
        check.grade(context, {"site": SITE, "head": OFF})
