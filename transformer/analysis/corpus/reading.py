"""The heads in one text: the page's metrics, kinds of tokens, the cost of ablation."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from transformer.analysis.corpus.summary import UNIT, HeadSums, MetricSums, Summary
from transformer.analysis.head_measures import cells_by_name, measure, names_of, repeats_of
from transformer.analysis.text_before import MAX_WEIGHTS, in_parts
from transformer.inference.model import Model
from transformer.interventions.hooks import ablated_one_by_one
from transformer.model.hooks import unchanged
from transformer.model.sites import sites_of
from transformer.model.transformer import EncoderDecoder, EncoderOnly
from transformer.runs.head_data import records_of
from transformer.runs.run import Run
from transformer.tokenizer import Tokenizer

KINDS = ("special", "word", "inside a word", "number", "punctuation", "white space")
MAX_NEW_TOKENS = 60  # of a translation
HIDDEN_EVERY = 7  # token of a text, where an encoder alone is asked: some 15 %, as it was trained


def kinds_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """Which of KINDS each token of a text is, by what it adds to the text; a word goes on in a
    token without a space before it, after one that ends in a letter."""
    found, before = [], ""
    for index in ids:
        text = tokenizer.to_bytes([index]).decode("utf-8", errors="surrogateescape")
        first = text.lstrip(" ")[:1]
        if not text:
            kind = "special"
        elif not first.strip():
            kind = "white space"
        elif first.isdigit():
            kind = "number"
        elif _is_letter(first):
            goes_on = not text.startswith(" ") and _is_letter(before[-1:])
            kind = "inside a word" if goes_on else "word"
        else:
            kind = "punctuation"
        found.append(KINDS.index(kind))
        before = text
    return found


def _is_letter(character: str) -> bool:
    """Whether it belongs to a word: letters, marks on letters, and parts of a character."""
    if not character:
        return False
    is_part = "\udc80" <= character <= "\udcff"
    return is_part or character.isalpha() or unicodedata.category(character)[0] == "M"


def read(model: Model, text: str) -> Run:
    """The text through the network; a translator writes its own translation.

    Raises ValueError for a text that it cannot read whole.
    """
    if model.config.family == "encoder-decoder":
        return model.generate(text, max_new_tokens=MAX_NEW_TOKENS, temperature=0)
    run = model.trace(text)
    assert isinstance(run, Run)
    if run.trace_start:
        raise ValueError("the text is longer than the network reads")
    return run


@torch.no_grad()
def summary_of(model: Model, text: str, index: int, *, ablate: bool = False) -> Summary:
    """The summary of one text, number `index` of the corpus.

    ablate: also what ablating each head alone adds to the loss; that of an encoder alone is at
    hidden tokens, and not known where its tokenizer hides none. A text that the network cannot
    read whole counts as left out.
    """
    try:
        run = read(model, text)
    except ValueError:
        return Summary.nothing(n_left_out=1)
    costs = _costs(model, run, index) if ablate else {}
    kinds = {}
    for stack, kind in dict.fromkeys((site.stack, site.kind) for site in sites_of(run.config)):
        cost = costs.get((stack, kind))
        kinds[f"{stack}.{kind}"] = _heads(model.tokenizer, run, stack, kind, index, cost)
    return Summary(1, len(run.ids) + len(run.source_ids), 0, kinds)


def _heads(
    tokenizer: Tokenizer, run: Run, stack: str, kind: str, index: int, cost: Any
) -> HeadSums:
    records = records_of(run, stack, kind)
    masks = torch.stack([record.allowed[0].cpu() for record in records])
    weights = torch.stack([record.pattern[0].cpu() for record in records])  # (L, H, Tq, Tk)
    names = names_of(kind, masks.any(dim=0))
    tokens, layers = run.queries(stack) if kind == "self" else (), []
    for layer, allowed in zip(weights, masks, strict=True):
        cells = cells_by_name(names, allowed, repeats_of(tokens, allowed))
        layers.append(measure(layer, allowed, names, cells))
    values = {
        name: torch.stack([layer[name] for layer in layers]).double().numpy() for name in names
    }
    from_kinds = kinds_of(tokenizer, _ids(run, stack)[: weights.shape[2]])
    read_by = "encoder" if kind == "cross" else stack
    to_kinds = kinds_of(tokenizer, _ids(run, read_by)[: weights.shape[3]])
    whose, read_kind = np.eye(len(KINDS))[from_kinds], np.eye(len(KINDS))[to_kinds]
    given = np.einsum("lhqk,qa,kb->lhab", weights.double().numpy(), whose, read_kind, optimize=True)
    none = np.zeros(weights.shape[:2])
    return HeadSums(
        metrics={name: MetricSums.of(name, values[name], index) for name in names},
        read=_whole(given),
        rows=whose.sum(axis=0).astype(np.int64),
        cost=_whole(none if cost is None else cost),
        n_costs=np.asarray(int(cost is not None)),
    )


def _ids(run: Run, stack: str) -> tuple[int, ...]:
    """Ids of the tokens that a stack read."""
    is_source = stack == "encoder" and run.config.family == "encoder-decoder"
    return run.source_ids if is_source else run.ids[run.trace_start :]


def _whole(numbers: Any) -> Any:
    return np.rint(numbers * UNIT).astype(np.int64)


def _costs(model: Model, run: Run, index: int) -> dict[tuple[str, str], Any]:
    """By (stack, kind), (L, H): nats per token that the loss of the run's own text rises by."""
    ids = torch.tensor([run.ids[: model.config.output_max_len]], device=model.device)
    source = torch.tensor([run.source_ids], device=model.device)
    first = 1 + index % HIDDEN_EVERY
    is_text = [not model.tokenizer.is_special(token) for token in run.ids]
    places = torch.tensor(
        [n for n in range(first, ids.shape[1], HIDDEN_EVERY) if is_text[n]], device="cpu"
    )
    network, mask = model.network, model.tokenizer.mask_id
    nothing_hidden = isinstance(network, EncoderOnly) and (mask is None or len(places) == 0)
    if ids.shape[1] < 2 or nothing_hidden:
        return {}

    def losses(hook: Any, n_rows: int) -> torch.Tensor:
        rows = ids.expand(n_rows, -1)
        wanted = rows[:, 1:]
        if isinstance(network, EncoderOnly):
            assert mask is not None
            read = rows.clone()
            read[:, places], wanted = mask, rows[:, places]
            logits = network(read, hooks=[hook])[:, places]
        elif isinstance(network, EncoderDecoder):
            logits = network(source.expand(n_rows, -1), rows[:, :-1], hooks=[hook])
        else:
            logits = network(rows[:, :-1], hooks=[hook])
        return F.cross_entropy(logits.float().transpose(1, 2), wanted, reduction="none").mean(dim=1)

    intact = losses(unchanged, 1)
    most = max(1, MAX_WEIGHTS // (model.config.n_heads * max(ids.shape[1], source.shape[1]) ** 2))
    found = {}
    sites = sites_of(run.config)
    for stack, kind in dict.fromkeys((site.stack, site.kind) for site in sites):
        own = [site for site in sites if (site.stack, site.kind) == (stack, kind)]
        heads = [(site, head) for site in own for head in range(run.config.n_heads)]
        after = [
            losses(ablated_one_by_one(run.config, part, "zero"), len(part))
            for part in in_parts(heads, most)
        ]
        change = (torch.cat(after) - intact).view(len(own), -1)
        found[stack, kind] = change.cpu().double().numpy()
    return found
