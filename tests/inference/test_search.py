"""A beam search through Model: what it keeps, and that its numbers are the network's."""

from __future__ import annotations

import pytest
import torch

from transformer import Model, Run
from transformer.inference.beam import beam_search

TEXT = "The fox said hello"


@pytest.fixture(scope="module")
def run(tiny_encoder_decoder: Model) -> Run:
    return tiny_encoder_decoder.generate(TEXT, beams=3, max_new_tokens=9)


def test_the_best_hypothesis_is_the_run(tiny_encoder_decoder: Model, run: Run) -> None:
    assert run.search is not None
    assert run.ids[run.n_prompt :] == run.search.hypotheses[0].ids
    assert run.text == run.search.texts[0]
    assert len(run.search.hypotheses) == len(run.search.texts) == 3
    network, tokenizer = tiny_encoder_decoder.network, tiny_encoder_decoder.tokenizer
    ends = dict(start_id=tokenizer.start_id, end_id=tokenizer.end_id)
    source = [*tokenizer.encode(TEXT), tokenizer.end_id]
    (found,) = beam_search(network, [source], **ends, beams=3, max_new_tokens=9)
    assert list(run.search.hypotheses) == found.hypotheses
    assert [list(nodes) for nodes in run.search.tree] == found.steps
    tokens = {node.token for nodes in run.search.tree for node in nodes}
    assert all(run.candidate_labels[token] == tokenizer.label(token) for token in tokens)


def test_its_steps_are_those_of_one_pass_over_the_best(
    tiny_encoder_decoder: Model, run: Run
) -> None:
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
    assert run.search is not None
    assert run.search.hypotheses[0].score == pytest.approx(score, abs=1e-4)


def test_a_search_streams_its_steps_at_the_end(tiny_encoder_decoder: Model) -> None:
    stream = tiny_encoder_decoder.stream(TEXT, beams=2, max_new_tokens=6)
    tokens = [step.token for step in stream]
    assert tuple(tokens) == stream.run().ids[1:]
    assert stream.text == stream.run().text
    nothing = tiny_encoder_decoder.generate(TEXT, beams=2, max_new_tokens=0)
    assert (nothing.stopped, nothing.search, nothing.steps) == ("read", None, ())


@pytest.mark.parametrize("beams", [1, 2])
def test_a_target_that_fills_the_decoder_is_traced_as_far_as_it_was_read(
    tiny_encoder_decoder: Model, beams: int
) -> None:
    limit = tiny_encoder_decoder.config.max_len
    runs = (
        tiny_encoder_decoder.generate(f"{TEXT} {n}", beams=beams, max_new_tokens=99)
        for n in range(20)
    )
    run = next(run for run in runs if run.stopped == "length")
    assert (len(run.ids), len(run.steps), run.trace_start) == (limit + 1, limit, 0)
    assert len(run.queries("decoder")) == limit
    assert run.trace.weights("decoder", "cross").shape[-2:] == (limit, len(run.source_ids))


def test_a_translated_batch_reads_sources_and_translations(tiny_encoder_decoder: Model) -> None:
    texts = [TEXT, "Hi", "The bird and the fox"]
    batch = tiny_encoder_decoder.translate_batch(texts, max_new_tokens=8)
    assert batch.target_ids is not None
    assert batch.target_padding is not None
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
