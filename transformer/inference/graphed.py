"""One more token by operations whose shapes never change: a GPU records them once and replays them.

A GPU's part of a step takes far less time than telling it what to do, a launch for each of some
hundred operations; a replayed CUDA graph is one launch. For that nothing may depend on the token
or its place but numbers that lie on the device: attention looks at all max_len places, of which
the later ones are hidden.

On a CPU nothing can be recorded: there this is slower than the network, and serves the tests.
"""

from __future__ import annotations

from functools import partial
from typing import cast

import torch
from torch import Tensor

from transformer.inference.buffers import Buffers, ReadToken, check_place, embedding_of
from transformer.model.attention import MultiHeadAttention, attention
from transformer.model.layers import Layer
from transformer.model.transformer import DecoderOnly, EncoderDecoder


class GraphedDecoder:
    """The decoder of a network, by the network's own modules. Shared by all texts."""

    name = "graphed"

    def __init__(self, network: DecoderOnly | EncoderDecoder) -> None:
        self.network = network

    def reader(self, buffers: Buffers) -> ReadToken:
        """What reads one text's tokens."""
        return _GraphedText(self.network, buffers)


class _GraphedText:
    """One text's buffers, and the recorded step that fills them."""

    def __init__(self, network: DecoderOnly | EncoderDecoder, buffers: Buffers) -> None:
        self.network, self.buffers = network, buffers
        self.embedding = embedding_of(network)
        device, max_len = network.device, network.config.max_len
        self._token = torch.zeros(1, 1, dtype=torch.int64, device=device)
        self._place = torch.zeros(1, dtype=torch.int64, device=device)
        self._places = torch.arange(max_len, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits = torch.empty(0)

    def __call__(self, token: int, place: int) -> Tensor:
        """Read a token into its place: logits (V,) for the one after it. Raises IndexError."""
        check_place(self.network, token, place)
        self._token.fill_(token)
        self._place.fill_(place)
        if self._token.device.type != "cuda":
            return self._step()
        if self._graph is None:
            self._graph = self._recorded()
        self._graph.replay()
        return self._logits.clone()

    def _recorded(self) -> torch.cuda.CUDAGraph:
        """The step as a graph that leaves its result in `_logits`."""
        here, beside = torch.cuda.current_stream(), torch.cuda.Stream()
        beside.wait_stream(here)
        with torch.cuda.stream(
            beside
        ):  # once before: libraries set themselves up at the first call
            self._step()
        here.wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # others go on meanwhile
            self._logits = self._step()
        return graph

    def _step(self) -> Tensor:
        """What the network does for one new position, with what it computed left in the buffers."""
        decoder, stream = self.network.decoder, self.buffers.stream
        x = self.embedding(self._token, self._place)  # (1, 1, C)
        stream[0].index_copy_(0, self._place, x[0])
        for index, layer in enumerate(cast("list[Layer]", decoder.layers)):
            x = layer.self_residual(x, partial(self._own, layer.self_attention, index))
            if self.buffers.crosses:
                x = layer.cross_residual(x, partial(self._crossing, layer.cross_attention, index))
            x = layer.feed_forward_residual(x, layer.feed_forward)
            stream[index + 1].index_copy_(0, self._place, x[0])
        logits: Tensor = self.network.head(decoder.end(x))
        return logits[0, 0]

    def _own(self, block: MultiHeadAttention, index: int, x: Tensor) -> Tensor:
        """Self-attention: the new query reads every place up to its own."""
        heads = self.buffers.heads[index]  # (max_len, 3, H, D)
        made = torch.stack([block.query(x), block.key(x), block.value(x)])  # (3, 1, 1, C)
        heads.index_copy_(0, self._place, made.view(1, *heads.shape[1:]))
        later = self._places > self._place
        # What stands at later places is anything at all, not-a-number too: weight 0 is not enough.
        values = heads[:, 2].masked_fill(later[:, None, None], 0)
        return _read(block, made[0], heads[:, 1], values, ~later)

    def _crossing(self, block: MultiHeadAttention, index: int, x: Tensor) -> Tensor:
        """Cross-attention: the new query reads all of the memory."""
        query, memory = block.query(x), self.buffers.memory[index]  # (Ts, 2, H, D)
        asked = self.buffers.crossing[index]  # (max_len, H, D)
        asked.index_copy_(0, self._place, query.view(1, *asked.shape[1:]))
        return _read(block, query, memory[:, 0], memory[:, 1], None)


def _read(
    block: MultiHeadAttention, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
) -> Tensor:
    """query: (1, 1, C); keys, values: (T, H, D); mask: (T,), True = may attend -> (1, 1, C)."""
    q = query.view(1, *keys.shape[1:])  # (1, H, D)
    q, keys, values = (x.transpose(0, 1)[None] for x in (q, keys, values))  # (1, H, T, D)
    heads, _ = attention(q, keys, values, mask)
    return block.output(heads.transpose(1, 2).flatten(2))
