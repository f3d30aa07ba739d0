"""One text decoded token by token by a fast engine, and the trace of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer.inference.engines.compiled import CompiledDecoder, Greedy
from transformer.inference.engines.memory import new_floats
from transformer.model.config import ModelConfig
from transformer.model.functional import causal_mask
from transformer.model.hooks import ForwardContext, HookLike
from transformer.model.sites import Site
from transformer.model.trace import Trace
from transformer.model.transformer import EncoderDecoder
from transformer.runs.compact_trace import QKV, CompactedRecords, CompactRecords, qkv_at


@dataclass(frozen=True, kw_only=True, slots=True)
class Buffers:
    """A decoder's activations of one text, by layer and position. Belongs to one run.

    heads: (L, T, H + 2G, D), queries, keys and values of self-attention, after rotation if there is
    one. G: heads of keys and values, H where none are shared. T: positions, usually max_len.
    crossing: (L, T, H, D), queries of cross-attention, and memory: (L, Ts, 2, G, D), its keys and
    values; both empty without an encoder.
    stream: (L + 1, T, C), the residual stream before each layer and after the last.
    """

    heads: Tensor
    crossing: Tensor
    memory: Tensor
    stream: Tensor

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All of them, in the order of step.c."""
        return self.heads, self.crossing, self.stream, self.memory

    @property
    def crosses(self) -> bool:
        """Whether there is cross-attention."""
        return self.memory.shape[1] > 0

    @classmethod
    def empty(cls, config: ModelConfig, n_memory: int = 0) -> Buffers:
        """Empty buffers; n_memory: tokens of the encoder's memory."""
        n_layers, max_len, d_head = config.output_n_layers, config.output_max_len, config.d_head
        n_heads, keys = config.n_heads, config.key_heads
        return cls(
            heads=new_floats(n_layers, max_len, n_heads + 2 * keys, d_head),
            crossing=new_floats(n_layers, max_len * (n_memory > 0), n_heads, d_head),
            memory=new_floats(n_layers, n_memory, 2, keys, d_head),
            stream=new_floats(n_layers + 1, max_len, config.d_model),
        )

    @classmethod
    def reading(cls, network: EncoderDecoder, memory: Tensor) -> Buffers:
        """Buffers of a text that reads this memory (1, Ts, C)."""
        buffers = cls.empty(network.config, memory.shape[1])
        for room, layer in zip(buffers.memory, network.decoder.layers, strict=True):
            attention: Any = layer.cross_attention
            for part, heads in enumerate(attention.k_v(memory)):  # (1, G, Ts, D)
                room[:, part] = heads[0].transpose(0, 1)
        return buffers


class Hypotheses:
    """Texts of one length that all begin with a session's, read in parallel: N of at most `most`.

    logits: (N, V), for the next token of each. n_new: tokens that each may read.
    """

    def __init__(self, session: DecodeSession, most: int, n_new: int) -> None:
        buffers, self._length = session.buffers, len(session.ids)
        positions = self._length + n_new

        def room(part: Tensor) -> Tensor:
            n_layers, _, *sizes = part.shape
            return new_floats(most, n_layers, positions, *sizes)

        self._heads = room(buffers.heads)
        self._heads[0, :, : self._length] = buffers.heads[:, : self._length]
        parts = self._heads, room(buffers.crossing), room(buffers.stream), buffers.memory
        self._reader = session.engine.reader(parts, most)
        self.logits = session.logits[None]

    def read(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        """Replace the texts: each continues the one of this index with a token."""
        read, count = self._heads[:, :, : self._length], len(parents)
        if [*parents] != [*range(count)]:
            read[:count] = read[list(parents)]
        self.logits = self._reader.read_each(tokens, self._length)
        self._length += 1


def session_of(
    engine: CompiledDecoder | None, hooks: Sequence[HookLike] = ()
) -> DecodeSession | None:
    """A session of the engine; None without one, and with hooks, which it could not apply."""
    return None if engine is None or hooks else DecodeSession(engine)


class DecodeSession:
    """The decoder's activations for one text, in buffers that belong to one run.

    ids: the tokens read. logits: (V,), for the next token. weights: a short name of the weights
    that read them, see `changes.digest`; empty before.

    The engine reads the prompt in one pass; then each `read` costs one row.
    """

    def __init__(self, engine: CompiledDecoder) -> None:
        self.engine = engine
        self.ids: list[int] = []
        self.weights = ""
        self.logits = new_floats(0)
        self._ahead: list[tuple[int, Tensor]] = []  # read beyond ids, the last first

    @torch.inference_mode(False)  # recorded tensors may be used in training
    @torch.no_grad()
    def begin(self, ids: Sequence[int], source: Sequence[int] = (), n_logits: int = 1) -> Tensor:
        """Read the prompt, and the source where there is an encoder: logits (n_logits, V), after
        the last of its tokens."""
        self.ids, self._ahead, self.weights = list(ids), [], self.engine.digest
        network, config = self.engine.network, self.engine.network.config
        trace = Trace(records=CompactedRecords(config.heads_per_key, exact=True))
        if isinstance(network, EncoderDecoder):
            source_ids = torch.tensor([list(source)], device="cpu")
            memory = network.encode(source_ids, hooks=[trace])
            self.buffers = Buffers.reading(network, memory)
        else:
            self.buffers = Buffers.empty(config)
        self._reader = self.engine.reader(self.buffers.tensors)
        logits = self._reader.read(self.ids, 0, n_logits)
        self.logits = logits[-1]
        self._keep(trace)
        return logits

    def read(self, *tokens: int, greedy: Greedy | None = None) -> Tensor:
        """Read more tokens: logits (V,). The text must not grow longer than max_len.

        greedy: how the text continues if the likeliest token is always taken; after a single token,
        some of the next may be read by the same call.
        """
        if not (len(tokens) == 1 and self._ahead and self._ahead[-1][0] == tokens[0]):
            self._ahead = self._fetch(tokens, greedy)
        self.ids += tokens
        self.logits = self._ahead.pop()[1]
        return self.logits

    @torch.inference_mode()
    def _fetch(self, tokens: Sequence[int], greedy: Greedy | None) -> list[tuple[int, Tensor]]:
        """The last of these tokens and those read ahead, each with the logits after it, in reverse
        order."""
        position = len(self.ids)
        if greedy and len(tokens) == 1:
            return self._reader.read_ahead(tokens[0], position, greedy)[::-1]
        return [(tokens[-1], self._reader.read(tokens, position)[0])]

    @torch.inference_mode()
    def read_each(self, tokens: Sequence[int]) -> Tensor:
        """Read more tokens: logits (1 + n, V), after the text before them and after each."""
        before, self._ahead = self.logits[None], []
        if not tokens:
            return before
        after = self._reader.read(tokens, len(self.ids), len(tokens))
        self.ids += tokens
        self.logits = after[-1]
        return torch.cat([before, after])

    def trace_of(self, ids: Sequence[int]) -> Trace | None:
        """Read the remaining tokens and return the trace.

        None if it has read nothing, or another text, and for a network with other scores than
        q kT / sqrt(D).
        """
        usual = self.engine.network.config.scores_from_heads
        if not usual or not self.ids or self.ids != list(ids[: len(self.ids)]):
            return None
        if len(ids) > len(self.ids):
            self.read(*ids[len(self.ids) :])
        return self.trace()

    @torch.no_grad()
    def trace(self) -> Trace:
        """The compact trace of one pass over the ids read so far, if scores are q kT / sqrt(D)."""
        n, trace = len(self.ids), Trace()
        ids = torch.tensor([self.ids], device=self.buffers.stream.device)
        self._embedding(ids, torch.arange(n, device=ids.device), ForwardContext(hooks=[trace]))
        before = self._before
        stream = self.buffers.stream[:, :n].clone()[:, None]  # (L + 1, 1, n, C)
        return Trace(
            records=CompactRecords({**self._encoder_heads, **self._decoder_parts(ids)}),
            embed=before.embed | trace.embed,
            pos_embed=before.pos_embed | trace.pos_embed,
            residuals=before.residuals | {"decoder": list(stream.unbind())},
        )

    def _keep(self, trace: Trace) -> None:
        """Keep what no later token changes: the encoder's records."""
        self._embedding = self.engine.network.embeddings["decoder"]
        sites = [site for site in trace.sites if site.stack == "encoder"]
        self._encoder_heads = {site: qkv_at(trace, site) for site in sites}
        self._before = trace

    def _decoder_parts(self, ids: Tensor) -> dict[Site, QKV]:
        """Every decoder site's queries, keys, values and mask, copied from the buffers."""
        config, n = self.engine.network.config, ids.shape[1]
        heads = self.buffers.heads[:, :n].transpose(1, 2)
        own = heads.contiguous()[:, None]  # (L, 1, H + 2G, n, D)
        sizes = [config.n_heads, config.key_heads, config.key_heads]
        cross_queries = _by_part(self.buffers.crossing[:, :n, None])[0]
        memory = _by_part(self.buffers.memory)
        parts = {}
        for layer in range(config.output_n_layers):
            queries, keys, values = own[layer].split(sizes, dim=1)
            mask = causal_mask(n, n, ids.device, config.window_of(layer))
            parts[Site("decoder", layer, "self")] = QKV(queries, keys, values, mask)
            if self.buffers.crosses:
                keys, values = memory[:, layer]
                cross = QKV(cross_queries[layer], keys, values, None)
                parts[Site("decoder", layer, "cross")] = cross
        return parts


def _by_part(heads: Tensor) -> Tensor:
    """(L, T, parts, H, D) -> a copy (parts, L, 1, H, T, D)."""
    return heads.permute(2, 0, 3, 1, 4).contiguous()[:, :, None]
