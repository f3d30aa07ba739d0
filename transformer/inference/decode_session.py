"""One text decoded token by token by a fast engine, and the trace of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer.inference.engines.buffers import Buffers
from transformer.inference.engines.compiled import CompiledDecoder, Greedy
from transformer.model.functional import causal_mask
from transformer.model.hooks import ForwardContext
from transformer.model.sites import Site
from transformer.model.trace import Trace
from transformer.model.transformer import EncoderDecoder
from transformer.runs.compact_trace import QKV, CompactedRecords, CompactRecords, qkv_at


class DecodeSession:
    """The decoder's activations for one text, in buffers that belong to one run.

    ids: the tokens read. logits: (V,), for the next token.

    The prompt is read in one pass, by the engine or, where there is a source, by the network; then
    each `read` costs one row.
    """

    def __init__(self, engine: CompiledDecoder) -> None:
        self.engine = engine
        self.ids: list[int] = []
        self.logits = torch.empty(0)
        self._ahead: list[tuple[int, Tensor]] = []  # read beyond ids, the last first

    @torch.inference_mode(False)  # recorded tensors may be used in training
    @torch.no_grad()
    def begin(self, ids: Sequence[int], source: Sequence[int] = ()) -> Tensor:
        """Read the prompt, and the source where there is an encoder: logits (V,)."""
        self.ids, self._ahead = list(ids), []
        network, config = self.engine.network, self.engine.network.config
        trace = Trace(records=CompactedRecords(config.heads_per_key, exact=True))
        if isinstance(network, EncoderDecoder):
            read = torch.tensor([self.ids])
            source_ids = torch.tensor([list(source)])
            last = torch.arange(len(ids))[None] == len(ids) - 1
            memory = network.encode(source_ids, hooks=[trace])
            self.logits = network.decode(read, memory, source_ids, where=last, hooks=[trace])[0]
            self.buffers = Buffers.of(trace, config)
            self._reader = self.engine.reader(self.buffers)
        else:
            self.buffers = Buffers.empty(config)
            self._reader = self.engine.reader(self.buffers)
            self.logits = self._reader.read(self.ids, 0)
        self._keep(trace)
        return self.logits

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
        return [(tokens[-1], self._reader.read(tokens, position))]

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
        """The compact trace that one pass of the network over the ids read so far would record, for
        a network whose scores are q kT / sqrt(D) alone."""
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
        """Keep what no later token changes: the encoder's records and the memory's mask."""
        self._embedding = self.engine.network.embeddings["decoder"]
        sites = [site for site in trace.sites if site.stack == "encoder"]
        self._encoder_heads = {site: qkv_at(trace, site) for site in sites}
        cross = Site("decoder", 0, "cross")
        self._memory_mask = qkv_at(trace, cross).mask if cross in trace.records else None
        self._before = _without_decoder(trace)

    def _decoder_parts(self, ids: Tensor) -> dict[Site, QKV]:
        """Every decoder site's queries, keys, values and mask, copied from the buffers."""
        config, n = self.engine.network.config, ids.shape[1]
        heads = self.buffers.heads[:, :n].transpose(1, 2)
        own = heads.contiguous()[:, None]  # (L, 1, H + 2G, n, D)
        sizes = [config.n_heads, config.key_heads, config.key_heads]
        cross_queries = _by_part(self.buffers.crossing[:, :n, None])[0]
        memory = _by_part(self.buffers.memory)
        parts = {}
        for layer in range(config.n_layers):
            queries, keys, values = own[layer].split(sizes, dim=1)
            mask = causal_mask(n, n, ids.device, config.window_of(layer))
            parts[Site("decoder", layer, "self")] = QKV(queries, keys, values, mask)
            if self.buffers.crosses:
                keys, values = memory[:, layer]
                cross = QKV(cross_queries[layer], keys, values, self._memory_mask)
                parts[Site("decoder", layer, "cross")] = cross
        return parts


def _by_part(heads: Tensor) -> Tensor:
    """(L, T, parts, H, D) -> a copy (parts, L, 1, H, T, D)."""
    return heads.permute(2, 0, 3, 1, 4).contiguous()[:, :, None]


def _without_decoder(trace: Trace) -> Trace:
    """A trace without the decoder's streams and records."""
    return Trace(
        embed={s: x for s, x in trace.embed.items() if s == "encoder"},
        pos_embed={s: x for s, x in trace.pos_embed.items() if s == "encoder"},
        residuals={s: layers for s, layers in trace.residuals.items() if s == "encoder"},
    )
