"""Beam search against greedy decoding, full passes and exhaustive search; runs that are made so."""

import dataclasses
import itertools

import pytest
import torch
from kit.models import spread

from transformer import build_transformer
from transformer.inference.beam import beam_search
from transformer.inference.engines.compiled import engine_of
from transformer.model.transformer import EncoderDecoder

START, END = 1, 2
TEXT = "The fox said hello"
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
    settings = {"start": [START], "end_ids": {END}, "beams": 3, "max_new_tokens": 8, **changes}
    return beam_search(network, sources, **settings)


def log_probabilities(network, source, ids):
    """Of each of ids, by one full pass without a cache."""
    target = torch.tensor([[START, *ids]])
    logits = network(torch.tensor([source]), target[:, :-1])[0]
    return logits.double().log_softmax(-1).gather(-1, target[0, 1:, None])[:, 0]


def test_batch_rows_are_searched_as_alone_reading_live_hypotheses_only(ending_network, monkeypatch):
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
    assert len({len(result.steps) for result in found}) > 1  # some rows left before others
    monkeypatch.undo()
    for source, result in zip(SOURCES, found, strict=True):
        (alone,) = search(network, [source], beams=2, max_new_tokens=10)
        assert [h.ids for h in alone.hypotheses] == [h.ids for h in result.hypotheses]
        nodes = itertools.chain(*result.steps)
        for there, here in zip(itertools.chain(*alone.steps), nodes, strict=True):
            assert dataclasses.replace(there, score=here.score) == here
            assert there.score == pytest.approx(here.score, abs=1e-4)


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


@pytest.fixture(scope="module")
def run(tiny_encoder_decoder):
    return tiny_encoder_decoder.generate(TEXT, beams=3, max_new_tokens=9)


def test_the_best_hypothesis_is_the_run(tiny_encoder_decoder, run):
    assert run.ids[run.n_prompt :] == run.search.hypotheses[0].ids
    assert run.text == run.search.texts[0]
    assert len(run.search.hypotheses) == len(run.search.texts) == 3
    network, tokenizer = tiny_encoder_decoder.network, tiny_encoder_decoder.tokenizer
    ends = dict(start=tokenizer.target_start, end_ids=tokenizer.end_ids)
    source = [*tokenizer.encode(TEXT), tokenizer.end_id]
    (found,) = beam_search(network, [source], **ends, beams=3, max_new_tokens=9)
    assert list(run.search.hypotheses) == found.hypotheses
    assert [list(nodes) for nodes in run.search.tree] == found.steps
    tokens = {node.token for nodes in run.search.tree for node in nodes}
    assert all(run.candidate_labels[token] == tokenizer.label(token) for token in tokens)


def test_an_engine_searches_as_the_network_does_and_in_its_place(tiny_encoder_decoder, monkeypatch):
    plain, texts = tiny_encoder_decoder, [TEXT, "Hi", "The bird and the fox"]
    settings = dict(beams=3, max_new_tokens=99, length_penalty=0.5)
    wanted = plain.generate_batch(texts, **settings)
    assert max(len(run.ids) for run in wanted) == 1 + plain.config.max_len  # fills the decoder
    model = dataclasses.replace(plain, engine=engine_of(plain.network, "compiled"))
    monkeypatch.setattr(EncoderDecoder, "decode", None)
    for run, same in zip(model.generate_batch(texts, **settings), wanted, strict=True):
        assert (run.engine, same.engine) == ("compiled", "network")
        assert (run.ids, run.stopped, run.text) == (same.ids, same.stopped, same.text)
        assert [found.ids for found in run.search.hypotheses] == [
            found.ids for found in same.search.hypotheses
        ]
        nodes = zip(*(itertools.chain(*made.search.tree) for made in (run, same)), strict=True)
        for node, expected in nodes:
            assert node.score == pytest.approx(expected.score, abs=1e-4)
            assert dataclasses.replace(node, score=0.0) == dataclasses.replace(expected, score=0.0)
        for step, expected in zip(run.steps, same.steps, strict=True):
            assert (step.token, step.window) == (expected.token, expected.window)
            assert step.chosen.probability == pytest.approx(expected.chosen.probability, abs=1e-5)
        assert run.trace.sites == same.trace.sites
        for record, expected in zip(run.trace, same.trace, strict=True):
            torch.testing.assert_close(record.scores, expected.scores, atol=1e-4, rtol=1e-4)


def test_its_steps_are_those_of_one_pass_over_the_best(tiny_encoder_decoder, run):
    source = torch.tensor([run.source_ids])
    with torch.inference_mode():
        logits = tiny_encoder_decoder.network(source, torch.tensor([run.ids]))[0]
    probabilities = logits.softmax(dim=-1)
    assert len(run.steps) == len(run.ids) - 1
    for place, step in enumerate(run.steps):
        assert (step.index, step.window, step.n_kept) == (place, (0, place + 1), 1)
        assert step.token == run.ids[place + 1]
        expected = float(probabilities[place, step.token])
        assert step.chosen.probability == pytest.approx(expected, abs=1e-6)
        assert step.chosen.sampling_probability == 1.0
        assert step.candidates[0].id == int(logits[place].argmax())
    score = sum(float(torch.tensor(step.chosen.probability).log()) for step in run.steps)
    assert run.search.hypotheses[0].score == pytest.approx(score, abs=1e-4)


def test_a_search_streams_its_steps_at_the_end(tiny_encoder_decoder):
    stream = tiny_encoder_decoder.stream(TEXT, beams=2, max_new_tokens=6)
    tokens = [step.token for step in stream]
    assert tuple(tokens) == stream.run().ids[1:]
    assert stream.text == stream.run().text
    assert len(stream.run().search.hypotheses) == 2
    nothing = tiny_encoder_decoder.generate(TEXT, beams=2, max_new_tokens=0)
    assert (nothing.stopped, nothing.search, nothing.steps) == ("read", None, ())


@pytest.mark.parametrize("beams", [1, 2])
def test_a_target_that_fills_the_decoder_is_traced_as_far_as_it_was_read(
    tiny_encoder_decoder, beams
):
    limit = tiny_encoder_decoder.config.max_len
    runs = (
        tiny_encoder_decoder.generate(f"{TEXT} {n}", beams=beams, max_new_tokens=99)
        for n in range(20)
    )
    run = next(run for run in runs if run.stopped == "length")
    assert (len(run.ids), len(run.steps), run.trace_start) == (limit + 1, limit, 0)
    assert len(run.queries("decoder")) == limit
    assert run.trace.weights("decoder", "cross").shape[-2:] == (limit, len(run.source_ids))


def test_a_translated_batch_reads_sources_and_translations(tiny_encoder_decoder):
    texts = [TEXT, "Hi", "The bird and the fox"]
    batch = tiny_encoder_decoder.translate_batch(texts, max_new_tokens=8)
    for row, text in enumerate(texts):
        alone = tiny_encoder_decoder.generate(text, max_new_tokens=8)
        n_source, n_target = len(alone.source_ids), len(alone.ids)
        assert batch.outputs[row] == alone.text
        assert batch.target_ids[row, :n_target].tolist() == list(alone.ids)
        assert int(batch.target_padding[row].sum()) == n_target
        assert batch.queries("decoder", row)[:n_target] == alone.labels
        assert batch.keys("decoder", "cross", row)[:n_source] == alone.source_labels
        for stack, kind in alone.trace.kinds():
            wanted = alone.trace.weights(stack, kind)[:, 0]
            n_queries, n_keys = wanted.shape[-2:]
            weights = batch.trace.weights(stack, kind)[:, row, :, :n_queries]
            torch.testing.assert_close(weights[..., :n_keys], wanted, atol=1e-5, rtol=1e-5)
            assert (weights[..., n_keys:] == 0).all()
