"""The compiled engine: decode one text by `step.c`, straight from the network's weights.

It repeats the arithmetic of `transformer/model/`, and is tested equal to it, for one new token of
one text on a CPU; everything else runs on the network itself. Weights stored as bfloat16 or float16
are read from a copy in half the bytes and multiplied in float32; the vectors of many tokens are
rounded to bfloat16 for a network stored in it, if this CPU then multiplies faster. On two
quiet cores a step of 6 x 8 x 256 took 0.17 ms, near the time of reading the weights from memory.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from ctypes import byref, c_int
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from transformer.checks import check_choice
from transformer.inference.engines import c_compiler
from transformer.inference.engines.c_compiler import TYPES, Step
from transformer.inference.engines.changes import Fingerprint, fingerprint_of, is_as_configured
from transformer.inference.engines.description import Description, Text, use_huge_pages
from transformer.inference.engines.memory import address_of, new_floats
from transformer.model.config import ModelConfig
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly

AUTO, NETWORK, COMPILED = "auto", "network", "compiled"
ENGINES = (AUTO, COMPILED, NETWORK)
AHEAD_TOKENS, AHEAD_BYTES = 16, 2**29  # tokens of one call, and weights that it reads: some 50 ms
# The choices of a configuration whose arithmetic `step.c` has. A name added to a table of
# `transformer/model/` is not among them until the C code is extended.
SUPPORTED: dict[str, frozenset[Any]] = {
    "family": frozenset({"decoder", "encoder-decoder"}),
    "norm_kind": frozenset({"layer", "rms", "rms-plus-one"}),
    "norm": frozenset({"pre", "post", "output", "both"}),
    "positions": frozenset(
        {
            "sinusoidal",
            "sinusoidal-halves",
            "sinusoidal-fairseq",
            "learned",
            "rotary",
            "alibi",
            "relative",
        }
    ),
    "head": frozenset({"tokens"}),
    "norm_all_heads": frozenset({False}),
    "shared_projection": frozenset({False}),
    "activation": frozenset({"relu", "gelu", "gelu-tanh", "silu"}),
}


class Greedy(NamedTuple):
    """How a text continues if the likeliest token is always chosen.

    most: tokens to read, the first included. ends: tokens that end the text and are not read.
    never: a token that is never chosen.
    """

    most: int
    ends: Collection[int]
    never: int | None


class CompiledDecoder:
    """The decoder of a network as `step.c` reads it, shared by all texts.

    Raises ValueError for weights that are not float32 on a CPU, RuntimeError without a C compiler.
    """

    name: ClassVar[str] = COMPILED

    def __init__(self, network: DecoderOnly | EncoderDecoder) -> None:
        step = c_compiler.compiled_step()
        if step is None:
            raise RuntimeError("no C compiler was found that compiles the fast decoder step")
        self.network, self._step, self._lock = network, step, threading.Lock()
        self._usable = True
        self._as_read = fingerprint_of(network)
        self._read_weights()

    @staticmethod
    def supports(config: ModelConfig) -> bool:
        """Whether it has the arithmetic that this configuration describes."""
        return not _unsupported(config)

    @staticmethod
    def missing(network: DecoderOnly | EncoderDecoder) -> str | None:
        """The requirement that this network or machine does not meet; None if all are met."""
        if unsupported := _unsupported(network.config):
            return f"a network without {', '.join(unsupported)}"
        if c_compiler.compiled_step() is None:
            return "a C compiler, and none was found"
        plain = network.device.type == "cpu" and network.dtype == torch.float32
        return None if plain else "float32 weights on a CPU"

    def __repr__(self) -> str:
        """One line: how it reads the weights."""
        return f"<CompiledDecoder: {self.about}>"

    @property
    def weights(self) -> Sequence[Tensor]:
        """The matrices that it reads: the network's, or copies in half the bytes."""
        return self._description.weights

    @property
    def has_copies(self) -> bool:
        """Whether it reads copies of weights, whose changes `Fingerprint` may miss."""
        return bool(self._description.copied)

    @property
    def digest(self) -> str:
        """A short name of the weights that it read last, see `changes.digest`."""
        return self._as_read.digest

    @property
    def n_bytes(self) -> int:
        """Bytes that a step reads of the weights."""
        return self._description.n_bytes

    @property
    def about(self) -> str:
        """The kernels that read the weights on this machine, and the compiler's flags."""
        kernels = "; ".join(
            f"{str(dtype).removeprefix('torch.')} in {self._step.all[number]}"
            for dtype, number in zip(TYPES, self._step.kernels, strict=True)
            if dtype in self._description.types
        )
        return f"{kernels} ({' '.join(self._step.flags)})"

    def reader(self, buffers: Sequence[Tensor], n_texts: int = 1) -> CompiledText:
        """A reader with the weights as they are now. buffers, n_texts: see CompiledText."""
        return CompiledText(self._step, self._description, buffers, n_texts)

    def refresh(self) -> bool:
        """Read the weights again if the network has changed; whether the engine computes the same
        as the network now. Called when a text begins."""
        now = fingerprint_of(self.network)
        if now is not self._as_read:
            with self._lock:
                now = fingerprint_of(self.network)
                if now is not self._as_read:  # another thread may have read them
                    self._read_again(now)
        return self._usable and not now.is_hooked

    def _read_again(self, now: Fingerprint) -> None:
        try:
            fits = self._as_read.same_parts or is_as_configured(self.network)
            self._usable = fits and self.missing(self.network) is None
            if self._usable:
                self._read_weights()
        except ValueError:
            self._usable = False
        self._as_read = now

    def _read_weights(self) -> None:
        """Describe the weights to `step.c`.

        Texts already begun keep the weights read before.
        """
        self._description = Description(self.network, self._step.kernels, rounds=self._step.rounds)
        use_huge_pages(self._description.weights)


class CompiledText:
    """Reads the tokens of one text into its buffers: heads, crossing, stream and memory (the last
    of as many tokens as the encoder read), see `decode_session.Buffers`.

    n_texts: of several texts that share a memory. Their buffers have one more dimension, the first,
    and `read_each` reads them.
    """

    def __init__(
        self, step: Step, description: Description, buffers: Sequence[Tensor], n_texts: int = 1
    ) -> None:
        self._step, self._description, self._n_texts = step, description, n_texts
        self._network = description.network
        # For one token of each, whatever the number of threads.
        self._work = self._scratch(n_texts, 0, 1)
        self._held = (*buffers, self._work)
        self._length, n_memory = buffers[0].shape[-3], buffers[-1].shape[1]
        sizes = (*description.text_sizes(n_texts, self._length, n_memory), 0)
        self._text = Text(*map(address_of, self._held, sizes), n_memory, self._length)

    def read(self, tokens: Sequence[int], position: int, n_logits: int = 1) -> Tensor:
        """Read tokens, the first at this position: logits (n_logits, V) for the tokens after the
        last of them.

        Raises IndexError for a token or position that the network or the buffers lack.
        """
        for n, token in enumerate(tokens):
            self._check(token, position + n)
        count, threads, work = len(tokens), torch.get_num_threads(), self._work
        if count > 1:
            work = self._scratch(count, position + count, threads)
        self._text.work = address_of(work)
        logits, ids = new_floats(n_logits, self._network.vocabulary), (c_int * count)(*tokens)
        self._step.read(
            byref(self._network), byref(self._text), address_of(logits), byref(ids), count,
            position, n_logits, threads,
        )  # fmt: skip
        return logits

    def read_each(self, tokens: Sequence[int], position: int) -> Tensor:
        """Read a token of each of the first N texts, at this position of all: logits (N, V).

        Raises IndexError as `read` does, ValueError for more tokens than texts.
        """
        if len(tokens) > self._n_texts:
            raise ValueError(f"got {len(tokens)} tokens for {self._n_texts} texts")
        for token in tokens:
            self._check(token, position)
        count = len(tokens)
        logits, ids = new_floats(count, self._network.vocabulary), (c_int * count)(*tokens)
        self._step.each(
            byref(self._network), byref(self._text), address_of(logits), byref(ids), count,
            position, torch.get_num_threads(),
        )  # fmt: skip
        return logits

    def read_ahead(self, token: int, position: int, greedy: Greedy) -> list[tuple[int, Tensor]]:
        """Read a token, and tokens after it by greedy choice, each with the logits (V,) after it;
        at most as many as one call may take."""
        self._check(token, position)
        self._text.work = address_of(self._work)
        room, network = self._length - position, self._network
        count = max(
            1, min(AHEAD_TOKENS, AHEAD_BYTES // self._description.n_bytes, greedy.most, room)
        )
        logits, tokens = new_floats(count, network.vocabulary), (c_int * count)(token)
        ends, never = list(greedy.ends), -1 if greedy.never is None else greedy.never
        n_read = self._step.ahead(
            byref(network), byref(self._text), address_of(logits), byref(tokens), count, position,
            (c_int * len(ends))(*ends), len(ends), never, torch.get_num_threads(),
        )  # fmt: skip
        return list(zip(tokens[:n_read], logits.unbind(), strict=False))

    def _scratch(self, n_tokens: int, longest: int, threads: int) -> Tensor:
        """Scratch memory for n tokens with contexts up to `longest`."""
        return new_floats(self._step.work_size(byref(self._network), n_tokens, longest, threads))

    def _check(self, token: int, position: int) -> None:
        size, length = self._network.vocabulary, self._length
        if not (0 <= token < size and 0 <= position < length):
            raise IndexError(
                f"token {token} at position {position}; allowed: tokens below {size}, positions "
                f"below {length}"
            )


def engine_of(
    network: DecoderOnly | EncoderOnly | EncoderDecoder, name: str = AUTO
) -> CompiledDecoder | None:
    """The engine of this name ("auto": the compiled one where it works); None for the network, and
    for encoders. Raises ValueError for an unknown name or an engine that cannot work here.
    """
    check_choice("engine", name, ENGINES)
    if name == NETWORK or isinstance(network, EncoderOnly):
        return None
    missing = CompiledDecoder.missing(network)
    if missing and name == COMPILED:
        raise ValueError(f"engine '{name}' needs {missing}; allowed: 'auto'")
    return None if missing else CompiledDecoder(network)


def engine_words(
    engine: CompiledDecoder | None, network: DecoderOnly | EncoderOnly | EncoderDecoder
) -> str:
    """An engine's name and how it reads the weights on this machine."""
    if isinstance(network, EncoderOnly):
        return f"{NETWORK}: an encoder generates no text, so no engine is needed"
    return NETWORK if engine is None else f"{engine.name}: {engine.about}"


def _unsupported(config: ModelConfig) -> list[str]:
    return [
        f"{name}={getattr(config, name)!r}"
        for name, supported in SUPPORTED.items()
        if getattr(config, name) not in supported
    ]
