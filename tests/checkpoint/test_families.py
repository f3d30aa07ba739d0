"""Other people's networks in our own modules, against transformers with the same random weights.

Five sizes a family, saved as transformers saves them and read by our adapters.
"""

from __future__ import annotations

import pytest
import torch
from families import FAMILIES, SIZES, V, made

from transformer import Trace
from transformer.checkpoint.adapters import network_of, values_of
from transformer.model.transformer import EncoderDecoder

pytestmark = pytest.mark.filterwarnings("ignore")
MAX_LEN = 96


@pytest.fixture(scope="module", params=[(f, s) for f in FAMILIES for s in range(len(SIZES))],
                ids=lambda made: f"{made[0]}-{made[1]}")  # fmt: skip
def pair(request, tmp_path_factory):
    """(ours, theirs): the same network, read and as it was saved."""
    theirs = made(*request.param, seed=request.param[1])
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    ours, _ = network_of(folder, values_of(folder), MAX_LEN)
    theirs.set_attn_implementation("eager")
    return ours, theirs


def texts(ours, *lengths):
    """Random ids, none of them special, padded to one length: (ids, which are text)."""
    torch.manual_seed(3)
    width, padding = max(lengths), ours.config.padding_id
    ids = torch.randint(3, V - 1, (len(lengths), width))
    real = torch.ones_like(ids, dtype=torch.bool)
    for row, length in enumerate(lengths):
        ids[row, length:], real[row, length:] = padding, False
    return ids, real


def both(pair, ids, real, **settings):
    """(our logits, our trace, what transformers says), of the same ids."""
    ours, theirs = pair
    trace = Trace()
    settings |= dict(output_attentions=theirs.config._attn_implementation == "eager")
    with torch.no_grad():
        if isinstance(ours, EncoderDecoder):
            start = torch.full((len(ids), 1), ours.config.padding_id)
            target = torch.cat([start, torch.randint(3, V - 1, (len(ids), 6))], dim=1)
            found = ours(ids, target, trace=trace)
            said = theirs(ids, attention_mask=real.long(), decoder_input_ids=target, **settings)
            return found, trace, said
        said = theirs(ids, attention_mask=real.long(), **settings)
        return ours(ids, trace=trace), trace, said


def close(got, wanted, room):
    torch.testing.assert_close(got, wanted, atol=room, rtol=room)


def test_logits_and_attention_are_those_of_transformers(pair):
    ours, _ = pair
    ids, real = texts(ours, 17, 9, 13)
    found, trace, said = both(pair, ids, real)
    if isinstance(ours, EncoderDecoder):
        close(found, said.logits, 1e-4)
        for stack, kind, theirs in (
            ("encoder", "self", said.encoder_attentions),
            ("decoder", "self", said.decoder_attentions),
            ("decoder", "cross", said.cross_attentions),
        ):
            there = real if stack == "encoder" else torch.ones(len(ids), 7, dtype=torch.bool)
            rows = there[None, :, None, :, None]
            close(trace.weights(stack, kind) * rows, torch.stack(theirs) * rows, 1e-5)
        return
    close(found[real], said.logits[real], 1e-4)
    rows = real[None, :, None, :, None]
    (stack,) = {site.stack for site in trace.sites}
    close(trace.weights(stack) * rows, torch.stack(said.attentions) * rows, 1e-5)
