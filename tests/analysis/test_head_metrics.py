"""Metrics of heads against plain loops, their baselines, and when a head gets a label."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from kit.models import tiny
from kit.runs import relabelled

from transformer import Run, Site, Trace
from transformer.analysis.head_measures import ALL, cells_of, repeats_of
from transformer.analysis.head_metrics import (
    MIN_ROWS,
    Metrics,
    head_metrics,
    named_after,
    strongest,
)
from transformer.views.attention.head_metrics import answer_metrics, metrics_figure


def with_scores(
    run: Run,
    scores: torch.Tensor,
    causal: bool = True,
    kind: str = "self",
    tokens: Sequence[str] | None = None,
) -> Run:
    """The run with these scores (L, H, Tq, Tk) and the weights that follow from them.

    tokens: its text; by default no two are alike.
    """
    trace = Trace()
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
    mask = mask.tril() if causal else mask
    for layer, heads in enumerate(scores):
        weights = heads.masked_fill(~mask, -torch.inf).softmax(-1)
        trace.record_attention(Site("decoder", layer, kind), heads[None], weights[None], mask)
    labels = tuple(tokens or (f"t{place}" for place in range(scores.shape[-1])))
    return dataclasses.replace(run, trace=trace, labels=labels, source_labels=labels, trace_start=0)


def by_loops(
    weights: np.ndarray, allowed: np.ndarray, tokens: Sequence[str] = ()
) -> dict[str, float]:
    """Every metric of one head, cell by cell; tokens: one a row, of self-attention."""
    sums: dict[str, list[float]] = {name: [] for name in ALL}
    totals = np.zeros(weights.shape[1])
    for q, row in enumerate(weights):
        if allowed[q].sum() < 2:
            continue
        sums["entropy"].append(-sum(w * math.log2(w) for w in row if w > 0))
        sums["largest"].append(max(row))
        sums["distance"].append(sum(w * abs(q - k) for k, w in enumerate(row)))
        sums["first"].append(row[0])
        sums["last"].append(row[-1])
        for name, k in (("previous", q - 1), ("itself", q), ("next", q + 1)):
            if 0 <= k < len(row) and allowed[q, k]:
                sums[name].append(row[k])
        before = [k for k, token in enumerate(tokens[:q]) if token == tokens[q]]
        if before and before[-1] < q - 1 and allowed[q, before[-1] : before[-1] + 2].all():
            sums["duplicate"].append(row[before[-1]])
            sums["induction"].append(row[before[-1] + 1])
            if before[-1] and allowed[q, before[-1] - 1]:
                sums["backwards"].append(row[before[-1] - 1])
        sums["order"].append(sum(w * k for k, w in enumerate(row)))
        totals += row
        if (k := len(row) - 2 - q) >= 0:
            sums["mirror"].append(row[k])
    centres = sums.pop("order")
    places = np.flatnonzero(allowed.sum(axis=1) >= 2)
    found = {name: float(np.mean(values or [np.nan])) for name, values in sums.items()}
    found["most_read"] = max(totals) / len(places)
    found["order"] = float(np.corrcoef(places, centres)[0, 1])
    return found


@pytest.mark.parametrize(
    ("stack", "kind"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")]
)
def test_every_metric_is_what_a_loop_over_the_cells_gives(translation, stack, kind):
    words = relabelled(translation, ("a", "b", "c", "b", "d", "d"))
    source = ("b", "c", "b", "b", "c")[: len(translation.source_labels)]
    words = dataclasses.replace(words, source_labels=source)
    found = head_metrics(words, stack, kind)
    assert len(found.heads) == 4
    for head in found.heads:
        record = translation.trace[stack, head.layer, kind]
        weights, allowed = record.pattern[0, head.head].double().numpy(), record.allowed[0].numpy()
        tokens = words.queries(stack) if kind == "self" else ()
        expected = by_loops(weights, allowed, tokens)
        assert not np.isnan([expected[name] for name in head.values]).any()
        assert dict(head.values) == pytest.approx(
            {name: expected[name] for name in head.values}, abs=2e-6
        )
        rows = allowed.sum(axis=1) >= 2
        assert head.most_read_key == int(weights[rows].sum(axis=0).argmax())
    with np.errstate(invalid="ignore"):  # its order is no number
        evenly = by_loops(allowed / allowed.sum(axis=1, keepdims=True), allowed, tokens)
    for name, value in found.heads[-1].even.items():
        assert value == pytest.approx(evenly[name], abs=1e-5) or name == "order", name


def test_heads_are_compared_under_the_mask_of_their_own_layer(tokenizer):
    changes = dict(window=3, layer_types=("sliding_attention", "full_attention"))
    model = tiny("windowed", "decoder", tokenizer, **changes)
    run = model.trace("the fox said hello to the fox and the dog said hello to the fox")
    found = head_metrics(run, "decoder", "self")
    said = answer_metrics(run, stack="decoder", kind="self")["even"]
    for head in found.heads:
        record = run.trace["decoder", head.layer, "self"]
        weights, allowed = record.pattern[0, head.head].double().numpy(), record.allowed[0].numpy()
        uniform = allowed / allowed.sum(axis=1, keepdims=True)
        for numbers, cells in ((head.values, weights), (head.even, uniform)):
            expected = by_loops(cells, allowed, run.labels)
            wanted = {name: expected[name] for name in numbers if name != "order"}
            assert dict(numbers) == pytest.approx(wanted, abs=1e-5, nan_ok=True)
        moved = with_scores(run, record.scores, tokens=run.labels)
        copies = head_metrics(moved, "decoder", "self").heads[head.head].shuffled
        assert (head.shuffled == copies) == (head.layer == 1)
        assert said[head.layer]["first"] == pytest.approx(head.even["first"], abs=1e-5)
    subtitle = metrics_figure(run, "decoder", "self", "first").layout.title.subtitle.text
    assert subtitle.startswith(f"a uniform head: {said[0]['first']:.2f}, {said[1]['first']:.2f}")


def test_a_text_of_one_token_has_no_numbers(run):
    found = head_metrics(with_scores(run, torch.zeros(1, 2, 1, 1)), "decoder", "self")
    assert (found.n_rows, found.n_left_out) == (0, 1)
    assert all(math.isnan(value) for value in found.heads[0].values.values())
    assert found.heads[0].label is None


# --- the baselines --------------------------------------------------------------------------------


def test_a_large_run_is_compared_with_fewer_shuffled_copies(run, monkeypatch):
    cells = sum(record.pattern.numel() for record in run.trace)
    for n_copies, found in ((7, 7), (3, 5), (99, 20)):
        monkeypatch.setattr("transformer.analysis.head_metrics.CELLS", n_copies * cells)
        assert head_metrics(run, "decoder", "self").n_shuffles == found


@pytest.mark.parametrize(("kind", "causal"), [("self", True), ("self", False), ("cross", False)])
@pytest.mark.parametrize("scale", [1, 10, 2_000])  # of the last, float32 has no exp
def test_every_metric_of_the_shuffled_copies_is_what_a_loop_gives(run, kind, causal, scale):
    n, words = 9, tuple("abcabcdab")
    scores = scale * torch.randn(2, 3, n, n, generator=torch.Generator().manual_seed(3))
    found = head_metrics(
        with_scores(run, scores, causal=causal, kind=kind, tokens=words), "decoder", kind
    )
    allowed = np.tril(np.ones((n, n), bool)) if causal else np.ones((n, n), bool)
    generator, orders = torch.Generator().manual_seed(0), []
    while len(orders) < found.n_shuffles:
        order = torch.randperm(n, generator=generator)
        orders += [] if (order == torch.arange(n)).any() else [order]
    for head in found.heads:
        copies = []
        for order in orders:
            moved = (
                scores[head.layer, head.head][:, order]
                .double()
                .masked_fill(~torch.from_numpy(allowed), -torch.inf)
            )
            copies.append(by_loops(moved.softmax(-1).numpy(), allowed, words))
        assert head.shuffled.keys() == {
            metric.name for metric in found.metrics if metric.against == "shuffled"
        }
        for name, (mean, most) in head.shuffled.items():
            values = [copy[name] for copy in copies]
            assert mean == pytest.approx(np.mean(values), rel=2e-5, abs=2e-6), name
            assert most == pytest.approx(max(values), rel=2e-5, abs=2e-6), name


# --- labels ---------------------------------------------------------------------------------------


REPEATING = tuple("abcabcdacb")


def planted(*names: str, n: int = 10) -> torch.Tensor:
    """(1, H, n, n) scores: for each metric a head that reads the cells that it is about; of "":
    a head that does nothing clearly."""
    scores = torch.zeros(1, len(names), n, n)
    for place, name in enumerate(names):
        if name == "most_read":
            scores[0, place, :, 2] = 9.0
        elif name == "order":
            scores[0, place] = -9.0 * (torch.arange(n)[:, None] - torch.arange(n)).abs()
        elif name == "":
            scores[0, place] = 1.6 * torch.randn(n, n, generator=torch.Generator().manual_seed(7))
        elif name != "entropy":
            allowed = torch.ones(n, n, dtype=torch.bool)
            cells = cells_of(name, allowed, repeats_of(REPEATING[:n], allowed))
            scores[0, place][cells] = 9.0
    return scores


def labels(found: Metrics) -> list[str | None]:
    return [head.label for head in found.heads]


SELF = {
    "previous": "reads the previous token", "itself": "reads itself",
    "next": "reads the next token", "first": "reads the first token",
    "induction": "reads what followed the last time",
    "duplicate": "reads the same token further back", "backwards": "reads the text backwards",
    "most_read": "reads one token", "entropy": "reads evenly", "": None,
}  # fmt: skip
CROSS = {
    "order": "reads in order", "last": "reads the last source token",
    "mirror": "reads the source backwards",
}  # fmt: skip


@pytest.mark.parametrize(("kind", "said"), [("self", SELF), ("cross", CROSS)])
def test_heads_that_clearly_do_one_thing_are_named_after_it(run, kind, said):
    made = with_scores(run, planted(*said), False, kind, REPEATING)
    found = head_metrics(made, "decoder", kind)
    assert labels(found) == list(said.values())
    for head, name in zip(found.heads, said, strict=True):
        if name not in ("most_read", "entropy", ""):
            assert head.values[name] > 0.95 > head.shuffled[name][1]
        assert name != "most_read" or head.most_read_key == 2
    assert found.n_repeats == (6 if kind == "self" else 0)


def test_a_text_that_repeats_nothing_has_no_such_number(run):
    plain = with_scores(run, planted("first"))
    found = head_metrics(plain, "decoder", "self")
    assert found.n_repeats == 0
    assert math.isnan(found.heads[0].values["induction"])
    assert math.isnan(found.heads[0].even["duplicate"])
    said = metrics_figure(plain, "decoder", "self", "induction").layout.title.subtitle.text
    assert said == "this text repeats no token with another between"


def test_few_rows_or_few_repeats_give_no_label(run):
    found = head_metrics(with_scores(run, planted("first", "", n=MIN_ROWS)), "decoder", "self")
    assert found.n_rows == MIN_ROWS - 1
    assert labels(found) == [None] * 2
    scores = planted("induction", n=7)  # the first four repeats of the ten tokens
    found = head_metrics(with_scores(run, scores, tokens=REPEATING[:7]), "decoder", "self")
    assert found.n_repeats == 3 < MIN_ROWS
    assert found.heads[0].values["induction"] > 0.99
    assert found.heads[0].named_after != "induction"


def test_each_kind_of_label_begins_at_its_own_limit():
    """What `rule` says: a weight of 0.4 and three times a uniform head's, 0.2 and five times for
    repeats, 0.95 of the entropy, an order of 0.8; and always more than any shuffled copy."""
    even = {"entropy": 2.0, "largest": 0.2, "most_read": 0.125, "induction": 0.04, "order": 0.0}
    low = {"entropy": 1.0, "largest": 0.3, "most_read": 0.1, "induction": 0.1, "order": 0.5}
    copies = {"induction": (0.0, 0.1), "order": (0.0, 0.6)}
    for changes, name in (
        ({}, None),
        ({"induction": 0.2}, "induction"),
        ({"induction": 0.19}, None),
        ({"entropy": 1.9}, "entropy"),
        ({"entropy": 1.89}, None),
        ({"order": 0.8, "largest": 0.4}, "order"),
        ({"order": 0.8}, None),
        ({"order": 0.79, "largest": 0.4}, None),
        ({"most_read": 0.4}, "most_read"),
        ({"most_read": 0.4, "induction": 0.25}, "induction"),
    ):
        assert named_after(low | changes, even, copies) == name, changes
    assert named_after(low | {"induction": 0.24}, even | {"induction": 0.05}, copies) is None
    for previous, uniform, most, name in (
        (0.4, 0.13, 0.3999, "previous"),
        (0.375, 0.125, 0.3, None),  # too little weight
        (0.75, 0.25, 0.3, "previous"),  # just three times
        (0.41, 0.14, 0.3, None),
        (0.41, 0.13, 0.41, None),  # a shuffled copy reaches as much
    ):
        values, evenly = low | {"previous": previous}, even | {"previous": uniform}
        assert named_after(values, evenly, copies | {"previous": (0.1, most)}) == name, previous
    reached = copies | {"order": (0.0, 0.8)}
    assert named_after(low | {"order": 0.8, "largest": 0.4}, even, reached) is None


# --- the strongest finding ------------------------------------------------------------------------


def test_the_finding_is_the_labelled_head_furthest_above_an_even_one(run):
    both = with_scores(run, planted("previous", "induction"), tokens=REPEATING)
    found = head_metrics(both, "decoder", "self")
    best = strongest(both, found)
    assert labels(found) == ["reads the previous token", "reads what followed the last time"]
    assert (best.layer, best.head, best.metric.name, best.clear) == (0, 1, "induction", True)
    assert (best.value, best.n_rows) == (found.heads[1].values["induction"], 6)
    weights = both.trace["decoder.0.self"].pattern[0, 1]
    cells = [(3, 1), (4, 2), (5, 3), (7, 4), (8, 6), (9, 5)]
    assert (best.query, best.key) == max(cells, key=lambda cell: float(weights[cell]))
    assert best.weight == pytest.approx(float(weights[best.query, best.key]))


def test_without_a_label_the_nearest_head_is_found_and_not_clear(run):
    scores = torch.zeros(1, 2, 30, 30)
    scores[0, 1].diagonal(-1).fill_(2.0)  # more than others, but below LEAST_WEIGHT
    leaning = with_scores(run, scores)
    found = head_metrics(leaning, "decoder", "self")
    best = strongest(leaning, found)
    assert (best.head, best.metric.name, best.clear) == (1, "previous", False)
    assert 3 * best.even < best.value < 0.4
    even = with_scores(run, torch.zeros(1, 2, 30, 30))
    assert strongest(even, head_metrics(even, "decoder", "self")) is None


def test_the_finding_names_the_clearest_cell_of_order_and_most_read(translation):
    clearer = torch.arange(1.0, 11)[:, None] / 9
    for name, cell in (("order", (9, 9)), ("most_read", (9, 2))):
        made = with_scores(translation, planted(name) * clearer, False, "cross")
        best = strongest(made, head_metrics(made, "decoder", "cross"))
        assert (best.metric.name, best.query, best.key) == (name, *cell)


# --- the picture ----------------------------------------------------------------------------------


def test_the_picture_has_a_column_a_layer_and_a_row_a_head(run):
    run = relabelled(run, ("a", "b", "c"))
    found = head_metrics(run, "decoder", "self")
    for metric in found.metrics:
        figure = metrics_figure(run, "decoder", "self", metric.name)
        expected = np.reshape([head.values[metric.name] for head in found.heads], (2, 2)).T
        np.testing.assert_allclose(figure.data[0].z, expected, atol=1e-6)
        title = figure.layout.title
        assert metric.title in title.text
        assert f"a uniform head: {found.heads[0].even[metric.name]:.2f}" in title.subtitle.text
        if metric.against == "shuffled":
            most = max(head.shuffled[metric.name][1] for head in found.heads)
            assert f"keys shuffled: at most {most:.2f}" in title.subtitle.text
