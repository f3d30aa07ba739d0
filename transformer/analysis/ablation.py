"""The effect of leaving out a part of the network: one head, or one component."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.analysis.text_before import TextBefore, altered, in_parts, token_asked
from transformer.checks import check_choice, check_whole
from transformer.inference import deadline
from transformer.inference.loaded import LoadedModel
from transformer.inference.logit_sources import pad, text_in
from transformer.inference.progress import progress_bar
from transformer.inference.stream import Stream
from transformer.interventions.breaks import breaks_of
from transformer.interventions.descriptions import ABLATED_BY, Break, Intervention
from transformer.interventions.hooks import ablated_one_by_one, hooks_of
from transformer.model.hooks import unchanged
from transformer.model.sites import Site, sites_of
from transformer.model.transformer import EncoderDecoder, EncoderOnly
from transformer.runs.request import Request
from transformer.runs.run import Run


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class HeadImportance:
    """The importance of each head alone for one token of a text.

    position: the token's position in the run's ids; target: its id. log_probability: the natural
    logarithm of its probability in the intact network. change: by (stack, kind), (L, H), what
    ablating that head adds to it.
    """

    position: int
    target: int
    log_probability: float
    change: dict[tuple[str, str], Tensor]

    def most(self) -> tuple[Site, int]:
        """The head, in any kind of attention, whose ablation changes it most, up or down."""
        stack, kind = max(
            self.change, key=lambda attention: float(self.change[attention].abs().max())
        )
        change = self.change[stack, kind].abs()
        layer, head = divmod(int(change.argmax()), change.shape[1])
        return Site(stack, layer, kind), head


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NextToken:
    """The next token after the same text, with and without interventions.

    target: the token at that position; ids: the K likeliest with or without them, in the intact
    network's order, and the target; intact, intervened: their probabilities, (K,).
    """

    position: int
    target: int
    ids: tuple[int, ...]
    intact: Tensor
    intervened: Tensor


@torch.no_grad()
def head_importance(
    model: LoadedModel, run: Run, position: int, by: str = "zero", *, progress: bool = True
) -> HeadImportance:
    """Ablate each head of the intact network in turn, and measure the token at `position` of the
    run's ids; at their end, the likeliest token that would follow.

    by: "zero" or "mean" (see Ablate). progress: whether a bar is shown on stderr. Raises ValueError
    for a token that nothing predicts.
    """
    check_choice("by", by, ABLATED_BY)
    text, position = TextBefore.of(model, run, position), int(position)
    intact = text.log_probabilities([unchanged])[0]
    target = token_asked(run, position, intact)
    before = intact[target]
    change, n_heads = {}, run.config.n_heads
    with progress_bar("heads", len(sites_of(run.config)) * n_heads, progress, "head") as bar:
        for kind in dict.fromkeys((site.stack, site.kind) for site in sites_of(run.config)):
            sites = [site for site in sites_of(run.config) if (site.stack, site.kind) == kind]
            rows = []
            for part in in_parts(list(product(sites, range(n_heads))), text.largest_batch):
                hook = ablated_one_by_one(run.config, part, by)
                rows.append(text.log_probabilities([hook], len(part))[:, target])
                bar.update(len(part))
            change[kind] = (torch.cat(rows) - before).view(len(sites), n_heads).cpu()
    return HeadImportance(
        position=position, target=target, log_probability=before.item(), change=change
    )


@torch.no_grad()
def next_token(model: LoadedModel, run: Run, position: int, n_kept: int = 8) -> NextToken:
    """The token at `position` of the run's ids, predicted with the run's interventions and without;
    at their end, the intact network's likeliest token.

    Raises ValueError for a token that nothing predicts.
    """
    text, position = TextBefore.of(model, run, position), int(position)
    n_kept = check_whole("n_kept", n_kept, 1, run.config.output_vocab_size)
    hooks = altered(model, run)
    intact = text.log_probabilities([unchanged])[0].exp()
    intervened = text.log_probabilities(hooks)[0].exp() if hooks else intact
    best = {*intact.topk(n_kept).indices.tolist(), *intervened.topk(n_kept).indices.tolist()}
    target = token_asked(run, position, intact)
    ids = sorted(best | {target}, key=lambda token: -intact[token].item())
    return NextToken(
        position=position,
        target=target,
        ids=tuple(ids),
        intact=intact[ids].cpu(),
        intervened=intervened[ids].cpu(),
    )


@torch.no_grad()
def log_probabilities_at(model: LoadedModel, run: Run, position: int) -> Tensor:
    """(V,) of the token at `position` of the run's ids, with the run's interventions; an encoder
    predicts it from the whole text. Raises ValueError for a token that nothing predicts."""
    is_encoder = isinstance(model.network, EncoderOnly)
    text = (TextBefore.up_to if is_encoder else TextBefore.of)(model, run, position)
    hooks = altered(model, run) or [unchanged]
    return text.log_probabilities(hooks)[0].cpu()


def intact_ids(model: LoadedModel, run: Run, forced: bool = True) -> tuple[int, ...]:
    """Ids of the text that the run's request gives without its interventions.

    forced False: without its forced tokens either.
    """
    tokens = run.request.forced_tokens if forced else ()
    return generated(
        model, dataclasses.replace(run.request, interventions=(), forced_tokens=tokens)
    )


def generated(model: LoadedModel, request: Request) -> tuple[int, ...]:
    """Ids of the text that a request gives; nothing is recorded.

    Raises ValueError if the deadline passes first.
    """
    stream = Stream(model, request)
    ids = (*stream.prompt_ids, *(step.token for step in stream))
    deadline.check()
    return ids


# ---- without a component ----

BROKEN_TOKENS = 24  # generated to show the effect of a missing component


@torch.no_grad()
def sample_loss(model: LoadedModel, interventions: Sequence[Intervention] = ()) -> float | None:
    """Nats per token, end tokens included, over the model's sample; None if it has no sample.

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


def broken_ids(
    model: LoadedModel, run: Run, missing: Sequence[Intervention] = ()
) -> tuple[int, ...]:
    """Ids of the run's prompt and its greedy continuation with these interventions alone."""
    request = run.request.greedy(max_new_tokens=BROKEN_TOKENS, interventions=missing)
    return generated(model, request)


@torch.no_grad()
def broken_guess(
    model: LoadedModel, run: Run, position: int, missing: Sequence[Intervention] = ()
) -> tuple[int, float]:
    """An encoder's likeliest id for the token at `position`, which is hidden from it, with these
    interventions alone; and its probability. Raises ValueError for a position outside the text.
    """
    text = TextBefore.up_to(model, run, position)
    if (mask := model.tokenizer.mask_id) is not None:
        text = dataclasses.replace(
            text, ids=(*text.ids[:position], mask, *text.ids[position + 1 :])
        )
    hooks = hooks_of(missing, model.config) or [unchanged]
    best = text.log_probabilities(hooks)[0].exp().max(dim=-1)
    return int(best.indices), float(best.values)
