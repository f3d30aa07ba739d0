import math

import pytest
import torch

from transformer.model.positions import POSITIONS, sinusoidal_matrix


def test_each_cell_is_the_papers_formula_to_the_last_digit_and_nothing_is_trained_or_stored():
    matrix = sinusoidal_matrix(5_001, 6)
    for position in (0, 1, 10, 5_000):
        angles = [position / 10_000 ** (2 * pair / 6) for pair in range(3)]
        waves = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
        assert matrix[position].tolist() == pytest.approx(waves, abs=1e-7)
    encoding = POSITIONS["sinusoidal"].make(9, 4)
    assert list(encoding.parameters()) == []
    assert encoding.state_dict() == {}


def test_learned_positions_are_trained_and_stored():
    encoding = POSITIONS["learned"].make(9, 4)
    encoding(torch.tensor([2])).sum().backward()
    (table,) = encoding.parameters()
    assert table.grad.abs().sum(dim=-1).nonzero().flatten().tolist() == [2]
    assert list(encoding.state_dict()) == ["table.weight"]
