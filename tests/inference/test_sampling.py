import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from transformer import Sampling
from transformer.inference.generation import (
    draw,
    keep_min_p,
    keep_top_k,
    keep_top_p,
)

LOGIT = st.integers(-40, 40).map(lambda n: n / 4)


@st.composite
def batches(draw_from, **rows):
    """(B, V) logits as lists, of one to four rows of equal length."""
    width = draw_from(st.integers(1, 13))
    row = st.lists(LOGIT, min_size=width, max_size=width, **rows)
    return draw_from(st.lists(row, min_size=1, max_size=4))


def kept(filtered):
    return [[math.isfinite(x) for x in row] for row in filtered.tolist()]


@given(
    rows=batches(unique=True),
    k=st.integers(1, 15),
    share=st.integers(1, 99).map(lambda percent: percent / 100 + 0.00123),
)
def test_the_filters_keep_what_those_of_transformers_keep(rows, k, share):
    logits = torch.tensor(rows)
    assert keep_top_k(logits, k).equal(TopKLogitsWarper(k)(None, logits))
    assert keep_top_p(logits, share).equal(TopPLogitsWarper(share)(None, logits))
    assert keep_min_p(logits, share).equal(MinPLogitsWarper(share)(None, logits))


@given(rows=batches(), k=st.integers(1, 15))
def test_top_k_keeps_the_equals_of_the_last_too(rows, k):
    expected = []
    for row in rows:
        kth = sorted(row, reverse=True)[min(k, len(row)) - 1]
        expected.append([x >= kth for x in row])
    assert kept(keep_top_k(torch.tensor(rows), k)) == expected


def test_what_reaches_p_exactly_is_enough_and_what_has_exactly_min_p_stays():
    quarters = torch.zeros(1, 4)  # each of probability 1/4
    assert kept(keep_top_p(quarters, 0.5)) == [[True, True, False, False]]
    assert kept(keep_min_p(quarters, 1.0)) == [[True] * 4]
    assert kept(keep_top_p(torch.zeros(1, 4096), 0.5)) == [[True] * 2048 + [False] * 2048]


def test_a_top_p_of_one_keeps_even_the_unlikeliest():
    logits = torch.cat([torch.zeros(1), torch.full((5_000,), -30.0)])[None]
    assert keep_top_p(logits, 1.0).equal(logits)


@pytest.mark.parametrize("place", [0.0, 0.49999, 0.5, 1 - 2**-53])
def test_the_ends_of_the_range_fall_on_possible_tokens(place, monkeypatch):
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.tensor(place, dtype=torch.float64))
    probabilities = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]])
    expected = 1 if place < 0.5 else 3
    assert draw(probabilities, [torch.Generator()]).tolist() == [expected]


def test_tokens_are_drawn_as_often_as_their_probability():
    wanted = torch.tensor([0.1, 0.0, 0.2, 0.3, 0.4])
    n = 4_000
    generators = [torch.Generator().manual_seed(seed) for seed in range(n)]
    drawn = draw(wanted.expand(n, 5), generators)
    found = drawn.bincount(minlength=5) / n
    torch.testing.assert_close(found, wanted, atol=0.03, rtol=0)


BAD = [math.nan, math.inf, -math.inf, True, "0.5", [0.5], 10**400]


RANGES = {
    "temperature": ("a number from 0\\.01 to 10", [0, 0.009, 10.1, -1, None]),
    "top_p": ("a number above 0 to 1", [0, -0.1, 1.01]),
    "min_p": ("a number from 0 to 1", [-0.1, 1.01]),
    "top_k": ("a whole number from 1 to 1,000,000", [0, -1, 1_000_001, 2.0]),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_setting_out_of_range_gets_a_sentence(name):
    allowed, values = RANGES[name]
    for bad in [*BAD, *values]:
        with pytest.raises(ValueError, match=f"{name} must be {allowed}; got"):
            Sampling(**{name: bad})


def test_the_ends_of_the_ranges_are_allowed():
    Sampling(temperature=0.01, top_k=1, top_p=1, min_p=0)
    Sampling(temperature=10, top_k=1_000_000, top_p=1e-9, min_p=1)
