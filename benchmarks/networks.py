"""The networks that the generation benchmark reads, and the text that they go on with."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer as BPETokenizer
from tokenizers import decoders, models, pre_tokenizers
from torch import Tensor

from transformer import Model, ModelConfig, Tokenizer, build_transformer, checkpoint, load
from transformer.model.presets import preset
from transformer.model.transformer import DecoderOnly
from transformer.tokenizer import SPECIALS

PROMPT = "Once upon a tim"  # 15 bytes: with the token that begins a text, 16 tokens
N_PROMPT = len(PROMPT) + 1
N_LONG_PROMPT = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Sizes of a decoder-only network, and the tokens that it is asked for.

    kind: a preset. stored: what its weights are stored as.
    """

    n_layers: int
    n_heads: int
    d_model: int
    vocab_size: int
    max_len: int
    kind: str = "gpt"
    d_ff: int | None = None  # 4 d_model
    n_key_heads: int | None = None  # n_heads
    stored: torch.dtype = torch.float32
    n_new: int = 64
    n_long: int = 256  # tokens of the text whose cost is compared with that of a short one

    def __str__(self) -> str:
        sizes = f"{self.n_layers} x {self.n_heads} x {self.d_model}"
        groups = f", keys in {self.n_key_heads} groups" if self.n_key_heads else ""
        kind = "" if self.kind == "gpt" else f"{self.kind.capitalize()}, "
        stored = "" if self.stored == torch.float32 else f", {str(self.stored)[6:]}"
        return f"{kind}{sizes}{groups}, vocabulary {self.vocab_size:,}{stored}"

    @property
    def config(self) -> ModelConfig:
        """A GPT-2 or a Llama of these sizes."""
        return preset(
            self.kind, vocab_size=self.vocab_size, d_model=self.d_model, n_heads=self.n_heads,
            n_layers=self.n_layers, d_ff=self.d_ff or 4 * self.d_model, max_len=self.max_len,
            n_key_heads=self.n_key_heads, tie_embeddings=True,
        )  # fmt: skip

    @property
    def reads_prompts(self) -> bool:
        """Whether a prompt of N_LONG_PROMPT tokens and one more fit."""
        return self.max_len > N_LONG_PROMPT


SHAPES = {
    "S": Shape(n_layers=6, n_heads=8, d_model=256, vocab_size=4096, max_len=512),
    "G": Shape(n_layers=12, n_heads=12, d_model=768, vocab_size=50257, max_len=1024),
    "L": Shape(
        kind="llama", n_layers=16, n_heads=15, n_key_heads=5, d_model=960, d_ff=2560,
        vocab_size=49152, max_len=1024, stored=torch.bfloat16,
    ),
}  # fmt: skip
QUICK_SHAPES = {
    "quick": Shape(
        n_layers=2, n_heads=2, d_model=32, vocab_size=300, max_len=96, n_new=8, n_long=80
    ),
    "quick-llama": Shape(
        kind="llama", n_layers=2, n_heads=6, n_key_heads=2, d_model=48, d_ff=80, vocab_size=300,
        max_len=96, n_new=8, n_long=80, stored=torch.bfloat16,
    ),
}  # fmt: skip


def load_model(shape: Shape, engine: str = "auto") -> Model:
    """A model with drawn weights, written to a folder and loaded from it as a user's is.

    engine: what generates, as in `transformer.load`.
    """
    network = build_transformer(shape.config)
    assert isinstance(network, DecoderOnly)
    draw_weights(network)
    network.to(shape.stored).float()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = byte_tokenizer(shape.vocab_size)
        stored = str(shape.stored).removeprefix("torch.")
        as_stored = {} if stored == "float32" else {"stored_in": stored}
        checkpoint.save(
            Path(folder), network, shape.config, tokenizer, dtype=stored, metadata=as_stored
        )
        return load(folder, engine=engine)


def draw_weights(network: DecoderOnly, seed: int = 0) -> None:
    """Fill in weights whose attention is uneven and whose likeliest token changes.

    The biases of attention and norms stay zero, which is what x-transformers can hold, so that
    every tool reads the same network. The end token's embedding is zero and so its logit: some
    other token is always likelier, and no text ends early.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(_spread(name, noise))
        network.embedding.tokens.weight[SPECIALS.index("<|endoftext|>")] = 0.0


def _spread(name: str, noise: Tensor) -> Tensor:
    if name.endswith("norm.weight"):
        return 1 + 0.2 * noise
    if noise.dim() == 2:
        embeds = "embedding" in name or "head" in name
        return noise * (0.05 if embeds else 2 * noise.shape[1] ** -0.5)
    return 0.2 * noise if "feed_forward." in name else torch.zeros_like(noise)


def byte_tokenizer(vocab_size: int) -> Tokenizer:
    """Reads bytes, one token each; the tokens above them are pairs that no text is cut into.

    Below 259 tokens it reads characters, as a tokenizer of bytes would not know all of them.
    """
    characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    if vocab_size < len(SPECIALS) + len(characters):
        return Tokenizer.of_characters(characters[: vocab_size - len(SPECIALS)])
    pairs = (first + second for first in characters for second in characters)
    names = [*SPECIALS, *characters][:vocab_size]
    names += [pair for pair, _ in zip(pairs, range(vocab_size - len(names)), strict=False)]
    bpe = BPETokenizer(models.BPE({name: index for index, name in enumerate(names)}, []))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens(list(SPECIALS))
    return Tokenizer(bpe)


def decoder_bytes(network: DecoderOnly) -> int:
    """What a decode step must read of memory, in float32: all layers and the head; of the
    embeddings a row."""
    read = [*network.decoder.parameters(), *network.head.parameters()]
    return sum(4 * parameter.numel() for parameter in read)
