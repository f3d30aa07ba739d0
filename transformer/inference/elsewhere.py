"""Where another source would have a translator say something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from transformer.inference.run import Run
from transformer.model.transformer import EncoderDecoder

if TYPE_CHECKING:
    from transformer.inference.model import Model


@torch.inference_mode()
def most_changed(model: Model, run: Run, other: str) -> int:
    """The place of the run's own token that another source makes least likely, of all that the
    network predicted: ln p drops most there. Raises ValueError for a model without a source.
    """
    network = model.network
    if not isinstance(network, EncoderDecoder):
        raise ValueError(f"{model.name} reads no source: needed: an encoder-decoder")
    ids = list(run.ids[: run.config.max_len + 1])
    if len(ids) < 2:
        raise ValueError("the run has no token that the network predicted")

    def told(source: list[int]) -> Tensor:
        logits = network(
            torch.tensor([source], device=network.device),
            torch.tensor([ids[:-1]], device=network.device),
        )
        chosen = torch.tensor(ids[1:], device=network.device)[:, None]
        return logits[0].float().log_softmax(dim=-1).gather(-1, chosen)[:, 0]

    drop = told(list(run.source_ids)) - told(model.prepare(other).source)
    return 1 + int(drop.argmax())
