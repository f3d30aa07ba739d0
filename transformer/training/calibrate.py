"""Temperature scaling: make a language model's confidence match its accuracy.

A network that has seen its text many times is over-confident on other text. One number corrects
that: the temperature by which all logits are divided, fitted on text held out from training and
folded into the weights of the last norm, so that nothing else needs to know of it.
Source: Guo et al. 2017, arXiv 1706.04599.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F

from transformer import checkpoint
from transformer.checks import shortened
from transformer.inference.model import Model
from transformer.model.transformer import DecoderOnly
from transformer.training.data import Example, check_folder, encode_documents
from transformer.training.updates import predictions

LOWEST, HIGHEST = 0.5, 2.0  # temperatures that are tried
AT_ONCE = 16  # documents


@torch.inference_mode()
def fit_temperature(model: Model, documents: Sequence[str]) -> float:
    """The temperature at which the documents, each read alone, cost the fewest nats.

    A document longer than the model reads counts with its beginning. Raises ValueError for a model
    that is not decoder-only, or no documents.
    """
    if model.config.family != "decoder":
        raise ValueError(f"only a decoder-only model is calibrated; {model.name} is not one")
    if not documents:
        raise ValueError("calibrating needs at least one document; got none")
    limit = model.config.max_len + 1
    encoded = encode_documents(model.tokenizer, documents)
    rows = [Example(row[:limit]) for row in encoded if len(row) > 1]
    if not rows:
        raise ValueError("the documents are too short: no token is predicted from others")
    parts = [
        predictions(model.network, rows[start : start + AT_ONCE], model.tokenizer.padding_id)
        for start in range(0, len(rows), AT_ONCE)
    ]

    def nats(temperature: float) -> float:
        return sum(
            float(F.cross_entropy(logits.float() / temperature, wanted, reduction="sum"))
            for logits, wanted, _ in parts
        )

    low, high = LOWEST, HIGHEST  # nats have one minimum: a third is cut off each time
    while high - low > 1e-3:
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if nats(left) < nats(right) else (left, high)
    return (low + high) / 2


def fold_temperature(model: Model, temperature: float) -> None:
    """Divide all logits by a temperature, in the weights of the last norm (and the head's bias).

    Raises ValueError for a model without a last norm, or a temperature that is not above 0.
    """
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be a number above 0; got {shortened(temperature)}")
    network = model.network
    if not isinstance(network, DecoderOnly) or network.decoder.norm is None:
        raise ValueError(f"{model.name} has no last norm to fold a temperature into")
    with torch.no_grad():
        for parameter in network.decoder.norm.parameters():  # its scale, and its shift
            parameter.div_(temperature)
        if network.head.bias is not None:
            network.head.bias.div_(temperature)


def calibrate(model: Model, documents: Sequence[str], out: Path) -> float:
    """Fit, fold and write the checkpoint to out; returns the temperature."""
    check_folder("--out", out)
    temperature = fit_temperature(model, documents)
    fold_temperature(model, temperature)
    told = {"calibration": {"temperature": round(temperature, 4), "documents": len(documents)}}
    line = (
        "\n## Calibration\n\n"
        f"All logits are divided by {temperature:.3f}, fitted on {len(documents)} held-out "
        "documents and folded into the last norm.\n"
    )
    checkpoint.save(
        out,
        model.network,
        model.config,
        model.tokenizer,
        dtype="float16",
        metadata=(model.metadata or {}) | told,
        card=model.card + line,
    )
    return temperature
