"""Other people's networks in our own modules, against transformers with the same random weights.

Five sizes a family, saved as transformers saves them and read by our adapters.
"""

from __future__ import annotations

import pytest
import torch
from families import FAMILIES, SIZES, V, made

from transformer import Trace
from transformer.checkpoint.adapters import network_of, values_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("size", range(len(SIZES)))
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_and_attention_are_those_of_transformers(family, size, tmp_path):
    theirs, trace = made(family, size, seed=size), Trace()
    theirs.save_pretrained(tmp_path)
    ours, _ = network_of(tmp_path, values_of(tmp_path), 96)
    theirs.set_attn_implementation("eager")
    lengths, padding = torch.tensor([17, 9, 13]), ours.config.padding_id
    real = torch.arange(17) < lengths[:, None]
    ids = torch.randint(3, V - 1, real.shape).where(real, padding)
    target, told, is_text = [], {}, {"is_text": real}
    if family == "marian":
        target = [torch.cat([torch.full((3, 1), padding), torch.randint(3, V - 1, (3, 6))], dim=1)]
        told, is_text = {"decoder_input_ids": target[0]}, {"src_is_text": real}
    with torch.no_grad():
        said = theirs(ids, attention_mask=real.long(), output_attentions=True, **told)
        found = ours(ids, *target, **is_text, trace=trace)
    text = torch.ones(3, 7, dtype=torch.bool) if target else real
    torch.testing.assert_close(found[text], said.logits[text], atol=1e-4, rtol=1e-4)
    for stack, kind in trace.kinds():
        name = "cross" if kind == "cross" else stack
        wanted = said[f"{name}_attentions" if target else "attentions"]
        rows = (real if stack == "encoder" else text)[None, :, None, :, None]
        weights = trace.weights(stack, kind) * rows
        torch.testing.assert_close(weights, torch.stack(wanted) * rows, atol=1e-5, rtol=1e-5)
