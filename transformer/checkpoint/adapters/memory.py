"""Convert a network of transformers in memory to a Checkpoint."""

from __future__ import annotations

import weakref
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from transformer.checkpoint.adapters import (
    MAX_LEN,
    checkpoint_of,
    config_of,
    network_from,
    reasons,
    with_ids,
)
from transformer.checkpoint.adapters.families import text_part
from transformer.checkpoint.folder import Checkpoint, Network
from transformer.checkpoint.weight_files import plain_name

# How far results may differ, in standard deviations: in float32, and in a type that rounds.
_SAME, _SAME_ROUNDED = 0.02, 0.25


def from_memory(theirs: Any, tokenizer: Any, max_len: int = MAX_LEN) -> Checkpoint:
    """Convert a network and a tokenizer of transformers, whose weights are copied.

    Raises CheckpointError with the reason in one sentence, also for a network that computes
    something else than its weights say: one with hooks, or with modules that were replaced.
    """
    theirs = getattr(theirs, "_orig_mod", theirs)  # of a compiled network
    name = type(theirs).__name__
    special = theirs.generation_config.to_dict() if theirs.can_generate() else None
    values = text_part(theirs.config.to_dict() | {"architectures": [name]})
    values = with_ids(values, special)
    stored = {plain_name(key): x.detach().cpu().clone() for key, x in theirs.state_dict().items()}
    files = TemporaryDirectory()
    try:
        with reasons(name):
            tokenizer.save_pretrained(files.name)
            config = config_of(values, max_len, stored)
            network, dtypes = network_from(config, values, stored)
            _check_same_results(theirs, network)
            checkpoint = checkpoint_of(name, values, network, dtypes, Path(files.name))
    except BaseException:
        files.cleanup()
        raise
    weakref.finalize(checkpoint.tokenizer, files.cleanup)  # which may copy them when saved
    return checkpoint


@torch.no_grad()
def _check_same_results(theirs: Any, network: Network) -> None:
    """Raise ValueError if the network in memory gives other results than the one made from it."""
    config, training = network.config, [(part, part.training) for part in theirs.modules()]
    fill = {config.padding_id, theirs.config.get_text_config().pad_token_id}
    few = [index for index in range(3, config.vocab_size) if index not in fill]
    ids = torch.tensor([few[:: max(1, len(few) // 4)][:4]])[:, : config.max_len]
    both = config.family == "encoder-decoder"
    target = ids[:, :1]
    if both and config.labels:  # it looks for the text's end in as many places
        ids[0, -1], target = theirs.config.eos_token_id, ids
    inputs = {"input_ids": ids} | ({"decoder_input_ids": target} if both else {})
    try:
        said = theirs.eval()(**{name: x.to(theirs.device) for name, x in inputs.items()})
    finally:
        for part, was in training:
            part.training = was
    wanted = _results_of(said).float().cpu()
    results = network(*inputs.values()).view(wanted.shape)
    differs = float((results - wanted).norm() / (wanted.std() * wanted.numel() ** 0.5 + 1e-9))
    allowed = _SAME if theirs.dtype == torch.float32 else _SAME_ROUNDED
    if not differs < allowed:
        raise ValueError(
            f"its results differ by {differs:.0%} from those of its weights in this project's "
            "network; it has hooks, a replaced module, or an option that is not read"
        )


def _results_of(said: Any) -> Tensor:
    """The logits in an output of transformers, or its last hidden states."""
    if hasattr(said, "start_logits"):
        return torch.stack([said.start_logits, said.end_logits], dim=-1)
    names = ("logits", "prediction_logits", "last_hidden_state")
    results: Tensor = next(said[name] for name in names if name in said)
    return results
