"""A model's fixed sample of text, and what the network, intact or altered, makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from transformer.inference.readers import pad
from transformer.model.changes import Changes, changes_of
from transformer.model.interventions import BREAKS, Break, Intervention, breaks_of
from transformer.model.transformer import EncoderDecoder

if TYPE_CHECKING:
    from transformer.inference.model import Model

MAX_TEXTS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Texts that the model was not trained on: (text,), or (source, target) for a translator."""

    about: str
    texts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Broken:
    """The network without one idea: what is missing (None = intact), why that matters, its loss.

    loss: nats a token over the model's sample; None where it has none.
    """

    what: str | None
    why: str
    loss: float | None


def sample_of(content: object, family: str) -> Sample:
    """From JSON: {"about": ..., "texts": [text, ...]}, or [[source, target], ...] for a translator.

    Raises ValueError for anything else.
    """
    width = 2 if family == "encoder-decoder" else 1
    given = content.get("texts") if isinstance(content, dict) else None
    rows = [[row] if isinstance(row, str) else row for row in given or () if row]
    good = all(
        isinstance(row, list) and len(row) == width and all(isinstance(t, str) and t for t in row)
        for row in rows
    )
    if not isinstance(given, list) or not good or not 1 <= len(rows) <= MAX_TEXTS:
        what = "[source, target] pairs" if width == 2 else "texts"
        raise ValueError(f"a sample must hold from 1 to {MAX_TEXTS} {what} under 'texts'")
    assert isinstance(content, dict)
    return Sample(about=str(content.get("about", "")), texts=tuple(map(tuple, rows)))


@torch.inference_mode()
def sample_loss(model: Model, interventions: Sequence[Intervention] = ()) -> float | None:
    """Nats a token, end tokens included, over the model's sample; None where it has none.

    Texts longer than the network reads are cut. Raises ValueError for what it does not have.
    """
    if model.sample is None:
        return None
    changes = changes_of(interventions, model.config)
    tokenizer, network = model.tokenizer, model.generator_network
    targets = tokenizer.encode_batch([texts[-1] for texts in model.sample.texts])
    first = tokenizer.start_id if isinstance(network, EncoderDecoder) else tokenizer.end_id
    rows = [[first, *ids, tokenizer.end_id][: model.config.max_len + 1] for ids in targets]
    ids = pad(rows, tokenizer.padding_id).to(network.device)
    lengths = torch.tensor([len(row) - 1 for row in rows], device=network.device)
    real = torch.arange(ids.shape[1] - 1, device=network.device) < lengths[:, None]
    if isinstance(network, EncoderDecoder):
        sources = tokenizer.encode_batch([texts[0] for texts in model.sample.texts])
        cut = [[*ids[: model.config.max_len - 1], tokenizer.end_id] for ids in sources]
        source = pad(cut, tokenizer.padding_id).to(network.device)
        logits = network(source, ids[:, :-1], where=real, changes=changes)
    else:
        logits = network(ids[:, :-1], where=real, changes=changes or Changes())
    return F.cross_entropy(logits.float(), ids[:, 1:][real]).item()


def broken(model: Model) -> list[Broken]:
    """The intact network, then each switch that it has, with its loss on the sample."""
    found = [Broken(what=None, why="The network as it was trained.", loss=sample_loss(model))]
    for what in breaks_of(model.config):
        loss = sample_loss(model, [Break(what)])
        found.append(Broken(what=what, why=BREAKS[what], loss=loss))
    return found
