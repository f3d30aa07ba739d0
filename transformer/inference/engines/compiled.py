"""More tokens by one call of `step.c`, straight from the network's own weights.

Weights that were stored as bfloat16 or float16 are read as such: a copy in half the bytes, of the
very same numbers, each multiplied in float32.

On two quiet cores a step of 6 x 8 x 256 took 0.17 ms, near the time of reading the weights from
memory.
"""

from __future__ import annotations

import copy
import ctypes
import sys
from collections.abc import Iterable, Sequence
from ctypes import byref, c_int

import torch
from torch import Tensor

from transformer.inference.engines import c_compiler
from transformer.inference.engines.buffers import Buffers
from transformer.inference.engines.description import Description
from transformer.inference.engines.engine import Engine, Greedy, TextReader
from transformer.inference.engines.kernels import TYPES
from transformer.inference.engines.step_layout import Text
from transformer.model.config import ModelConfig
from transformer.model.transformer import DecoderOnly, EncoderDecoder

PAGE_BYTES = 2**21
COLLAPSE = 25  # MADV_COLLAPSE of Linux 6.1: merges small pages into large ones at once
AHEAD, AHEAD_BYTES = 16, 2**29  # tokens of one call, and weights that it reads: some 50 ms
# The choices of a configuration whose arithmetic `step.c` has. A name added to a table of
# `transformer/model/` is not among them until the C code is extended.
SUPPORTED: dict[str, frozenset[str | bool]] = {
    "family": frozenset({"decoder", "encoder-decoder"}),
    "norm": frozenset({"pre", "post"}),
    "norm_kind": frozenset({"layer", "rms", "rms-plus-one"}),
    "positions": frozenset({"sinusoidal", "sinusoidal-halves", "learned", "rotary"}),
    "score_divisor": frozenset({"d_head"}),
    "shared_projection": frozenset({False}),
    "activation": frozenset({"relu", "gelu", "gelu-tanh", "silu"}),
}


class CompiledDecoder(Engine):
    """The decoder of a network as `step.c` reads it.

    Raises ValueError for weights that are not float32 on a CPU, RuntimeError without a C compiler.
    """

    name = "compiled"

    @classmethod
    def supports(cls, config: ModelConfig) -> bool:
        """See Engine."""
        return not _unsupported(config)

    @classmethod
    def missing(cls, network: DecoderOnly | EncoderDecoder) -> str | None:
        """See Engine."""
        if unsupported := _unsupported(network.config):
            return f"a network without {', '.join(unsupported)}"
        if c_compiler.compiled_step() is None:
            return "a C compiler, and none was found"
        plain = network.device.type == "cpu" and network.dtype == torch.float32
        return None if plain else "float32 weights on a CPU"

    def __init__(self, network: DecoderOnly | EncoderDecoder) -> None:
        step = c_compiler.compiled_step()
        if step is None:
            raise RuntimeError("no C compiler was found that compiles the fast decoder step")
        self._step = step
        super().__init__(network)

    def read_weights(self) -> Sequence[Tensor]:
        """See Engine."""
        self._described = Description(self.network, self._step.kernels)
        use_huge_pages(self._described.weights)
        return self._described.copied

    def reader(self, buffers: Buffers) -> TextReader:
        """See Engine."""
        return _CompiledText(copy.copy(self), buffers)  # which keeps the weights as read now

    def work(self, n_tokens: int, longest: int, threads: int) -> Tensor:
        """Scratch memory for n tokens with contexts up to `longest`; for one token its size does
        not depend on the number of threads."""
        return torch.empty(
            self._step.work_size(byref(self._described.network), n_tokens, longest, threads)
        )

    def read(self, text: Text, tokens: Sequence[int], position: int, threads: int) -> Tensor:
        """Logits (V,) after these tokens. Raises IndexError for one that the network lacks."""
        for n, token in enumerate(tokens):
            self._check(token, position + n)
        network = self._described.network
        logits, count = torch.empty(network.vocabulary), len(tokens)
        read = (c_int * count)(*tokens)
        self._step.read(
            byref(network), byref(text), logits.data_ptr(), byref(read), count, position, threads
        )
        return logits

    def read_ahead(
        self, text: Text, token: int, position: int, greedy: Greedy, threads: int
    ) -> list[tuple[int, Tensor]]:
        """See TextReader.ahead; at most as many tokens as one call may take."""
        self._check(token, position)
        network, room = self._described.network, self.network.config.output_max_len - position
        count = max(1, min(AHEAD, AHEAD_BYTES // self._described.n_bytes, greedy.most, room))
        logits, tokens = torch.empty(count, network.vocabulary), (c_int * count)(token)
        ends, never = list(greedy.ends), -1 if greedy.never is None else greedy.never
        n_read = self._step.ahead(
            byref(network), byref(text), logits.data_ptr(), byref(tokens), count, position,
            (c_int * len(ends))(*ends), len(ends), never, threads,
        )  # fmt: skip
        return list(zip(tokens[:n_read], logits.unbind(), strict=False))

    def _check(self, token: int, position: int) -> None:
        size, length = self.network.head.out_features, self.network.config.output_max_len
        if not (0 <= token < size and 0 <= position < length):
            raise IndexError(
                f"token {token} at position {position}; allowed: tokens below {size}, positions "
                f"below {length}"
            )

    @property
    def weights(self) -> Sequence[Tensor]:
        """See Engine; copies where bfloat16 or float16 hold the same numbers in half the bytes."""
        return self._described.weights

    @property
    def about(self) -> str:
        """The kernels that read the weights on this machine, and the compiler's flags."""
        kernels = "; ".join(
            f"{str(kind).removeprefix('torch.')} in {self._step.all[number]}"
            for kind, number in zip(TYPES, self._step.kernels, strict=True)
            if kind in self._described.types
        )
        return f"{kernels} ({' '.join(self._step.flags)})"


class _CompiledText(TextReader):
    """One text's buffers as `step.c` reads them."""

    def __init__(self, decoder: CompiledDecoder, buffers: Buffers) -> None:
        self._work = decoder.work(1, 0, 1)  # for one token
        tensors = (buffers.heads, buffers.crossing, buffers.stream, buffers.memory, self._work)
        self._decoder, self._held = decoder, tensors
        self._text = Text(*(x.data_ptr() for x in tensors), buffers.memory.shape[1])

    def read(self, tokens: Sequence[int], position: int) -> Tensor:
        """See TextReader."""
        count, work, threads = len(tokens), self._work, torch.get_num_threads()
        if count > 1:
            work = self._decoder.work(count, position + count, threads)
        self._text.work = work.data_ptr()
        return self._decoder.read(self._text, tokens, position, threads)

    def ahead(self, token: int, position: int, greedy: Greedy) -> list[tuple[int, Tensor]]:
        """See TextReader."""
        self._text.work = self._work.data_ptr()
        threads = torch.get_num_threads()
        return self._decoder.read_ahead(self._text, token, position, greedy, threads)


def _unsupported(config: ModelConfig) -> list[str]:
    return [
        f"{name}={getattr(config, name)!r}"
        for name, known in SUPPORTED.items()
        if getattr(config, name) not in known
    ]


def use_huge_pages(tensors: Iterable[Tensor]) -> int:
    """Move these tensors to pages of two megabytes; returns how many pages (0 if not possible).

    The CPU looks up the address of each page of four kilobytes and prefetches only within a page:
    a step, which reads all weights once, takes 4 to 20 percent less time from pages of two
    megabytes (docs/figures.md). Numbers and addresses do not change. Neighbours in a page move
    too; a page of a file, or without free memory in one piece, remains as it was.
    """
    if not sys.platform.startswith("linux"):
        return 0
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    pages = {
        page
        for tensor in tensors
        for page in range(
            tensor.data_ptr() // PAGE_BYTES,
            -(-(tensor.data_ptr() + tensor.nbytes) // PAGE_BYTES),
        )
    }
    return sum(advise(page * PAGE_BYTES, PAGE_BYTES, COLLAPSE) == 0 for page in sorted(pages))
