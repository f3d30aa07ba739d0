"""Read the text before one token of a run again, in many variants at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from transformer.checks import check_whole, is_whole, shortened
from transformer.inference import deadline
from transformer.inference.engines.changes import digest
from transformer.inference.loaded import LoadedModel, Prepared
from transformer.inference.request_hooks import hooks_for
from transformer.interventions.hooks import continued
from transformer.model.cache import KeyValueCache
from transformer.model.hooks import ForwardContext, Hook
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly
from transformer.runs.compact_trace import qkv_at
from transformer.runs.run import Run

T = TypeVar("T")

MAX_WEIGHTS = 16_000_000  # attention weights of one layer that a batch of variants may take
MAX_OPERATIONS = 2e10  # of a batch, about 0.2 s on two cores; other requests run between batches


def check_run(model: Any, run: Any) -> None:
    """Raise ValueError unless these are a model and a run, in this order."""
    if not isinstance(model, LoadedModel) or not isinstance(run, Run):
        raise ValueError(
            "an analysis takes a model and a run of one text, as model.trace(text) or a batch's "
            f"batch[0]; got {type(model).__name__} and {type(run).__name__}"
        )


def check_made_by(model: LoadedModel, run: Run) -> None:
    """Raise ValueError unless the network reads the run's text as it was read: a run of another
    configuration or other weights, or that something else altered, cannot be read again."""
    check_run(model, run)
    model.check_evaluates()
    if run.config != model.config:
        raise ValueError(
            f"the layers of a run need the model that made it, {run.model}; got "
            f"{model.name}, whose configuration is another"
        )
    if run.altered_by is not None:
        raise ValueError(
            f"this run was made with {run.altered_by}, which no analysis can repeat; needed: a run "
            "without, or with interventions"
        )
    if run.weights not in (None, digest(model.network)):
        raise ValueError(
            f"the weights of {model.name} are not those that made this run; needed: the model as "
            "it was, or a new run"
        )


def altered(model: LoadedModel, run: Run) -> Sequence[Hook]:
    """Hooks of the run's interventions, for a pass over the tokens of its trace."""
    prompt = Prepared(list(run.source_ids), list(run.ids[: run.n_prompt]))
    return continued(hooks_for(model, run.request, prompt), run.trace_start)


@dataclass(frozen=True, slots=True, eq=False)
class TextBefore:
    """The text that the network reads before one token of a run. at: the row of the logits. types:
    an encoder's token types; empty where all are 0."""

    network: DecoderOnly | EncoderOnly | EncoderDecoder
    source: tuple[int, ...]
    ids: tuple[int, ...]
    at: int = -1
    types: tuple[int, ...] = ()

    @classmethod
    def of(cls, model: LoadedModel, run: Run, position: int) -> TextBefore:
        """Before the token at `position` of the run's ids, one that a decoder predicts;
        len(run.ids) is the one that would follow the text."""
        check_run(model, run)
        first, last = run.trace_start + 1, _last_read(run) + 1
        if not is_whole(position) or not first <= position <= last:
            raise ValueError(
                "the token must be one that the network predicted, at a place from "
                f"{first} to {last}; got {shortened(position)}"
            )
        return dataclasses.replace(
            cls.up_to(model, run, position - 1), network=model.generator_network
        )

    @classmethod
    def up_to(cls, model: LoadedModel, run: Run, position: int) -> TextBefore:
        """Up to the token at `position`, for what follows it; an encoder reads the whole text and
        predicts the token there. Raises ValueError for a position that the network does not read,
        and for a network that predicts no tokens."""
        check_made_by(model, run)
        model.network.check_predicts()
        check_whole("position", position, run.trace_start, _last_read(run))
        if isinstance(model.network, EncoderOnly):
            return cls(model.network, (), run.ids, position, tuple(run.request.token_type_ids))
        return cls(model.network, run.source_ids, run.ids[run.trace_start : position + 1])

    def log_probabilities(self, hooks: Sequence[Hook], n_rows: int = 1) -> Tensor:
        """(n_rows, V) of the next token, each row as the hooks alter it."""
        return self.logits(hooks, n_rows).log_softmax(dim=-1)

    def logits(self, hooks: Sequence[Hook], n_rows: int = 1) -> Tensor:
        """Logits (n_rows, V) of the next token."""
        device = self.network.device
        ids = torch.tensor([self.ids], device=device).expand(n_rows, -1)
        where = torch.zeros(ids.shape, dtype=torch.bool, device=device)
        where[:, self.at] = True
        if isinstance(self.network, EncoderDecoder):
            source = torch.tensor([self.source], device=device).expand(n_rows, -1)
            logits = self.network(source, ids, where=where, hooks=hooks)
        else:
            logits = self.network(ids, where=where, hooks=hooks, **self._types(n_rows))
        return logits.float()

    def all_logits(self, hooks: Sequence[Hook]) -> Tensor:
        """(T, V): of the token after each of the text's tokens."""
        device = self.network.device
        ids = torch.tensor([self.ids], device=device)
        if isinstance(self.network, EncoderDecoder):
            source = torch.tensor([self.source], device=device)
            return self.network(source, ids, hooks=hooks)[0].float()
        return self.network(ids, hooks=hooks, **self._types())[0].float()

    def _types(self, n_rows: int = 1) -> dict[str, Tensor]:
        """The token types as an option of the network."""
        if not any(self.types):
            return {}
        types = torch.tensor([self.types], device=self.network.device)
        return {"types": types.expand(n_rows, -1)}

    def resumed(self, run: Run, hooks: Sequence[Hook]) -> Tensor:
        """(1, V) as `logits`, of a run without interventions: only its last token is read again,
        with the keys and values that the run recorded. The hooks see this one row.
        """
        network, n_before = self.network, len(self.ids) - 1
        assert not isinstance(network, EncoderOnly)
        device, dtype = network.device, network.dtype
        share = run.config.n_heads // run.config.key_heads
        cache = KeyValueCache()
        cache.length = n_before
        for site in (place for place in run.trace.sites if place.stack == "decoder"):
            _, k, v, _ = qkv_at(run.trace, site, share)
            end = None if site.kind == "cross" else n_before
            cache.put(site, k[:, :, :end].to(device, dtype), v[:, :, :end].to(device, dtype))
        ids = torch.tensor([self.ids[-1:]], device=network.device)
        if isinstance(network, DecoderOnly):
            return network(ids, cache=cache, hooks=hooks)[:, -1].float()
        source = torch.tensor([self.source], device=network.device)
        memory = run.trace.residuals["encoder"][-1]  # whose keys and values are in the cache
        return network.decode(ids, memory, source, cache=cache, hooks=hooks)[:, -1].float()

    def from_layer(self, run: Run, layer: int, hooks: Sequence[Hook], n_rows: int = 1) -> Tensor:
        """(n_rows, V) as `logits`, of a run without interventions through a network of one stack:
        from a layer on, which the recorded residual stream enters. The hooks see no point before.
        """
        network, stack = self.network, self.network.last_stack
        recorded = run.trace.residuals[stack.name][layer][:, : len(self.ids)]
        x = recorded.to(network.device, network.dtype).expand(n_rows, -1, -1)
        positions = torch.arange(len(self.ids), device=x.device)
        context = ForwardContext(causal=stack.name == "decoder", hooks=hooks)
        context = stack.placed(context, positions)
        for block in stack.layers[layer:]:
            x = block(x, context)
        return network.project(stack.end(x, context)[:, self.at]).float()

    @property
    def largest_batch(self) -> int:
        """How many variants are read at once."""
        longest = max(len(self.ids), len(self.source))
        n_weights = self.network.config.n_heads * longest**2
        n_parameters = sum(parameter.numel() for parameter in self.network.parameters())
        operations = 2 * n_parameters * (len(self.ids) + len(self.source))
        return max(1, min(MAX_WEIGHTS // n_weights, int(MAX_OPERATIONS // operations)))


def token_asked(run: Run, position: int, scores: Tensor) -> int:
    """The token at `position` of the run's ids; after their end the likeliest by scores (V,)."""
    return run.ids[position] if position < len(run.ids) else int(scores.argmax())


def _last_read(run: Run) -> int:
    """The last of the run's ids that its trace holds."""
    return min(len(run.ids), run.trace_start + run.config.output_max_len) - 1


def in_parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """At most `size` items at a time. Raises ValueError if the deadline has passed."""
    for start in range(0, len(items), size):
        deadline.check()
        yield items[start : start + size]
