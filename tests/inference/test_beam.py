"""Beam search against greedy decoding, full passes and exhaustive search."""

from __future__ import annotations

import itertools

import pytest
import torch
from builders import spread
from generating import continued, tokens

from transformer.inference.beam import beam_search
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


@pytest.fixture
def ending_network():
    """One that likes to end, sooner for one source than for another."""
    network = network_of(11, seed=5)
    network.head.bias[END] += 3.0
    return network


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
    greedy = continued(network, [[START]] * len(SOURCES), sources=SOURCES)
    found = search(network, SOURCES, beams=1)
    assert [list(result.hypotheses[0].ids) for result in found] == tokens(greedy)


@pytest.mark.parametrize("beams", [1, 2, 4])
def test_each_row_of_a_batch_gets_what_it_gets_alone(ending_network, beams):
    network = ending_network
    sources = [[3 + (3 * n + k) % 8 for k in range(n)] + [END] for n in range(1, 8)]
    together = search(network, sources, beams=beams, max_new_tokens=10)
    lengths = set()
    for source, result in zip(sources, together, strict=True):
        (alone,) = search(network, [source], beams=beams, max_new_tokens=10)
        assert [h.ids for h in alone.hypotheses] == [h.ids for h in result.hypotheses]
        for there, here in zip(alone.steps, result.steps, strict=True):
            assert [(n.token, n.parent, n.state) for n in there] == [
                (n.token, n.parent, n.state) for n in here
            ]
            assert [n.score for n in there] == pytest.approx([n.score for n in here], abs=1e-4)
        lengths.add(len(result.steps))
    assert len(lengths) > 1  # some rows left the batch before others


def test_the_network_reads_live_hypotheses_of_unfinished_rows_alone(ending_network, monkeypatch):
    network, decode, read = ending_network, ending_network.decode, []

    def counted(target, memory, source, *, src_is_text, cache):
        assert len(target) == len(memory) == len(source) == len(src_is_text)
        read.append(len(target))
        return decode(target, memory, source, src_is_text=src_is_text, cache=cache)

    monkeypatch.setattr(network, "decode", counted)
    found = search(network, SOURCES, beams=2, max_new_tokens=10)
    expected = [len(SOURCES)] + [0] * 10  # all begin as one hypothesis
    for result in found:
        n_ended = 0
        for depth, nodes in enumerate(result.steps, start=1):
            n_ended += sum(node.state == "ended" for node in nodes)
            if n_ended < 2:
                expected[depth] += sum(node.state == "alive" for node in nodes)
    assert read == [count for count in expected[:10] if count]
    assert len({len(result.steps) for result in found}) > 1


@pytest.mark.parametrize("length_penalty", [0.0, 0.5, 2.0])
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
    ranks = [hypothesis.normalised for hypothesis in result.hypotheses]
    assert ranks == sorted(ranks, reverse=True)
    for found in result.hypotheses:
        score = scores[found.ids]
        wanted = [score, score / len(found.ids) ** length_penalty]
        assert [found.score, found.normalised] == pytest.approx(wanted, abs=1e-4)


def test_the_tree_leads_from_each_hypothesis_back_to_the_start(ending_network):
    (result,) = search(ending_network, [SOURCES[1]])
    assert {node.parent for node in result.steps[0]} == {-1}
    written, states, ends = [()], ["alive"], {}  # what each node of the step before spells
    for nodes in result.steps:
        assert len(nodes) == 6  # twice as many as beams, those that are cut among them
        assert {states[node.parent] for node in nodes} == {"alive"}
        written = [(*written[node.parent], node.token) for node in nodes]
        states = [node.state for node in nodes]
        scored = zip(written, nodes, strict=True)
        ends |= {ids: node.score for ids, node in scored if node.state == "ended"}
    finished = [h for h in result.hypotheses if h.ended]
    assert finished
    assert all(ends[h.ids] == h.score for h in finished)


def test_a_search_needs_a_source_and_may_write_nothing(network):
    for sources in ([], [[]], [[5], []]):
        with pytest.raises(ValueError, match="at least one source"):
            search(network, sources)
    for result in search(network, SOURCES, max_new_tokens=0):
        (only,) = result.hypotheses
        assert (only.ids, only.score, only.ended) == ((), 0.0, False)
