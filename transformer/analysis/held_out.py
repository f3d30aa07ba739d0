"""The cost of each component: the loss on a held-out sample, and the text, without it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from transformer.analysis.ablation import generated
from transformer.inference.loaded import LoadedModel
from transformer.inference.logit_sources import pad, text_in
from transformer.interventions.breaks import breaks_of
from transformer.interventions.descriptions import Break, Intervention
from transformer.interventions.hooks import hooks_of
from transformer.model.hooks import unchanged
from transformer.model.transformer import EncoderDecoder
from transformer.runs.request import Request
from transformer.runs.run import Run

BROKEN_TOKENS = 24  # generated to show the effect of a missing component


@torch.no_grad()
def sample_loss(model: LoadedModel, interventions: Sequence[Intervention] = ()) -> float | None:
    """Nats a token, end tokens included, over the model's sample; None where it has none.

    Texts longer than the network reads are cut. Raises ValueError for an intervention that the
    network does not support.
    """
    if model.sample is None:
        return None
    hooks = hooks_of(interventions, model.config)
    tokenizer, network = model.tokenizer, model.generator_network
    written = [texts[-1] for texts in model.sample.texts]
    if isinstance(network, EncoderDecoder):
        targets = tokenizer.encode_targets(written)
        whole = [[tokenizer.start_id, *ids, tokenizer.end_id] for ids in targets]
    else:
        whole = [tokenizer.document(ids) for ids in tokenizer.encode_batch(written)]
    rows = [row[: model.config.output_max_len + 1] for row in whole]
    ids = pad(rows, tokenizer.padding_id).to(network.device)
    lengths = torch.tensor([len(row) - 1 for row in rows], device=network.device)
    real = torch.arange(ids.shape[1] - 1, device=network.device) < lengths[:, None]
    if isinstance(network, EncoderDecoder):
        sources = tokenizer.encode_batch([texts[0] for texts in model.sample.texts])
        cut = [[*ids[: model.config.max_len - 1], tokenizer.end_id] for ids in sources]
        source = pad(cut, tokenizer.padding_id).to(network.device)
        is_text = dict(src_is_text=text_in(cut, source.device), tgt_is_text=real)
        logits = network(source, ids[:, :-1], where=real, hooks=hooks, **is_text)
    else:
        logits = network(ids[:, :-1], is_text=real, where=real, hooks=hooks or [unchanged])
    return F.cross_entropy(logits.float(), ids[:, 1:][real]).item()


def losses_without(model: LoadedModel) -> dict[str | None, float | None]:
    """The loss on the model's sample, intact (None) and without each component that it has."""
    losses = {None: sample_loss(model)}
    return losses | {what: sample_loss(model, [Break(what)]) for what in breaks_of(model.config)}


def broken_ids(model: LoadedModel, run: Run, what: str | None) -> tuple[int, ...]:
    """Ids of the run's prompt and its greedy continuation without one component (None: intact)."""
    missing = [] if what is None else [Break(what)]
    request = Request(text=run.request.text, max_new_tokens=BROKEN_TOKENS, interventions=missing)
    return generated(model, request)
