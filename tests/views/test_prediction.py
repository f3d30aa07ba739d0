"""Surprisal and the logit lens, against plain computations; the tree of a beam search; the first
filter that cut a candidate, by those of transformers."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from kit.client import queries
from kit.models import tiny, tokenizer_of
from kit.runs import sampled_run
from transformers import MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from transformer import Break, Candidate, Model, Request, Run, Search, with_lens
from transformer.inference.beam import BeamNode, Hypothesis
from transformer.runs.request import method_words
from transformer.tokenizer import MASK
from transformer.views.drawing import style
from transformer.views.prediction.beams import beam_nodes, beam_tree
from transformer.views.prediction.labels import answer_labels
from transformer.views.prediction.lens import logit_lens
from transformer.views.prediction.prediction import (
    CUT_BY_EITHER,
    MIN_P,
    NOT_BEST,
    OTHER_TEXT,
    PADDING,
    TOP_K,
    TOP_P,
    candidates,
    how_at,
)
from transformer.views.prediction.prediction import why_cut as reasons_of
from transformer.views.prediction.surprisal import surprisal

END = 2


@pytest.fixture(scope="module")
def slid(tiny_model: Model) -> Run:
    """A text longer than the window of 32 tokens."""
    settings = {"max_new_tokens": 31, "temperature": 1.0, "seed": 3}
    made = with_lens(tiny_model, tiny_model.generate("the fox said", **settings))
    assert made.trace_start > 0
    return made


def test_bars_are_minus_log2_of_each_tokens_probability(run, tiny_model):
    with torch.no_grad():
        logits = tiny_model.network(torch.tensor([run.ids]))[0].double()
    shares = logits.softmax(dim=-1)[range(len(run.ids) - 1), list(run.ids[1:])]
    expected = (-shares.log2()).tolist()
    figure = surprisal(run)
    (bars,), meta = figure.data, figure.layout.meta
    assert math.isnan(bars.y[0])
    np.testing.assert_allclose(bars.y[1:], expected, rtol=1e-4)
    assert meta["labels"] == list(run.labels)
    mean = sum(expected) / len(expected)
    perplexity = math.exp(mean * math.log(2))
    whole = {"mean_bits": mean, "perplexity": perplexity, "n_tokens": len(expected)}
    assert meta["summary"] == pytest.approx(whole, rel=1e-4)


def test_a_text_that_slid_starts_at_its_first_traced_token(slid):
    meta = surprisal(slid).layout.meta
    assert meta["labels"] == list(slid.labels[-32:])
    assert meta["first"] == slid.trace_start
    assert meta["given"] == max(0, slid.n_prompt - slid.trace_start) > 0
    whole, part = logit_lens(slid), logit_lens(slid, first=5, count=7)
    np.testing.assert_array_equal(part.data[0].z, whole.data[0].z[:, 5:12])
    for name in ("column_labels", "next", "settled"):
        assert part.layout.meta[name] == whole.layout.meta[name][5:12]
    assert (part.layout.meta["first"], part.layout.meta["total"]) == (5, 32)
    assert part.layout.meta["n_earlier"] == slid.trace_start


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder", "tiny_encoder_decoder"])
def test_cells_are_the_heads_reading_of_each_residual_stream(name, request):
    model: Model = request.getfixturevalue(name)
    read = model.trace("the fox said") if name == "tiny_encoder" else sampled_run(model)
    run = with_lens(model, read)
    network: Any = model.network
    stack = network.last_stack.name
    figure = logit_lens(run)
    assert len(figure.layout.meta["row_labels"]) == model.config.n_layers + 1
    for row, stream in enumerate(run.trace.residuals[stack]):
        x = stream[0]
        if model.config.norm == "pre":
            norm = network.last_stack.norm
            x = torch.nn.functional.layer_norm(x, x.shape[-1:], norm.weight, norm.bias)
        logits = torch.nn.functional.linear(x, network.head.weight, network.head.bias)
        best = logits.softmax(-1).max(-1)
        np.testing.assert_allclose(figure.data[0].z[row], best.values.numpy(), atol=1e-5)
        labels = model.tokenizer.labels(best.indices.tolist())
        assert figure.layout.meta["best"][row] == labels
        for column, hover in enumerate(figure.data[0].hovertext[row]):
            assert f"{style.hover(labels[column])} {best.values[column]:.4f}" in hover


def test_underlined_cells_have_the_tokens_of_the_top_row(run):
    figure, ids = logit_lens(run), run.lens.ids[:, :, 0].numpy()
    drawn = set()
    for shape in figure.layout.shapes:
        for piece in shape.path.split("M")[1:]:
            (x0, y0), (x1, _) = (map(float, end.split(",")) for end in piece.split("L"))
            drawn.add((round(y0), round((x0 + x1) / 2)))
    assert drawn == set(map(tuple, np.argwhere(ids == ids[-1]).tolist()))
    for column, lowest in enumerate(figure.layout.meta["settled"]):
        assert (ids[lowest:, column] == ids[-1, column]).all()
        assert lowest == 0 or ids[lowest - 1, column] != ids[-1, column]


def test_nodes_are_ranked_by_score_and_keep_their_parents(tiny_encoder_decoder):
    """Three steps by hand, the second's nodes not in the order of their scores."""
    steps = (
        ((3, -1, -0.5, "alive"), (4, -1, -1.0, "alive"), (END, -1, -3.0, "cut")),
        ((5, 1, -1.75, "alive"), (END, 0, -1.5, "ended"), (3, 0, -2.0, "alive")),
        ((END, 0, -2.5, "ended"), (4, 2, -4.0, "cut")),
    )
    names = ("token", "parent", "score", "state")
    nodes = [[BeamNode(**dict(zip(names, one, strict=True))) for one in step] for step in steps]
    hypotheses = (
        Hypothesis(ids=(4, 5, END), score=-2.5, normalised=-0.8, ended=True),
        Hypothesis(ids=(3, END), score=-1.5, normalised=-0.9, ended=True),
    )
    search = Search(hypotheses=hypotheses, texts=("", ""), tree=tuple(map(tuple, nodes)))
    labels = {token: f"t{token}" for token in range(12)}
    run = tiny_encoder_decoder.trace("the fox")
    run = dataclasses.replace(run, search=search, candidate_labels=labels)
    assert [dataclasses.astuple(one) for one in beam_nodes(run)] == [
        # step, rank, label, parent, score, state, best
        (0, 0, "t3", -1, -0.5, "alive", False),
        (0, 1, "t4", -1, -1.0, "alive", True),
        (0, 2, "t2", -1, -3.0, "cut", False),
        (1, 0, "t2", 0, -1.5, "ended", False),
        (1, 1, "t5", 1, -1.75, "alive", True),
        (1, 2, "t3", 0, -2.0, "alive", False),
        (2, 0, "t2", 1, -2.5, "ended", True),
        (2, 1, "t4", 2, -4.0, "cut", False),
    ]
    cut, kept, best = ([*zip(line.x, line.y, strict=True)] for line in beam_tree(run).data[:3])
    gap = (None, None)
    assert cut == [(-1, 0), (0, 2), gap, (1, 2), (2, 1), gap]
    assert kept == [(-1, 0), (0, 0), gap, (0, 0), (1, 0), gap, (0, 0), (1, 2), gap]
    assert best == [(-1, 0), (0, 1), gap, (0, 1), (1, 1), gap, (1, 1), (2, 0), gap]


@pytest.mark.parametrize("head", ["text-labels", "token-labels"])
def test_labels_are_shown_with_the_networks_own_scores(head):
    labels = ("no", "perhaps", "yes")
    model = tiny("scorer", "encoder", tokenizer_of([MASK]), head=head, labels=labels)
    run = model.trace("the fox said")
    answer = answer_labels(queries(model), run)
    scores = model.network(torch.tensor([run.ids]))[0]
    assert np.allclose(answer["scores"], scores.detach(), atol=1e-5)
    (drawn,) = answer["figure"].data
    shares = scores.softmax(dim=-1).detach()
    shown = drawn.x if head == "text-labels" else np.array(drawn.z).T
    assert np.allclose(shown, shares, atol=1e-5)
    bare = model.trace("the fox said", interventions=[Break("no-final-norm")])
    last = bare.trace.residuals["encoder"][-1]
    wanted = model.network.project(last)[0].detach()
    assert np.allclose(answer_labels(queries(model), bare)["scores"], wanted, atol=1e-5)
    with pytest.raises(ValueError, match="no output layer that predicts tokens"):
        with_lens(model, run)


def test_negative_scores_of_tokens_keep_their_colours():
    one = dict(labels=("worth",), label_probabilities="none", head="token-labels")
    model = tiny("scorer", "encoder", tokenizer_of([MASK]), **one)
    (drawn,) = answer_labels(queries(model), model.trace("the fox said"))["figure"].data
    assert np.min(drawn.z) < 0
    assert drawn.zmin is None


def first_cuts(
    logits: torch.Tensor, temperature: float, k: int | None, p: float | None, m: float | None
) -> dict[int, str]:
    """token -> the first filter that cuts it, by the filters of transformers."""
    scores, cut = logits[None] / temperature, {}
    filters = {TOP_K: k and TopKLogitsWarper(k), TOP_P: p and TopPLogitsWarper(p)}
    for reason, keep in (filters | {MIN_P: m and MinPLogitsWarper(m)}).items():
        after = keep(None, scores) if keep else scores
        lost = (after[0] == -math.inf) & (scores[0] > -math.inf)
        cut |= dict.fromkeys(lost.nonzero()[:, 0].tolist(), reason)
        scores = after
    return cut


@pytest.mark.parametrize("temperature", [1.0, 0.6, 2.5])
@pytest.mark.parametrize(
    ("k", "p", "m"),
    [
        (4, None, None), (None, 0.4, None), (None, None, 0.2), (9, 0.5, None), (12, None, 0.3),
        (None, 0.6, 0.25), (15, 0.8, 0.2), (30, 0.5, 0.1), (7, 1.0, None),
    ],
)  # fmt: skip
def test_the_named_filter_is_the_first_that_cuts_in_transformers(tiny_model, temperature, k, p, m):
    run = tiny_model.generate(
        "the fox", max_new_tokens=5, temperature=temperature, top_k=k, top_p=p, min_p=m, seed=1
    )
    seen = set()
    for step in run.steps:
        with torch.no_grad():
            window = torch.tensor([run.ids[slice(*step.window)]])
            logits = tiny_model.network(window)[0, -1].double()
        logits[tiny_model.tokenizer.padding_id] = -math.inf
        expected = first_cuts(logits, temperature, k, p, m)
        reasons = reasons_of(run, step)
        for candidate in step.candidates:
            if candidate.id == tiny_model.tokenizer.padding_id:
                assert reasons[candidate.id] == PADDING
            elif candidate.sampling_probability > 0:
                assert candidate.id not in reasons
            elif reasons[candidate.id] == CUT_BY_EITHER:
                assert p is not None
                assert m is not None
                assert expected[candidate.id] in (TOP_P, MIN_P)
            else:
                assert reasons[candidate.id] == expected[candidate.id]
                seen.add(reasons[candidate.id])
    assert seen or reasons == {} or CUT_BY_EITHER in reasons.values()


def test_greedy_beams_and_padding_have_words_of_their_own(tiny_model, tiny_encoder_decoder):
    translation = tiny_encoder_decoder.generate("the fox said", beams=2, max_new_tokens=5)
    greedy = tiny_model.generate("the fox", max_new_tokens=2)
    padding = greedy.config.padding_id
    for item, reason in ((greedy, NOT_BEST), (translation, OTHER_TEXT)):
        for step in item.steps:
            found = reasons_of(item, step)
            assert step.token not in found
            assert set(found.values()) <= {reason, PADDING}
            assert len(found) == len(step.candidates) - 1
    step = greedy.steps[0]
    assert padding is not None
    lost = Candidate(id=padding, logit=9.0, probability=0.9, sampling_probability=0.0)
    planted = dataclasses.replace(step, candidates=(lost, *step.candidates))
    assert reasons_of(greedy, planted)[padding] == PADDING


def test_words_of_a_step_name_what_took_its_token(tiny_model, tiny_encoder_decoder):
    plain = tiny_model.generate("the fox", max_new_tokens=2)
    other = plain.steps[0].candidates[1].id
    forced = tiny_model.generate("the fox", max_new_tokens=2, forced_tokens=[other])
    assert set(reasons_of(forced, forced.steps[0]).values()) <= {PADDING}
    assert NOT_BEST in reasons_of(forced, forced.steps[1]).values()
    assert how_at(forced, forced.steps[0]) == "This token was not sampled: it was put there."
    assert how_at(forced, forced.steps[1]) == "greedy: always the likeliest"
    again = tiny_model.generate("the fox", max_new_tokens=2, repetition_penalty=1.5)
    assert how_at(again, again.steps[0]) == "greedy, repetition penalty 1.5"
    drawn = Request("the fox", temperature=0.5, repetition_penalty=1.5, seed=3)
    assert method_words(drawn) == "sampled: temperature 0.5, repetition penalty 1.5"
    assert method_words(drawn, brief=True).endswith("repetition penalty 1.5, seed 3")
    searched = tiny_encoder_decoder.generate("the fox", beams=2, length_penalty=0.0)
    assert how_at(searched, searched.steps[0]) == "beam search with 2 beams, length penalty 0"


def test_a_bar_that_is_missing_says_which_filter_cut(tiny_model):
    run = sampled_run(tiny_model)
    for index, step in enumerate(run.steps):
        figure = candidates(run, index)
        reasons = reasons_of(run, step)
        for candidate, text, why in zip(
            step.candidates, figure.data[1].text, figure.layout.meta["cut"], strict=False
        ):
            assert why == reasons.get(candidate.id)
            assert (text == f"✕ {why}") == (candidate.sampling_probability == 0)
    assert TOP_K in reasons_of(run, run.steps[0]).values()
