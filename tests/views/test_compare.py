"""Two runs side by side: against plain loops over the two runs' own numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest
from asking import asking
from hypothesis import given
from hypothesis import strategies as st
from pictured import relabelled, sampled_run

from transformer import Ablate, Model, Run
from transformer.runs.memory_budget import ENTRY_BYTES, MemoryBudget
from transformer.ui.limits import KEPT
from transformer.ui.store import RunStore, size_of
from transformer.views import attention_difference, candidates_compared, probability_difference
from transformer.views.compare.compare import NothingShared, align, opposite
from transformer.views.compare.outcomes import generated_pairs

STEP = 2


@pytest.fixture(scope="module")
def run(tiny_model: Model) -> Run:
    """Six tokens sampled after three words."""
    return sampled_run(tiny_model)


@pytest.fixture(scope="module")
def branch(tiny_model: Model, run: Run) -> Run:
    """The same with another token at STEP."""
    other = next(one.id for one in run.steps[STEP].candidates if one.id != run.steps[STEP].token)
    taken = [*run.ids[run.n_prompt : run.n_prompt + STEP], other]
    settings = {"max_new_tokens": 6, "temperature": 1.0, "top_k": 5, "seed": 3}
    return tiny_model.generate("the fox said", forced_tokens=taken, **settings)


def ask(name: str, *runs: Run, **data: Any) -> dict[str, Any]:
    """What the page is answered about one kept run, or two."""
    store = RunStore()
    keys = dict(zip(("run", "other"), map(store.put, runs), strict=False))
    return asking(store, name)({**keys, **data})


# --- which tokens belong together -----------------------------------------------------------------


def test_tokens_are_equal_replaced_or_in_one_text_only():
    pairs = align(["the", "cat", "sat", "down"], ["the", "dog", "sat", "right", "there"])
    assert [(pair.a, pair.b, pair.state) for pair in pairs] == [
        (0, 0, "equal"),
        (1, 1, "replaced"),
        (2, 2, "equal"),
        (3, None, "only A"),
        (None, 3, "only B"),
        (None, 4, "only B"),
    ]


WORDS = st.lists(st.sampled_from("abcd"), max_size=9)


@given(WORDS, WORDS)
def test_every_token_stands_once_and_in_order(a, b):
    pairs = align(a, b)
    assert [pair.a for pair in pairs if pair.a is not None] == list(range(len(a)))
    assert [pair.b for pair in pairs if pair.b is not None] == list(range(len(b)))
    for pair in pairs:
        both = pair.a is not None and pair.b is not None
        assert pair.same == (both and a[pair.a or 0] == b[pair.b or 0])


def test_what_stands_opposite_a_step_has_read_the_same_before():
    a, b = ["x", "y", "z", "and"], ["x", "y", "and", "z"]
    pairs = align(a, b)
    assert opposite(pairs, 2) == 2  # both have read x y
    later = align(["p", *a], a)
    assert opposite(later, 3) == 2  # z beside z
    assert opposite(align(["x", "y", "q"], ["w", "x", "y", "r", "s"]), 2) == 3  # after y
    assert opposite(align(["q"], ["w", "v"]), 1) is None


# --- attention ------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [1, "mean"])
def test_each_cell_is_the_weight_in_b_minus_the_weight_in_a(run, branch, head):
    figure = attention_difference(run, branch, "decoder.1.self", head)
    cells, meta = figure.data[0], figure.layout.meta
    weights = [
        one.trace["decoder.1.self"].pattern[0].mean(0)
        if head == "mean"
        else one.trace["decoder.1.self"].pattern[0, head]
        for one in (run, branch)
    ]
    rows = [pair for pair in align(run.labels, branch.labels) if None not in pair[:2]]
    assert meta["queries"] == meta["keys"] == [list(pair[:2]) for pair in rows]
    assert len(rows) > run.n_prompt + STEP
    largest = 0.0
    for row, query in enumerate(rows):
        for column, key in enumerate(rows):
            if query.a < key.a and query.b < key.b:
                assert math.isnan(cells.z[row, column])
                continue
            both = [float(weights[0][query.a, key.a]), float(weights[1][query.b, key.b])]
            assert cells.z[row, column] == pytest.approx(both[1] - both[0], abs=1e-7)
            assert cells.customdata[row, column] == pytest.approx(both)
            largest = max(largest, abs(both[1] - both[0]))
    assert (cells.zmin, cells.zmax) == pytest.approx((-largest, largest))
    assert largest > 0
    shares = [
        sum(float(weights[side][q[side], k[side]]) for q in rows for k in rows) / len(rows)
        for side in (0, 1)
    ]
    assert meta["kept"] == pytest.approx(shares)
    changed = [f"{run.labels[p.a]} → {branch.labels[p.b]}" for p in rows if not p.same]
    assert [label for label in meta["key_labels"] if " → " in label] == changed


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


# --- how likely each token was --------------------------------------------------------------------


def test_bars_are_differences_of_the_generated_tokens_probabilities(run, branch):
    figure = probability_difference(run, branch)
    bars, meta = figure.data[0], figure.layout.meta
    assert meta["pairs"][: STEP + 1] == [[run.n_prompt + k] * 2 for k in range(STEP + 1)]
    for (a, b), bar, both in zip(meta["pairs"], bars.y, bars.customdata, strict=True):
        in_a = run.steps[a - run.n_prompt].chosen.probability
        in_b = branch.steps[b - branch.n_prompt].chosen.probability
        assert tuple(both) == (in_a, in_b)
        assert bar == in_b - in_a
    assert list(bars.y[:STEP]) == pytest.approx([0] * STEP, abs=1e-6)
    assert bars.marker.pattern.shape[STEP] == "/"
    assert list(figure.layout.yaxis.range) == [-1, 1]


def test_runs_that_generated_nothing_together_are_refused_with_their_counts(run, tiny_model):
    read = tiny_model.trace("the fox said")
    with pytest.raises(NothingShared, match="A generated 6, B 0"):
        generated_pairs(run, read)
    assert "B 0" in ask("outcomes", run, read)["none"]
    assert "figure" in ask("outcomes", run, run)


def test_candidates_of_two_steps_stand_beside_each_other(run, branch):
    place = STEP + 1  # here the texts before differ
    figure = candidates_compared(run, branch, place, place)
    for name, one, bars in (("a", run, figure.data[0]), ("b", branch, figure.data[1])):
        weighed = {one.candidate_labels[c.id]: c.probability for c in one.steps[place].candidates}
        least = sorted((c.probability for c in one.steps[place].candidates), reverse=True)[:20][-1]
        for row, label in enumerate(figure.layout.meta["labels"]):
            assert figure.layout.meta[name][row] == weighed.get(label)
            assert bars.x[row] == weighed.get(label, 0)
            if label not in weighed:
                assert bars.customdata[row] == f"at most {least:.2g}"
    in_a = [p or 0 for p in figure.layout.meta["a"]]
    assert in_a == sorted(in_a, reverse=True)
    assert None in figure.layout.meta["a"]  # 320 tokens, of which 20 are kept
    same = candidates_compared(run, branch, STEP, STEP).layout.meta
    assert same["a"] == pytest.approx(same["b"])


# --- hostile labels, and what the page is answered ------------------------------------------------


def test_asking_which_runs_are_kept_does_not_keep_them(run):
    store = RunStore(MemoryBudget(2 * (size_of(run) + ENTRY_BYTES), KEPT))
    kept = asking(store, "kept")
    first, second = store.put(run), store.put(run)
    assert kept({"runs": [first, second, "nonsense", 3]}) == {"kept": [True, True, False, False]}
    third = store.put(run)  # the first one goes, although it was asked about last
    assert kept({"runs": [first, second, third]}) == {"kept": [False, True, True]}
    assert "at most 256" in kept({"runs": ["x"] * 257})["error"]
