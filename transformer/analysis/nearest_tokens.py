"""The tokens whose vectors are nearest in direction to that of a token of a text."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from transformer.checks import check_whole
from transformer.inference.loaded import LoadedModel
from transformer.runs.run import Run

N_NEAREST = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class NearestTokens:
    """Tokens by the cosine between their row of the embedding table and that of the token at
    `position`, the largest first; that token itself is left out."""

    position: int
    label: str
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    cosines: tuple[float, ...]


@torch.no_grad()
def nearest_tokens(model: LoadedModel, run: Run, position: int) -> NearestTokens:
    """The N_NEAREST tokens of the vocabulary, by the table of the stack that reads the run's ids.

    Raises ValueError for a position that the run does not have.
    """
    position = check_whole("position", position, 0, len(run.ids) - 1)
    table = model.network.embeddings[model.network.last_stack.name].tokens.weight.float()
    own = run.ids[position]
    cosines = F.cosine_similarity(table, table[own], dim=-1).cpu()
    cosines[own] = -torch.inf
    best = cosines.topk(min(N_NEAREST, len(cosines) - 1))
    ids = best.indices.tolist()
    return NearestTokens(
        position=position,
        label=run.labels[position],
        ids=tuple(ids),
        labels=tuple(model.tokenizer.labels(ids)),
        cosines=tuple(best.values.tolist()),
    )
