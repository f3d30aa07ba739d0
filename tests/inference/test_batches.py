"""Several texts at once, generated or only read."""

import pytest
import torch
from kit.models import model_of, tiny

from transformer import Ablate, Batch

TEXT = "The fox said hello"


@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder"])
@pytest.mark.parametrize("filler", [None, 2, 70])
def test_a_batch_gives_each_text_what_it_gets_alone(family, filler, tokenizer, monkeypatch):
    """filler: what stands for padding in a model without such a token; None: it has one."""
    model = tiny("batched", family, tokenizer)
    if filler is not None:
        model = model_of("bare", model.config.replace(padding_id=None), tokenizer)
        monkeypatch.setattr(tokenizer, "padding_id", filler)
    texts = [TEXT, "Hi", "The bird"]
    batch = model.trace(texts)
    assert isinstance(batch, Batch)
    assert batch.texts == tuple(texts)
    for row, text in enumerate(texts):
        alone = model.trace(text)
        read = alone.source_ids or alone.ids
        n, rest = len(read), batch.ids.shape[1] - len(read)
        assert batch.ids[row].tolist() == [*read, *[tokenizer.padding_id] * rest]
        assert batch.labels[row][n:] == ("<|padding|>",) * rest
        assert batch.padding[row].tolist() == [True] * n + [False] * rest
        for site in alone.trace.sites:
            n_queries = n if site.stack == "encoder" or family == "decoder" else len(alone.ids)
            n_keys = n if site.kind == "cross" else n_queries
            found = batch.trace[site].pattern[row, :, :n_queries]
            wanted = alone.trace[site].pattern[0]
            torch.testing.assert_close(found[..., :n_keys], wanted, atol=1e-5, rtol=1e-5)
            assert (found[..., n_keys:] == 0).all()
    if family == "encoder":
        return
    seeds = [1, 2, 3]
    beams = {"beams": 3, "length_penalty": 0.5} if family == "encoder-decoder" else {}
    off = {"interventions": [Ablate("decoder", 0, [1])]}
    for chosen in ({}, {"temperature": 1.2, "top_k": 9}, off, beams):  # past the window too
        runs = model.generate_batch(texts, seeds, max_new_tokens=25, **chosen)
        for seed, text, run in zip(seeds, texts, runs, strict=True):
            alone = model.generate(text, max_new_tokens=25, seed=seed, **chosen)
            for name in ("ids", "request", "stopped", "text"):
                assert getattr(run, name) == getattr(alone, name)
            assert (run.search and run.search.texts) == (alone.search and alone.search.texts)
            for site in alone.trace.sites:
                torch.testing.assert_close(run.trace[site].pattern, alone.trace[site].pattern)
