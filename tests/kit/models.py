"""Small networks for tests, with random weights that give varied output, and what they read."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as BPETokenizer
from torch import Tensor, nn

from transformer import Model, ModelConfig, Tokenizer, build_transformer, checkpoint
from transformer.inference.generation import generate
from transformer.tokenizer import SPECIALS

M = TypeVar("M", bound=nn.Module)
ONE_FILE = "model-00001-of-00001.safetensors"
# Sizes that all differ, so that a swapped axis cannot pass.
V, C, H, L, FF, T_MAX = 13, 12, 3, 2, 20, 9

# Changes that make a preset work with heads of 8 features.
EIGHT = {
    "llama": dict(n_key_heads=1),
    "qwen3": dict(n_key_heads=1, head_size=8),
    "neox": dict(rotary_size=4),
}


def config(family: str = "decoder", **changes: Any) -> ModelConfig:
    """A configuration of the sizes above; 0 is padding."""
    sizes = dict(vocab_size=V, d_model=C, n_heads=H, n_layers=L, d_ff=FF, max_len=T_MAX)
    return ModelConfig(family=family, **{"padding_id": 0, **sizes, **changes})


def network(family: str = "decoder", **changes: Any) -> Any:
    """A network of `config`, its weights spread."""
    return spread(build_transformer(config(family, **changes))).eval()


def ids(*shape: int, vocab_size: int = V) -> Tensor:
    """Random ids, none of them padding."""
    return torch.randint(1, vocab_size, shape)


def tiny(name: str, family: str, tokenizer: Tokenizer, seed: int = 0, **changes: Any) -> Model:
    """A model of 2 layers (each stack) x 2 heads x 16 features that reads 24 tokens."""
    sizes = dict(d_model=16, n_heads=2, n_layers=2, d_ff=48, max_len=24)
    known = dict(vocab_size=tokenizer.vocab_size, padding_id=tokenizer.padding_id)
    return model_of(name, ModelConfig(family=family, **known, **sizes | changes), tokenizer, seed)


def model_of(name: str, config: ModelConfig, tokenizer: Tokenizer, seed: int = 0) -> Model:
    """A Model with random weights, equal for equal seeds."""
    network = spread(build_transformer(config), seed)
    network.eval().requires_grad_(False)
    return Model(name=name, config=config, tokenizer=tokenizer, network=network)


def spread(network: M, seed: int = 0) -> M:
    """Draw weights wide enough that attention is uneven and the likeliest token changes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            middle = 1.0 if "norm.weight" in name else 0.0
            wide = 0.2 if "norm" in name or "bias" in name else 0.5
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(middle + wide * noise)
    return network


def continued(network: Any, prompts: Sequence[Sequence[int]], **settings: Any) -> list[list[Any]]:
    """Generate from token ids: the steps of each row."""
    rows: list[list[Any]] = [[] for _ in prompts]
    for steps in generate(network, prompts, **{"max_new_tokens": 8, "end_ids": {2}, **settings}):
        for row, step in zip(rows, steps, strict=True):
            if step is not None:
                row.append(step)
    return rows


def tokens(rows: list[list[Any]]) -> list[list[int]]:
    return [[step.token for step in row] for row in rows]


def save_model(model: Model, path: Path, **settings: Any) -> None:
    """Write a model as a checkpoint folder; `settings` are those of checkpoint.save."""
    checkpoint.save(path, model.network, model.config, model.tokenizer, **settings)


def tokenizer_of(tokens: Sequence[str]) -> Tokenizer:
    """A tokenizer in which each of these texts is one token; all else is read byte by byte.

    The ids of the tokens are the last ones, in order.
    """
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    names = [as_bytes.pre_tokenize_str(token)[0][0] for token in tokens]
    vocabulary = [*SPECIALS, *sorted(pre_tokenizers.ByteLevel.alphabet()), *names]
    bpe = BPETokenizer(
        models.BPE({name: at for at, name in enumerate(vocabulary)}, [], ignore_merges=True)
    )
    bpe.add_special_tokens(list(SPECIALS))
    either = "|".join(map(re.escape, sorted(tokens, key=len, reverse=True)))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(either), "isolated"), as_bytes]
    )
    bpe.decoder = decoders.ByteLevel()
    return Tokenizer(bpe)
