"""The networks that the generation benchmark reads, and the text that they go on with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as BPETokenizer
from tokenizers import decoders, models, pre_tokenizers
from torch import Tensor

from transformer import Tokenizer
from transformer.model.transformer import DecoderOnly
from transformer.tokenizer import SPECIALS

PROMPT = "Once upon a time"  # 16 bytes, a token each
N_PROMPT = len(PROMPT)
N_LONG_PROMPT = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Sizes of a decoder-only network, and how many tokens it generates.

    kind: one of KINDS, by the name of its config.json. stored: what its weights are stored as.
    """

    n_layers: int
    n_heads: int
    d_model: int
    vocab_size: int
    max_len: int
    kind: str = "gpt2"
    d_ff: int | None = None  # 4 d_model
    n_key_heads: int | None = None  # n_heads
    head_size: int | None = None  # d_model / n_heads
    stored: torch.dtype = torch.float32
    n_new: int = 64
    n_long: int = 256  # tokens of the text whose cost is compared with that of a short one

    def __str__(self) -> str:
        sizes = f"{self.n_layers} x {self.n_heads} x {self.d_model}"
        groups = f", keys in {self.n_key_heads} groups" if self.n_key_heads else ""
        kind = KINDS[self.kind] + ", " if self.kind != "gpt2" else ""
        stored = "" if self.stored == torch.float32 else f", {str(self.stored)[6:]}"
        return f"{kind}{sizes}{groups}, vocabulary {self.vocab_size:,}{stored}"

    @property
    def reads_prompts(self) -> bool:
        """Whether a prompt of N_LONG_PROMPT tokens and one more fit."""
        return self.max_len > N_LONG_PROMPT


KINDS = {"gpt2": "GPT-2", "llama": "Llama", "qwen2": "Qwen 2.5", "gemma3_text": "Gemma 3"}
SHAPES = {
    "S": Shape(n_layers=6, n_heads=8, d_model=256, vocab_size=4096, max_len=512),
    "G": Shape(n_layers=12, n_heads=12, d_model=768, vocab_size=50257, max_len=1024),
    "L": Shape(
        kind="llama", n_layers=16, n_heads=15, n_key_heads=5, d_model=960, d_ff=2560,
        vocab_size=49152, max_len=1024, stored=torch.bfloat16,
    ),
    "Q": Shape(  # Qwen2.5 0.5B
        kind="qwen2", n_layers=24, n_heads=14, n_key_heads=2, d_model=896, d_ff=4864,
        vocab_size=151_936, max_len=1024, stored=torch.bfloat16,
    ),
    "M": Shape(  # Gemma 3 270M
        kind="gemma3_text", n_layers=18, n_heads=4, n_key_heads=1, head_size=256, d_model=640,
        d_ff=2048, vocab_size=262_144, max_len=1024, stored=torch.bfloat16,
    ),
}  # fmt: skip
QUICK_SHAPES = {
    "quick": Shape(
        n_layers=2, n_heads=2, d_model=32, vocab_size=300, max_len=96, n_new=8, n_long=80
    ),
    "quick-gemma": Shape(
        kind="gemma3_text", n_layers=2, n_heads=6, n_key_heads=2, d_model=48, d_ff=80,
        vocab_size=300, max_len=96, n_new=8, n_long=80, stored=torch.bfloat16,
    ),
}  # fmt: skip


def write(folder: Path, shape: Shape) -> None:
    """A checkpoint with drawn weights, as transformers saves it; the head is tied."""
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    d_ff = shape.d_ff or 4 * shape.d_model
    common: dict[str, Any] = dict(
        vocab_size=shape.vocab_size, bos_token_id=None, eos_token_id=None, tie_word_embeddings=True
    )
    if shape.kind == "gpt2":
        common |= dict(
            n_positions=shape.max_len, n_embd=shape.d_model, n_layer=shape.n_layers,
            n_head=shape.n_heads, n_inner=d_ff, activation_function="gelu",
        )  # fmt: skip
    else:
        common |= dict(
            max_position_embeddings=shape.max_len, hidden_size=shape.d_model,
            num_hidden_layers=shape.n_layers, num_attention_heads=shape.n_heads,
            num_key_value_heads=shape.n_key_heads, intermediate_size=d_ff,
            head_dim=shape.head_size or shape.d_model // shape.n_heads,
        )  # fmt: skip
    network = AutoModelForCausalLM.from_config(AutoConfig.for_model(shape.kind, **common))
    draw_weights(network)
    network.to(shape.stored).save_pretrained(folder)
    byte_tokenizer(shape.vocab_size).save(folder / "tokenizer.json")


def draw_weights(network: Any) -> None:
    """Fill in weights whose attention is uneven and whose likeliest token changes.

    The biases of attention and norms stay zero, which is what x-transformers can hold, so that
    every tool reads the same network. The end token's embedding is zero and so its logit: some
    other token is always likelier, and no text ends early.
    """
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(_spread(name, noise))
        network.get_input_embeddings().weight[SPECIALS.index("<|endoftext|>")] = 0.0


def _spread(name: str, noise: Tensor) -> Tensor:
    if noise.dim() == 2:
        embeds = any(part in name for part in ("wte", "wpe", "embed_tokens"))
        wide = noise.shape[0 if "c_" in name else 1]  # GPT-2 keeps its matrices (in, out)
        return noise * (0.05 if embeds else 2 * wide**-0.5)
    if name.endswith("weight"):  # a norm's
        return 1 + 0.2 * noise
    return 0.2 * noise if "mlp." in name else torch.zeros_like(noise)


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
