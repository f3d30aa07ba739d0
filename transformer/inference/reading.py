"""One text read token by token with packed weights, and the trace of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import torch
from torch import Tensor

from transformer.inference.engine import Crossing, PackedDecoder, Place, Scratch
from transformer.inference.kept import Heads, KeptRecords, heads_of
from transformer.model.masks import causal_mask, combine, padding_mask
from transformer.model.trace import Site, Trace
from transformer.model.transformer import EncoderDecoder


class Reading:
    """All that the decoder computed of one text, in buffers that belong to one run.

    heads: (L, max_len, 3, H, D), queries, keys and values of every position. crossing: (L, max_len,
    H, D), queries of the cross-attention.
    stream: (L + 1, max_len, C), the residual stream before each layer and after the last.
    ids: what was read. logits: (V,), for the token after it.

    The network itself reads the prompt, in one pass; then each `read` costs one row.
    """

    def __init__(self, packed: PackedDecoder) -> None:
        self.packed = packed
        self.ids: list[int] = []
        self.logits = torch.empty(0)

    @torch.inference_mode()
    def begin(self, ids: Sequence[int], source: Sequence[int] = ()) -> Tensor:
        """Read the prompt, and the source where there is an encoder: logits (V,)."""
        network, trace = self.packed.network, Trace()
        self.ids = list(ids)
        read, last = torch.tensor([self.ids]), torch.zeros(1, len(ids), dtype=torch.bool)
        last[:, -1] = True
        if isinstance(network, EncoderDecoder):
            given = torch.tensor([list(source)])
            memory = network.encode(given, trace=trace)
            logits = network.decode(read, memory, given, where=last, trace=trace)
        else:
            logits = network(read, where=last, trace=trace)
        self._make_room()
        self._take(trace)
        self.logits = logits[0]
        return self.logits

    @torch.inference_mode()
    def read(self, token: int) -> Tensor:
        """Read one more token: logits (V,). The text must not grow longer than max_len."""
        packed, place = self.packed, len(self.ids)
        self.ids.append(token)
        stream = self.stream[:, place].unbind()
        packed.embed(token, place, stream[0])
        for layer, at in zip(packed.layers, self._places(place, stream), strict=True):
            layer(at, self._scratch)
        self.logits = packed.logits(stream[-1])
        return self.logits

    def trace_of(self, ids: Sequence[int]) -> Trace | None:
        """The trace of a text of which it has read the beginning, after reading the rest.

        None where it has read nothing or something else.
        """
        if not self.ids or self.ids != list(ids[: len(self.ids)]):
            return None
        for token in ids[len(self.ids) :]:
            self.read(token)
        return self.trace()

    @torch.inference_mode()
    def trace(self) -> Trace:
        """What one pass of the network over the ids read so far would record, in little room."""
        n, trace = len(self.ids), Trace()
        ids = torch.tensor([self.ids])
        self.packed.embedding(ids, torch.arange(n), trace)
        before = self._before
        stream = self.stream[:, :n].clone()[:, None]  # (L + 1, 1, n, C)
        return Trace(
            records=KeptRecords({**self._encoder_heads, **self._decoder_parts(ids)}),
            embedded=before.embedded | trace.embedded,
            positions=before.positions | trace.positions,
            residuals=before.residuals | {"decoder": list(stream.unbind())},
        )

    def _make_room(self) -> None:
        """Buffers, and the views of them that every step cuts its own from."""
        packed, config = self.packed, self.packed.network.config
        n_layers, n_heads, size = config.n_layers, config.n_heads, config.d_head
        room, first = (n_layers, config.max_len), packed.layers[0]
        self.heads = torch.empty(*room, 3, n_heads, size)
        self.stream = torch.empty(n_layers + 1, config.max_len, config.d_model)
        self._rows = self.heads.view(*room, first.query_key_value.n_blocks, 1, -1)
        self._queries = self.heads[:, :, 0].unsqueeze(-2)  # (L, max_len, H, 1, D)
        self._keys = self.heads[:, :, 1].permute(0, 2, 3, 1)  # (L, H, D, max_len)
        self._values = self.heads[:, :, 2].transpose(1, 2)  # (L, H, max_len, D)
        if first.cross_query is not None:
            self.crossing = torch.empty(*room, n_heads, size)
            self._cross_rows = self.crossing.view(*room, first.cross_query.n_blocks, 1, -1)
        self._scratch = Scratch(packed)

    def _take(self, trace: Trace) -> None:
        """Copy what the network's own pass over the prompt recorded."""
        n = len(self.ids)
        self._memory: list[Heads] = []
        for layer in range(len(self.heads)):
            own = heads_of(trace[Site("decoder", layer, "self")])
            for place, part in enumerate((own.queries, own.keys, own.values)):
                self.heads[layer, :n, place] = part[0].transpose(0, 1)
            if (site := Site("decoder", layer, "cross")) in trace.records:
                self._memory.append(heads_of(trace[site]))
                self.crossing[layer, :n] = self._memory[-1].queries[0].transpose(0, 1)
        for layer, x in enumerate(trace.residuals["decoder"]):
            self.stream[layer, :n] = x[0]
        encoder = [site for site in trace.sites if site.stack == "encoder"]
        self._encoder_heads = {site: heads_of(trace[site]) for site in encoder}
        self._before = _without_decoder(trace)

    def _places(self, place: int, stream: Sequence[Tensor]) -> Iterator[Place]:
        """For each layer, its views of the buffers."""
        return map(
            Place,
            stream[:-1],
            stream[1:],
            self._rows[:, place].unbind(),
            self._queries[:, place].unbind(),
            self._keys[..., : place + 1].unbind(),
            self._values[:, :, : place + 1].unbind(),
            self._crossings(place),
        )

    def _crossings(self, place: int) -> Iterable[Crossing | None]:
        if not self._memory:
            return repeat(None)
        return map(
            Crossing,
            self._cross_rows[:, place].unbind(),
            self.crossing[:, place].unsqueeze(-2).unbind(),
            [memory.keys[0].mT for memory in self._memory],
            [memory.values[0] for memory in self._memory],
        )

    def _decoder_parts(self, ids: Tensor) -> dict[Site, Heads]:
        """Every decoder site's queries, keys, values and mask, copied out of the buffers."""
        config, n = self.packed.network.config, ids.shape[1]
        mask = combine(causal_mask(n, n), padding_mask(ids, config.padding_id))
        heads = self.heads[:, :n].permute(2, 0, 3, 1, 4).contiguous()[:, :, None]
        queries, keys, values = heads.unbind()  # (L, 1, H, n, D)
        parts = {}
        for layer in range(config.n_layers):
            parts[Site("decoder", layer, "self")] = Heads(
                queries[layer], keys[layer], values[layer], mask
            )
            if self._memory:
                asked = self.crossing[layer, :n].transpose(0, 1).contiguous()[None]
                memory = self._memory[layer]._replace(queries=asked)
                parts[Site("decoder", layer, "cross")] = memory
        return parts


def _without_decoder(trace: Trace) -> Trace:
    """What an encoder's stream recorded: nothing where there is none."""
    return Trace(
        embedded={s: x for s, x in trace.embedded.items() if s == "encoder"},
        positions={s: x for s, x in trace.positions.items() if s == "encoder"},
        residuals={s: made for s, made in trace.residuals.items() if s == "encoder"},
    )
