"""Positional encodings: the first layer's input, the formula, and the map to later positions."""

import dataclasses
import math

import brotli
import numpy as np
import pytest
import torch
from kit.client import queries
from kit.models import model_of, tiny, tokenizer_of

from transformer.server.page.resources import written
from transformer.views.positions.bias import score_bias
from transformer.views.positions.encodings import (
    position_curves,
    position_matrix,
    position_similarity,
)
from transformer.views.positions.inputs import input_parts, input_strips, input_token
from transformer.views.positions.nearest_tokens import answer_nearest_tokens
from transformer.views.positions.rotation import largest_shift, position_shift, shift
from transformer.views.registry import PICTURES


def test_the_matrix_is_the_stacks_own_and_curves_are_its_columns(run, translation):
    for made, stack in ((run, "decoder"), (translation, "encoder"), (translation, "decoder")):
        figure, used = position_matrix(made, stack), len(made.queries(stack))
        matrix = made.position_matrices[stack].numpy()
        np.testing.assert_array_equal(figure.data[0].z, matrix)
        assert figure.data[0].zmin == -figure.data[0].zmax == -float(np.abs(matrix).max())
        assert figure.layout.meta == {"stack": stack, "used": used}
        assert figure.layout.shapes[0].y0 == used - 0.5
    for line, dimension in zip(position_curves(translation, [5, 0]).data, (5, 0), strict=True):
        assert line.name == f"dimension {dimension}"
        np.testing.assert_array_equal(line.y, matrix[:, dimension])
    with pytest.raises(ValueError, match=r"stack must be one of \['encoder', 'decoder'\]"):
        position_matrix(translation, "middle")


def test_a_large_matrix_is_drawn_by_some_of_its_rows_in_a_small_answer(run):
    matrix = torch.randn(512, 256, generator=torch.Generator().manual_seed(1))
    large = dataclasses.replace(run, position_matrices={"decoder": matrix})
    for which in ("matrix", "similarity"):
        answer = PICTURES["positions"].ask(large, given={"which": which})
        assert len(brotli.compress(written(answer)[0])) < 120_000  # of random numbers
        (cells,), layout = answer["figure"].data, answer["figure"].layout
        places = list(cells.y)
        assert places[:50] == list(range(50))
        assert (places[-1], len(places)) == (511, len(set(places)))
        assert max(np.diff(places)) < 10
        rows = matrix[places]
        unit = rows / rows.norm(dim=1, keepdim=True)
        wanted = rows if which == "matrix" else unit @ unit.T
        np.testing.assert_allclose(cells.z, wanted.numpy(), atol=1e-6)
        assert list(layout.yaxis.range) == [511.5, -0.5]


def test_the_strips_are_rows_of_the_models_own_tables(run, tiny_model):
    embedding = tiny_model.network.embedding
    tokens = embedding.tokens.weight[list(run.ids)].numpy()
    positions = embedding.positions.matrix[: len(run.ids)].numpy()
    strips, lines = input_strips(run), input_token(run, 2)
    for cells, line, rows, note in zip(
        strips.data, lines.data, (tokens, positions, tokens + positions),
        strips.layout.annotations, strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(cells.z, rows)
        np.testing.assert_array_equal(line.y, rows[2])
        lengths = [math.sqrt(sum(float(x) ** 2 for x in row)) for row in rows]
        assert f"mean length {sum(lengths) / len(lengths):.2f}" in note.text
    assert [line.name for line in lines.data] == ["token", "position", "sum"]
    assert len({line.line.dash for line in lines.data}) == 3
    assert len({(cells.zmin, cells.zmax) for cells in strips.data}) == 1
    beyond = np.abs(np.stack([cells.z for cells in strips.data])) > strips.data[0].zmax
    assert 0 < beyond.mean() <= 0.006
    assert input_token(run).layout.meta["position"] == len(run.ids) - 1


@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder"])
def test_the_nearest_tokens_have_the_largest_cosines(family):
    model = tiny("vectors", family, tokenizer_of(["the"]))
    run = (
        model.trace("the fox")
        if family == "encoder"
        else model.generate("the fox", max_new_tokens=1)
    )
    place = len(run.ids) - 1
    own, *others = dict.fromkeys((run.ids[place], *range(model.config.output_vocab_size)))
    for embedding in model.network.embeddings.values():
        table = embedding.tokens.weight
        table.zero_()
        table[:, 15] = 1
        for token, row in ((own, (3, 4)), (others[1], (4, 3)), (others[2], (-6, -8)),
                           (others[3], (0.6, 0.8)), (others[4], (-4, 3))):  # fmt: skip
            table[token, :2], table[token, 15] = torch.tensor(row), 0
    answer = answer_nearest_tokens(queries(model), run, position=place)
    assert answer["labels"][:2] == model.tokenizer.labels([others[3], others[1]])
    np.testing.assert_allclose(answer["cosines"][:3], [1, 24 / 25, 0], atol=1e-6)
    (bars,) = answer["figure"].data
    np.testing.assert_array_equal(bars.x, [1, *answer["cosines"]])
    assert len(bars.x) == 11
    for embedding in model.network.embeddings.values():
        table = embedding.tokens.weight
        table[:] = -table[own].clone()
        table[own] *= -1
    opposite = answer_nearest_tokens(queries(model), run, position=place)
    np.testing.assert_allclose(opposite["cosines"], -1, atol=1e-6)  # the token itself is no match
    with pytest.raises(ValueError, match="position must be a whole number"):
        answer_nearest_tokens(queries(model), run, position=len(run.ids))


def test_the_sum_is_what_enters_a_stack_unless_it_is_normed(run, translation, tiny_encoder):
    for made, stack in ((run, "decoder"), (translation, "encoder"), (translation, "decoder")):
        parts = input_parts(made, stack)
        assert parts.labels == made.queries(stack)
        np.testing.assert_array_equal(parts.first, made.trace.residuals[stack][0][0].numpy())
        np.testing.assert_array_equal(parts.sum, parts.first)
        assert parts.difference == 0
        assert "norms the sum" not in input_strips(made, stack).layout.title.subtitle.text
    config = tiny_encoder.config.replace(norm_embeddings=True)
    normed = model_of("normed", config, tiny_encoder.tokenizer).trace("the fox said hello")
    assert input_parts(normed).difference > 0.01
    assert "norms the sum" in input_strips(normed).layout.title.subtitle.text


def test_positions_are_drawn_as_sines_and_cosines_with_their_similarity(translation):
    z = position_matrix(translation, "encoder").data[0].z
    size = z.shape[1]
    for position, dimension in ((0, 0), (5, 3), (23, 14)):
        angle = position / 10_000 ** (2 * (dimension // 2) / size)
        expected = math.cos(angle) if dimension % 2 else math.sin(angle)
        assert z[position, dimension] == pytest.approx(expected, abs=1e-6)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    cosine = position_similarity(translation, "encoder").data[0].z
    np.testing.assert_allclose(cosine, unit @ unit.T, atol=1e-6)


@pytest.mark.parametrize("k", [1, 4, 23])
def test_one_rotation_moves_every_position_of_the_models_own_matrix(translation, k):
    found = shift(translation, k, "encoder")
    table = translation.position_matrices["encoder"].double().numpy()
    missed = np.abs(table[:-k] @ found.matrix.T - table[k:]).max()
    assert found.largest_miss == pytest.approx(missed, abs=1e-12)
    assert missed < 1e-6
    assert (found.fitted, found.n_pairs, found.chance) == (False, 24 - k, 0.0)


def test_a_learned_matrix_gets_its_best_fit_and_the_fits_miss(run):
    found = shift(run, 2)
    table = run.position_matrices["decoder"].double()
    solved = torch.linalg.lstsq(table[:-2], table[2:]).solution
    missed = table[:-2] @ solved - table[2:]
    np.testing.assert_allclose(found.matrix, solved.T.numpy(), atol=1e-8)
    relative = float(missed.norm() / table[2:].norm())
    assert found.relative_miss == pytest.approx(relative)
    assert found.fitted
    assert found.chance == pytest.approx(math.sqrt(1 - 16 / 30))
    # The tiny model's positions are random numbers: the fit is about as good as chance says.
    assert found.relative_miss == pytest.approx(found.chance, abs=0.1)
    assert f"{100 * relative:.0f} %" in position_shift(run, 2).layout.title.subtitle.text


def test_a_fit_that_would_fit_anything_is_not_shown(run, translation):
    assert largest_shift(run) == 32 - 1 - 16
    assert largest_shift(translation) == 23
    assert shift(run, 15).n_pairs == 17
    with pytest.raises(ValueError, match="fits any 16 pairs of positions"):
        shift(run, 16)
    few = dataclasses.replace(run, position_matrices={"decoder": torch.randn(12, 16)})
    assert PICTURES["shift"].ask(few, given={"k": 1}) == {"figure": None, "largest": -5}


@pytest.mark.parametrize("kind", ["alibi", "relative", "relative-by-layer"])
def test_a_head_shows_the_numbers_that_its_layer_adds_to_scores(kind, tokenizer):
    buckets = {} if kind == "alibi" else {"relative_buckets": 8}
    scale = {"score_scale": 1.0} if buckets else {}  # as T5 has it
    model = tiny("biased", "decoder", tokenizer, positions=kind, **buckets, **scale)
    run = model.trace("the fox said hello")
    at, stack, tables = torch.arange(len(run.ids)), model.network.decoder, set()
    for layer in (0, 1):
        own = stack.relative or stack.layers[layer].self_attention.relative
        tables.add(own)
        for head in (0, 1):
            drawn = score_bias(run, f"decoder.{layer}.self", head).data[0].z
            np.testing.assert_allclose(drawn, own(at, at)[head].detach(), atol=1e-5)
    assert len(tables) == (2 if kind == "relative-by-layer" else 1)
    answer, record = PICTURES["bias"].ask(run, given={}), run.trace["decoder.0.self"]
    assert answer["product"] == ("q·k / √8" if kind == "alibi" else "q·k")
    divisor = 8**0.5 if kind == "alibi" else 1
    products = record.q[0, 0] @ record.k[0, 0].T / divisor
    np.testing.assert_allclose(answer["before"].data[0].z, products, atol=1e-5)
