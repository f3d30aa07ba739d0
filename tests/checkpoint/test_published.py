"""Models as they are published, with their special tokens and odd keys."""

from __future__ import annotations

import pytest
import torch
from published import PUBLISHED, publish

import transformer

pytestmark = pytest.mark.filterwarnings("ignore")
TEXTS = ["The black cat is sleeping on the bed", "The cat"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("published"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_is_read_in_a_batch_as_transformers_reads_it_alone(name, folders):
    folder, theirs = folders[name]
    model = transformer.load(folder)
    theirs.set_attn_implementation("eager")
    batch, marian = model.trace(TEXTS), name == "marian"
    lengths = batch.padding.sum(dim=1).tolist()
    assert lengths[0] != lengths[1]
    stack = "encoder" if marian else model.config.family
    for row, length in enumerate(lengths):
        assert all("pad" in label.lower() for label in batch.labels[row][length:])
        read = batch.ids[[row], :length]
        told = {"decoder_input_ids": read[:, :1]} if marian else {}
        with torch.no_grad():
            said = theirs(read, output_attentions=True, **told)
        wanted = torch.stack(said.encoder_attentions if marian else said.attentions)
        found = batch.trace.weights(stack)[:, [row]]
        torch.testing.assert_close(found[..., :length, :length], wanted, atol=1e-5, rtol=1e-4)
        assert (found[..., :length, length:] == 0).all()
    if marian:
        run = model.generate(TEXTS[1], max_new_tokens=5, beams=2)
        assert (run.source_labels[-1], run.labels[0]) == ("</s>", "<pad>")
        assert not run.text.startswith(" ")
        assert model.translate_batch(TEXTS, max_new_tokens=5).target_padding[:, 0].all()
    elif model.config.family != "encoder":
        assert 1 <= len(model.generate(TEXTS[1], max_new_tokens=5).steps) <= 5
    else:
        assert len(model.fill("The [MASK] is sleeping", 3).guesses[0]) == 3
