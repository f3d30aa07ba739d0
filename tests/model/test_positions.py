import math

import pytest
import torch

from transformer.model.positions import POSITIONS, sinusoidal_matrix


def test_each_cell_is_the_papers_formula():
    matrix = sinusoidal_matrix(11, 6)
    assert matrix.shape == (11, 6)
    assert matrix.dtype == torch.float32
    for position in range(11):
        for feature in range(6):
            angle = position / 10_000 ** (2 * (feature // 2) / 6)
            wave = math.sin(angle) if feature % 2 == 0 else math.cos(angle)
            assert matrix[position, feature].item() == pytest.approx(wave, abs=1e-7)


def test_late_positions_keep_their_digits():
    matrix = sinusoidal_matrix(5_001, 8)
    for feature in range(8):
        angle = 5_000 / 10_000 ** (2 * (feature // 2) / 8)
        wave = math.sin(angle) if feature % 2 == 0 else math.cos(angle)
        assert matrix[5_000, feature].item() == pytest.approx(wave, abs=1e-7)


def test_a_shift_is_one_rotation_whatever_the_position():
    matrix = sinusoidal_matrix(40, 6).double()
    shift = 7
    for pair in range(3):
        turn = shift / 10_000 ** (2 * pair / 6)
        sine, cosine = matrix[:-shift, 2 * pair], matrix[:-shift, 2 * pair + 1]
        expected_sine = sine * math.cos(turn) + cosine * math.sin(turn)
        expected_cosine = cosine * math.cos(turn) - sine * math.sin(turn)
        torch.testing.assert_close(matrix[shift:, 2 * pair], expected_sine, atol=1e-6, rtol=0)
        torch.testing.assert_close(matrix[shift:, 2 * pair + 1], expected_cosine, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", sorted(set(POSITIONS) - {"rotary"}))  # which adds nothing
def test_a_position_gets_its_row_of_the_matrix(kind):
    encoding = POSITIONS[kind].make(9, 4)
    asked = torch.tensor([[3, 0, 8], [1, 1, 2]])
    got = encoding(asked)
    assert got.shape == (2, 3, 4)
    for row in range(2):
        for place in range(3):
            assert got[row, place].equal(encoding.matrix[asked[row, place]])
    assert encoding.matrix.shape == (9, 4)


def test_sinusoidal_positions_have_nothing_to_train_or_store():
    encoding = POSITIONS["sinusoidal"].make(9, 4)
    assert list(encoding.parameters()) == []
    assert encoding.state_dict() == {}


def test_learned_positions_are_trained_and_stored():
    encoding = POSITIONS["learned"].make(9, 4)
    encoding(torch.tensor([2])).sum().backward()
    (table,) = encoding.parameters()
    assert table.grad.abs().sum(dim=-1).nonzero().flatten().tolist() == [2]
    assert list(encoding.state_dict()) == ["table.weight"]
