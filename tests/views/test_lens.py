"""Surprisal and the logit lens: against plain computations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from pictured import sampled_run

from transformer import Model, Run, with_lens
from transformer.views import logit_lens, surprisal
from transformer.views.drawing import style
from transformer.views.prediction.lens import lens_view
from transformer.views.prediction.surprisal import summarise


@pytest.fixture(scope="module")
def run(tiny_model: Model) -> Run:
    """Given tokens and six generated ones."""
    return sampled_run(tiny_model)


@pytest.fixture(scope="module")
def slid(tiny_model: Model) -> Run:
    """A text longer than the window of 32 tokens."""
    settings = {"max_new_tokens": 34, "temperature": 1.0, "seed": 3}
    made = with_lens(tiny_model, tiny_model.generate("the fox said", **settings))
    assert made.trace_start > 0
    return made


def bits_by_hand(model: Model, ids: tuple[int, ...]) -> list[float]:
    """-log2 p of each token but the first, by one pass and a loop."""
    with torch.no_grad():
        logits = model.network(torch.tensor([ids]))[0].double()
    found = []
    for place, token in enumerate(ids[1:]):
        row = logits[place].tolist()
        top = max(row)
        found.append(-math.log2(math.exp(row[token] - top) / sum(math.exp(x - top) for x in row)))
    return found


# --- surprisal ------------------------------------------------------------------------------------


def test_bars_are_minus_log2_of_each_tokens_probability(run, tiny_model):
    figure = surprisal(run)
    bars = figure.data[0]
    expected = bits_by_hand(tiny_model, run.ids)
    assert math.isnan(bars.y[0])
    np.testing.assert_allclose(bars.y[1:], expected, rtol=1e-4)
    assert list(bars.x) == list(range(len(run.ids)))
    meta = figure.layout.meta
    assert meta["labels"] == list(run.labels)
    assert meta["probabilities"][1:] == pytest.approx([2**-b for b in expected], rel=1e-4)
    mean = sum(expected) / len(expected)
    assert meta["summary"]["mean_bits"] == pytest.approx(mean, rel=1e-4)
    nats = mean * math.log(2)
    assert meta["summary"]["perplexity"] == pytest.approx(math.exp(nats), rel=1e-4)
    assert f"mean {mean:.2f} bits" in figure.layout.title.subtitle.text


def test_given_and_generated_bars_differ_in_pattern_and_in_words(run):
    bars = surprisal(run).data[0]
    expected = ["/"] * run.n_prompt + [""] * len(run.steps)
    assert list(bars.marker.pattern.shape) == expected
    for place, hover in enumerate(bars.customdata[1:], start=1):
        assert ("given" if place < run.n_prompt else "generated") in hover
        assert f"{run.surprisal[place]:.3f} bits" in hover
    found = summarise(run)
    known = [b for b in run.surprisal if b is not None]
    given, generated = known[: run.n_prompt - 1], known[run.n_prompt - 1 :]
    assert found.given_bits == pytest.approx(sum(given) / len(given))
    assert found.generated_bits == pytest.approx(sum(generated) / len(generated))


def test_where_nothing_is_foreseen_a_sentence_says_so(tiny_encoder, tiny_encoder_decoder):
    with pytest.raises(ValueError, match="an encoder reads the whole text at once"):
        surprisal(with_lens(tiny_encoder, tiny_encoder.trace("the fox")))
    with pytest.raises(ValueError, match="only the first token was read"):
        surprisal(with_lens(tiny_encoder_decoder, tiny_encoder_decoder.trace("the fox")))


# --- the lens -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder", "tiny_encoder_decoder"])
def test_cells_are_the_heads_reading_of_each_residual_stream(name, request):
    model: Model = request.getfixturevalue(name)
    read = model.trace("the fox said") if name == "tiny_encoder" else sampled_run(model)
    run = with_lens(model, read)
    network: Any = model.network
    stack = network.last_stack.name
    figure = logit_lens(run)
    meta = figure.layout.meta
    assert len(meta["row_labels"]) == model.config.n_layers + 1
    for row, stream in enumerate(run.trace.residuals[stack]):
        x = stream[0]
        if model.config.norm == "pre":
            norm = network.last_stack.norm
            x = (x - x.mean(-1, keepdim=True)) / (
                x.var(-1, correction=0, keepdim=True) + 1e-5
            ) ** 0.5
            x = x * norm.weight + norm.bias
        bias = 0 if network.head.bias is None else network.head.bias
        logits = x @ network.head.weight.T + bias
        best = logits.softmax(-1).max(-1)
        np.testing.assert_allclose(figure.data[0].z[row], best.values.numpy(), atol=1e-5)
        assert meta["best"][row] == model.tokenizer.labels(best.indices.tolist())


def test_the_top_row_is_the_models_own_prediction(run):
    figure = logit_lens(run)
    meta = figure.layout.meta
    assert meta["row_labels"] == ["input", "after layer 0", "model's own"]
    assert figure.layout.yaxis.range == (-0.5, 2.5)  # the last row on top
    for step in run.steps:
        column = run.n_prompt + step.index - 1
        assert meta["best"][-1][column] == run.candidate_labels[step.candidates[0].id]
        assert meta["next"][column] == run.labels[run.n_prompt + step.index]
    assert meta["next"][-1] is None
    assert meta["column_labels"] == list(run.labels)


def test_marked_cells_say_the_same_as_the_top_row(run):
    figure = logit_lens(run)
    best = figure.layout.meta["best"]
    ids = run.lens.ids[:, :, 0].tolist()
    expected = {
        (row, column)
        for row in range(len(ids))
        for column in range(len(ids[0]))
        if ids[row][column] == ids[-1][column]
    }
    drawn = set()
    for shape in figure.layout.shapes:
        for piece in shape.path.split("M")[1:]:
            (x0, y0), (x1, y1) = (map(float, end.split(",")) for end in piece.split("L"))
            assert y0 == y1
            row, column = round(y0), round((x0 + x1) / 2)
            drawn.add((row, column))
            light = figure.data[0].z[row][column] <= 0.625
            assert shape.line.color == ("#000000" if light else "#ffffff")
    assert drawn == expected
    for column, lowest in enumerate(figure.layout.meta["stands"]):
        assert all(best[row][column] == best[-1][column] for row in range(lowest, len(best)))
        assert lowest == 0 or ids[lowest - 1][column] != ids[-1][column]


def test_hovering_tells_the_kept_tokens_and_what_came_next(run):
    figure = logit_lens(run)
    for row in range(3):
        for column in (0, len(run.ids) - 1):
            text = figure.data[0].hovertext[row][column]
            for token, share in zip(
                run.lens.ids[row, column].tolist(),
                run.lens.probabilities[row, column].tolist(),
                strict=True,
            ):
                assert f"{style.label(run.candidate_labels[token], 60)} {share:.4f}" in text
            assert ("came next" in text) == (column == 0)


def test_a_part_of_the_columns_is_that_part(slid):
    whole, part = logit_lens(slid), logit_lens(slid, first=5, count=7)
    np.testing.assert_array_equal(part.data[0].z, whole.data[0].z[:, 5:12])
    for name in ("column_labels", "next", "stands"):
        assert part.layout.meta[name] == whole.layout.meta[name][5:12]
    assert (part.layout.meta["first"], part.layout.meta["total"]) == (5, 32)
    assert part.layout.meta["n_earlier"] == slid.trace_start
    assert whole.layout.width > part.layout.width
    assert len(lens_view(slid, 30, 7).read) == 2


def test_bars_of_a_text_that_slid_start_at_its_first_traced_token(slid):
    meta = surprisal(slid).layout.meta
    assert meta["labels"] == list(slid.labels[-32:])
    assert (meta["first"], meta["given"]) == (
        slid.trace_start,
        max(0, slid.n_prompt - meta["first"]),
    )
