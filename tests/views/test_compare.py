"""Two runs side by side: against plain loops over the two runs' own numbers."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.runs import relabelled

from transformer import Ablate, Model, Run
from transformer.views.runs.attention_difference import (
    NothingShared,
    align,
    attention_difference,
)
from transformer.views.runs.compare import generated_pairs

STEP = 2


@pytest.fixture(scope="module")
def branch(tiny_model: Model, run: Run) -> Run:
    """The same as `run` with another token at STEP."""
    other = next(one.id for one in run.steps[STEP].candidates if one.id != run.steps[STEP].token)
    taken = [*run.ids[run.n_prompt : run.n_prompt + STEP], other]
    settings = {"max_new_tokens": 6, "temperature": 1.0, "top_k": 5, "seed": 3}
    return tiny_model.generate("the fox said", forced_tokens=taken, **settings)


WORDS = st.lists(st.sampled_from("abcd"), max_size=9)


@given(WORDS, WORDS)
def test_alignment_keeps_every_token_once_and_in_order(a, b):
    pairs = align(a, b)
    assert [pair.a for pair in pairs if pair.a is not None] == list(range(len(a)))
    assert [pair.b for pair in pairs if pair.b is not None] == list(range(len(b)))
    for pair in pairs:
        both = pair.a is not None and pair.b is not None
        assert (pair.state == "equal") == (both and a[pair.a or 0] == b[pair.b or 0])
    pairs = align(["the", "cat", "sat", "down"], ["the", "dog", "sat", "right", "there"])
    assert [(pair.a, pair.b) for pair in pairs if pair.state == "equal"] == [(0, 0), (2, 2)]
    assert [(pair.a, pair.b) for pair in pairs if pair.state == "replaced"] == [(1, 1)]
    assert [pair.b for pair in pairs if pair.state == "only B"] == [3, 4]
    long = ["a"] * 300  # difflib leaves out words that are frequent in a long text, unless told not
    assert {pair.state for pair in align(["x", *long], long)} == {"only A", "equal"}


@pytest.mark.parametrize("head", [1, "mean"])
def test_each_cell_is_the_weight_in_b_minus_the_weight_in_a(run, branch, head):
    figure = attention_difference(run, branch, "decoder.1.self", head)
    cells, meta = figure.data[0], figure.layout.meta
    patterns = (one.trace["decoder.1.self"].pattern[0] for one in (run, branch))
    in_a, in_b = (each.mean(0) if head == "mean" else each[head] for each in patterns)
    rows = [pair for pair in align(run.labels, branch.labels) if None not in pair[:2]]
    assert meta["queries"] == meta["keys"] == [list(pair[:2]) for pair in rows]
    assert len(rows) > run.n_prompt + STEP
    changes, shares = [], [0.0, 0.0]
    for (row, query), (column, key) in product(enumerate(rows), enumerate(rows)):
        both = [float(in_a[query.a, key.a]), float(in_b[query.b, key.b])]
        shares = [share + one / len(rows) for share, one in zip(shares, both, strict=True)]
        if query.a < key.a and query.b < key.b:
            assert math.isnan(cells.z[row, column])
            continue
        changes.append(both[1] - both[0])
        assert cells.z[row, column] == pytest.approx(changes[-1], abs=1e-7)
        assert cells.customdata[row, column] == pytest.approx(both)
    largest = max(map(abs, changes))
    assert (cells.zmin, cells.zmax) == pytest.approx((-largest, largest))
    assert largest > 0
    assert meta["kept"] == pytest.approx(shares)
    changed = [f"{run.labels[p.a]} → {branch.labels[p.b]}" for p in rows if p.state == "replaced"]
    assert [label for label in meta["key_labels"] if " → " in label] == changed


def test_rounding_alone_is_no_difference(tiny_model, run):
    """Of a text that was written token by token, and of its beginning."""
    first = list(run.ids[run.n_prompt : run.n_prompt + 1])
    beginning = tiny_model.generate(run.request.text, forced_tokens=first, max_new_tokens=1)
    for head in range(tiny_model.config.n_heads):
        figure = attention_difference(run, beginning, "decoder.1.self", head)
        assert {float(z) for z in figure.data[0].z.flat if not math.isnan(z)} == {0.0}
        assert figure.layout.meta["limit"] == 1.0  # no colour bar of numbers that say nothing


def test_two_heads_of_two_networks_are_compared(run, tiny_encoder_decoder, tiny_model):
    silent = tiny_model.generate(
        run.request.text, max_new_tokens=6, interventions=[Ablate("decoder", 0, [0])]
    )
    figure = attention_difference(
        run, silent, "decoder.0.self", 0, other_site="decoder.1.self", other_head=1
    )
    weights = silent.trace["decoder.1.self"].pattern[0, 1].numpy()
    assert figure.data[0].customdata[1, 0, 1] == pytest.approx(weights[1, 0])
    assert "decoder.1.self, head 1 in B − decoder.0.self, head 0 in A" in figure.layout.title.text
    translation = tiny_encoder_decoder.generate("the fox said", max_new_tokens=3)
    crossing = attention_difference(translation, translation, "decoder.0.cross", 0).layout.meta
    assert crossing["kept"] == pytest.approx([1, 1])  # of each query, however many keys there are
    with pytest.raises(NothingShared, match="no token in common"):
        attention_difference(run, relabelled(translation, ("~",)), "decoder.0.self", 0)
    with pytest.raises(ValueError, match=r"recorded: decoder\.0\.self"):
        attention_difference(run, translation, "encoder.0.self", 0)


def test_only_tokens_that_both_generated_are_compared(run, tiny_model):
    with pytest.raises(NothingShared, match="A generated 6, B 0"):
        generated_pairs(run, tiny_model.trace("the fox said"))
