"""Beam search against greedy decoding, full passes and exhaustive search."""

from __future__ import annotations

import itertools

import pytest
import torch
from builders import spread

from transformer.inference.beam import beam_search
from transformer.inference.generation import generate
from transformer.model.transformer import EncoderDecoder, build_transformer

START, END = 1, 2
SOURCES = [[5, 6, 2], [7, 3, 4, 8, 9, 2], [4, 2]]


def network_of(vocab_size: int, seed: int = 0) -> EncoderDecoder:
    network = build_transformer(
        "pre-norm", vocab_size=vocab_size, d_model=16, n_heads=2, n_layers=2, d_ff=32, max_len=12
    )
    return spread(network, seed).eval().requires_grad_(False)


@pytest.fixture
def network():
    return network_of(11)


def search(network, sources, **changes):
    settings = {"start_id": START, "end_id": END, "beams": 3, "max_new_tokens": 8, **changes}
    return beam_search(network, sources, **settings)


def log_probabilities(network, source, ids):
    """Of each of ids, by one full pass without a cache."""
    target = torch.tensor([[START, *ids]])
    logits = network(torch.tensor([source]), target[:, :-1])[0]
    return logits.double().log_softmax(-1).gather(-1, target[0, 1:, None])[:, 0]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_beam_is_greedy_decoding(seed):
    network = network_of(11, seed)
    greedy = [[] for _ in SOURCES]
    steps = generate(
        network, [[START]] * len(SOURCES), sources=SOURCES, max_new_tokens=8, end_id=END
    )
    for row in steps:
        for ids, step in zip(greedy, row, strict=True):
            if step is not None:
                ids.append(step.token)
    found = search(network, SOURCES, beams=1)
    assert [list(result.hypotheses[0].ids) for result in found] == greedy


def test_a_score_is_the_sum_of_log_probabilities_of_a_full_pass(network):
    for source, result in zip(SOURCES, search(network, SOURCES), strict=True):
        assert len(result.hypotheses) == 3
        for hypothesis in result.hypotheses:
            expected = log_probabilities(network, source, hypothesis.ids).sum().item()
            assert hypothesis.score == pytest.approx(expected, abs=1e-4)
            assert hypothesis.normalised == pytest.approx(expected / len(hypothesis.ids), abs=1e-4)


def test_each_row_of_a_batch_gets_what_it_gets_alone(network):
    together = search(network, SOURCES)
    for source, result in zip(SOURCES, together, strict=True):
        (alone,) = search(network, [source])
        assert [h.ids for h in alone.hypotheses] == [h.ids for h in result.hypotheses]
        assert [len(step) for step in alone.steps] == [len(step) for step in result.steps]


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_wide_beams_find_what_exhaustive_search_finds(length_penalty):
    network = network_of(4, seed=5)
    source = [3, 3, END]
    texts = [
        (*middle, END) for n in range(3) for middle in itertools.product((1, 3), repeat=n)
    ] + list(itertools.product((1, 3), repeat=3))
    scores = {ids: log_probabilities(network, source, ids).sum().item() for ids in texts}
    best = max(texts, key=lambda ids: scores[ids] / len(ids) ** length_penalty)
    # 16 beams hold every unfinished text of up to two tokens; the row never stops early.
    (result,) = search(network, [source], beams=16, max_new_tokens=3, length_penalty=length_penalty)
    assert result.hypotheses[0].ids == best
    assert result.hypotheses[0].score == pytest.approx(scores[best], abs=1e-4)


def test_the_tree_leads_from_each_hypothesis_back_to_the_start(network):
    (result,) = search(network, [SOURCES[1]])
    ends = {}
    for depth, nodes in enumerate(result.steps):
        for node in nodes:
            ids, step, current = [node.token], depth, node
            while step > 0:
                current = result.steps[step - 1][current.parent]
                assert current.state == "alive"
                ids.append(current.token)
                step -= 1
            assert current.parent == -1
            if node.state == "ended":
                ends[tuple(reversed(ids))] = node.score
    finished = [h for h in result.hypotheses if h.ended]
    assert all(ends[h.ids] == h.score for h in finished)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"beams": 0}, "beams must be a whole number from 1 to 16; got 0"),
        ({"length_penalty": -1.0}, "length_penalty must be a number from 0 to 5"),
    ],
)
def test_settings_out_of_range_get_one_sentence(network, changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        search(network, SOURCES, **changes)
    with pytest.raises(ValueError, match="at least one source"):
        search(network, [[]])
