"""Several texts at once, generated or only read."""

import pytest
import torch
from builders import model_of, tiny

from transformer import Batch

TEXT = "The fox said hello"


def settings(**changes):
    return {"max_new_tokens": 9, "temperature": 1.0, "seed": 3, **changes}


def test_a_generated_batch_gives_each_text_the_run_it_gets_alone(tiny_model):
    texts = [TEXT, "Hi", "Once upon a time there was a fox who"]
    for sampled in ({}, settings(temperature=1.2, top_k=9)):
        chosen = {**settings(), **sampled, "max_new_tokens": 16}
        del chosen["seed"]
        runs = tiny_model.generate_batch(texts, seeds=[1, 2, 3], **chosen)
        for seed, text, run in zip([1, 2, 3], texts, runs, strict=True):
            alone = tiny_model.generate(text, **chosen, seed=seed)
            assert run.ids == alone.ids
            assert run.request == alone.request
            assert run.stopped == alone.stopped
            torch.testing.assert_close(run.trace.weights("decoder"), alone.trace.weights("decoder"))


def test_a_translated_batch_gives_each_text_the_run_it_gets_alone(tiny_encoder_decoder):
    texts = [TEXT, "Hi", "The bird and the fox"]
    runs = tiny_encoder_decoder.generate_batch(texts, max_new_tokens=6, seed=5)
    for text, run in zip(texts, runs, strict=True):
        assert run.ids == tiny_encoder_decoder.generate(text, max_new_tokens=6).ids
        assert run.request.seed == 5


def test_a_batch_needs_texts_and_a_seed_for_each(tiny_model):
    with pytest.raises(ValueError, match="at least one text is needed; got an empty list"):
        tiny_model.generate_batch([])
    with pytest.raises(ValueError, match="one seed a text is needed; got 2 for 3 texts"):
        tiny_model.generate_batch([TEXT] * 3, seeds=[1, 2])


def test_a_traced_batch_is_padded_and_each_text_is_as_alone(tiny_model, tiny_encoder, tokenizer):
    texts = [TEXT, "Hi"]
    for model, stack in [(tiny_model, "decoder"), (tiny_encoder, "encoder")]:
        batch = model.trace(texts)
        assert isinstance(batch, Batch)
        assert batch.texts == tuple(texts)
        assert batch.ids.shape == batch.padding.shape
        assert batch.labels[1][-1] == "<|padding|>"
        weights = batch.trace.weights(stack)
        for row, text in enumerate(texts):
            alone = model.trace(text)
            n = len(alone.ids)
            assert batch.ids[row, :n].tolist() == list(alone.ids)
            assert batch.padding[row].tolist() == [place < n for place in range(len(batch.ids[0]))]
            own = weights[:, row : row + 1, :, :n, :n]
            torch.testing.assert_close(own, alone.trace.weights(stack), atol=1e-5, rtol=1e-5)
            assert (weights[:, row, :, :n, n:] == 0).all()


def test_a_traced_batch_of_sources_is_padded_where_it_is_read(tiny_encoder_decoder):
    batch = tiny_encoder_decoder.trace([TEXT, "Hi"])
    n = int(batch.padding[1].sum())
    assert n < batch.ids.shape[1]
    for stack, kind in [("encoder", "self"), ("decoder", "cross")]:
        weights = batch.trace.weights(stack, kind)
        assert (weights[:, 1, ..., n:] == 0).all()
        assert (weights[:, 1, ..., :n] > 0).all()


def test_a_traced_batch_checks_every_text(tiny_model):
    with pytest.raises(ValueError, match="at least one text is needed"):
        tiny_model.trace([])
    with pytest.raises(ValueError, match="at least one character that is not a space"):
        tiny_model.trace([TEXT, " "])
    with pytest.raises(ValueError, match="the text must be a string; got int"):
        tiny_model.trace([TEXT, 5])
    with pytest.raises(ValueError, match="at most 32 tokens fit this model; got"):
        tiny_model.trace([TEXT, TEXT * 20])


@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder"])
@pytest.mark.parametrize("filler", [0, 2, 70])
def test_a_batch_needs_no_padding_token(family, filler, tokenizer, monkeypatch):
    config = tiny("bare", family, tokenizer).config.replace(padding_id=None)
    model = model_of("bare", config, tokenizer)
    monkeypatch.setattr(tokenizer, "padding_id", filler)
    texts = [TEXT, "Hi", "The bird"]
    batch = model.trace(texts)
    for row, text in enumerate(texts):
        alone = model.trace(text)
        read = alone.source_ids or alone.ids
        n, rest = len(read), batch.ids.shape[1] - len(read)
        assert batch.ids[row].tolist() == [*read, *[filler] * rest]
        assert batch.labels[row][n:] == ("<|padding|>",) * rest
        assert batch.padding[row].tolist() == [True] * n + [False] * rest
        for site in alone.trace.sites:
            n_queries = n if site.stack == "encoder" or family == "decoder" else len(alone.ids)
            n_keys = n if site.kind == "cross" else n_queries
            found = batch.trace[site].weights[row, :, :n_queries]
            wanted = alone.trace[site].weights[0]
            torch.testing.assert_close(found[..., :n_keys], wanted, atol=1e-5, rtol=1e-5)
            assert (found[..., n_keys:] == 0).all()
    if family == "encoder":
        return
    beams = {"beams": 3} if family == "encoder-decoder" else {"temperature": 1.0}
    for chosen in ({}, beams):  # past the window too
        runs = model.generate_batch(texts, max_new_tokens=25, **chosen)
        for text, run in zip(texts, runs, strict=True):
            assert run.ids == model.generate(text, max_new_tokens=25, **chosen).ids
