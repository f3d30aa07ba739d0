"""More tokens by one call of `step.c`, straight from the network's own weights.

Weights that were stored as bfloat16 or float16 are read as such: a copy in half the bytes, of the
very same numbers, each multiplied in float32.

On two quiet cores a step of 6 x 8 x 256 took 0.17 ms so, near the time of reading the weights from
memory; `packed.py`, some hundred calls of PyTorch, took 0.86.
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
from transformer.inference.engines.buffers import (
    Buffers,
    Greedy,
    Packing,
    ReadTokens,
    check_position,
    lacks_plain_weights,
)
from transformer.inference.engines.description import Description
from transformer.inference.engines.kernels import TYPES
from transformer.inference.engines.step_layout import Text
from transformer.messages import say
from transformer.model.transformer import DecoderOnly, EncoderDecoder

PAGE_BYTES = 2**21
COLLAPSE = 25  # MADV_COLLAPSE of Linux 6.1: merges small pages into large ones at once
AHEAD, AHEAD_BYTES = 16, 2**29  # tokens of one call, and weights that it reads: some 50 ms


class CompiledDecoder(Packing):
    """The decoder of a network as `step.c` reads it. Shared by all texts.

    Raises ValueError for weights that are not float32 on a CPU, RuntimeError where there is no C
    compiler.
    """

    name = "compiled"
    reads_prompts = True

    @classmethod
    def lacks(cls, network: DecoderOnly | EncoderDecoder) -> str | None:
        """What is missing here; None: nothing."""
        if c_compiler.compiled_step() is None:
            return say("a C compiler, and none was found")
        return lacks_plain_weights(network)

    def __init__(self, network: DecoderOnly | EncoderDecoder) -> None:
        step = c_compiler.compiled_step()
        if step is None:
            raise RuntimeError(say("no C compiler was found that compiles the fast decoder step"))
        self._step = step
        super().__init__(network)

    def pack(self) -> Sequence[Tensor]:
        """See Packing."""
        self._described = Description(self.network, self._step.kernels)
        use_huge_pages(self._described.weights)
        return self._described.copied

    def reader(self, buffers: Buffers) -> ReadTokens:
        """What reads one text's tokens."""
        return _CompiledText(copy.copy(self), buffers)  # with what is packed now

    def work(self, n_tokens: int, longest: int, threads: int) -> Tensor:
        """Room for what these threads compute between, of n tokens, each of which reads `longest`
        at most; for one token it is the same with any number of threads."""
        return torch.empty(
            self._step.work_size(byref(self._described.network), n_tokens, longest, threads)
        )

    def read(self, text: Text, tokens: Sequence[int], position: int, threads: int) -> Tensor:
        """Logits (V,) for the token after these. Raises IndexError where one does not fit."""
        for n, token in enumerate(tokens):
            check_position(self.network, token, position + n)
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
        """See ReadsAhead; as many as one call may take."""
        check_position(self.network, token, position)
        network, room = self._described.network, self.network.config.output_max_len - position
        count = max(1, min(AHEAD, AHEAD_BYTES // self._described.n_bytes, greedy.most, room))
        logits, tokens = torch.empty(count, network.vocabulary), (c_int * count)(token)
        ends, never = list(greedy.ends), -1 if greedy.never is None else greedy.never
        n_read = self._step.ahead(
            byref(network), byref(text), logits.data_ptr(), byref(tokens), count, position,
            (c_int * len(ends))(*ends), len(ends), never, threads,
        )  # fmt: skip
        return list(zip(tokens[:n_read], logits.unbind(), strict=False))

    @property
    def copies(self) -> Sequence[Tensor]:
        """The weights that it reads, copies only where they take half of the network's own."""
        return self._described.weights

    @property
    def about(self) -> str:
        """How it reads the weights on this machine, and what it was compiled with."""
        kernels = "; ".join(
            f"{str(kind).removeprefix('torch.')} in {self._step.all[number]}"
            for kind, number in zip(TYPES, self._step.kernels, strict=True)
            if kind in self._described.types
        )
        return f"{kernels} ({' '.join(self._step.flags)})"


class _CompiledText:
    """One text's buffers as `step.c` finds them."""

    def __init__(self, decoder: CompiledDecoder, buffers: Buffers) -> None:
        self._work = decoder.work(1, 0, 1)  # for one token; for more it is made when they are read
        tensors = (buffers.heads, buffers.crossing, buffers.stream, buffers.memory, self._work)
        self._decoder, self._held = decoder, tensors
        self._text = Text(*(x.data_ptr() for x in tensors), buffers.memory.shape[1])

    def __call__(self, tokens: Sequence[int], position: int) -> Tensor:
        """Read tokens into their positions: logits (V,) for the one after them."""
        count, work, threads = len(tokens), self._work, torch.get_num_threads()
        if count > 1:
            work = self._decoder.work(count, position + count, threads)
        self._text.work = work.data_ptr()
        return self._decoder.read(self._text, tokens, position, threads)

    def ahead(self, token: int, position: int, greedy: Greedy) -> list[tuple[int, Tensor]]:
        """Read a token, and what follows it by greedy choice."""
        self._text.work = self._work.data_ptr()
        threads = torch.get_num_threads()
        return self._decoder.read_ahead(self._text, token, position, greedy, threads)


def use_huge_pages(tensors: Iterable[Tensor]) -> int:
    """How many large pages now hold numbers of these tensors: 0 where the system has none.

    The CPU looks up where each page of four kilobytes lies, and reads ahead within one alone: a
    step, which reads all weights once, takes 4 to 20 percent less time when they lie in pages of
    two megabytes (docs/figures.md). Numbers and addresses stay what they are. What shares a page
    with them moves too; a page that cannot be (a file's, or too little memory in one piece) stays
    as it was.
    """
    if not sys.platform.startswith("linux"):
        return 0
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    pages = {
        place
        for tensor in tensors
        for place in range(
            tensor.data_ptr() // PAGE_BYTES,
            -(-(tensor.data_ptr() + tensor.nbytes) // PAGE_BYTES),
        )
    }
    return sum(advise(page * PAGE_BYTES, PAGE_BYTES, COLLAPSE) == 0 for page in sorted(pages))
