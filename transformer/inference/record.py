"""From ids to a Run or a Batch: one pass of the network with a trace, and its tokens' labels."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from transformer.inference.beam import BeamResult
from transformer.inference.generation import GenerationStep, forced_steps
from transformer.inference.kept import kept
from transformer.inference.later import Labels
from transformer.inference.readers import pad
from transformer.inference.reading import Reading
from transformer.inference.readout import LaterLens, LaterSurprise, Readout
from transformer.inference.request import Request
from transformer.inference.run import Batch, Lens, Run, Search
from transformer.model.changes import Changes
from transformer.model.trace import Trace
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly

if TYPE_CHECKING:
    from transformer.inference.model import Model


class Prepared(NamedTuple):
    """A text as ids: what the encoder reads (empty without one), what the decoder starts from."""

    source: list[int]
    ids: list[int]


@torch.inference_mode()
def run_of(
    model: Model,
    request: Request,
    prepared: Prepared,
    steps: Sequence[GenerationStep],
    *,
    ended: bool,
    found: BeamResult | None = None,
    changes: Changes | None = None,
    reading: Reading | None = None,
) -> Run:
    """What these steps (or the best hypothesis found) make, with the trace of one pass over it.

    changes: what the request's interventions alter; the pass is made with them. reading: what
    generated the steps, if it was packed weights; it has the trace already, unless the window slid.
    """
    source, prompt = prepared
    tokens = list(found.hypotheses[0].ids) if found else [step.token for step in steps]
    ids = prompt + tokens
    # A decoder-only window slides; an encoder-decoder's does not, and its last token may be unread.
    slides = not isinstance(model.network, EncoderDecoder)
    start = max(0, len(ids) - model.config.max_len) if slides else 0
    window = ids[start:][: model.config.max_len]
    trace = None if reading is None or start else reading.trace_of(window)
    engine = "network" if trace is None or reading is None else reading.engine.name
    if trace is None:
        trace, logits = _full_pass(model, source, window, changes)
        if found:
            steps = forced_steps(logits[len(prompt) - 1 :][: len(tokens)], tokens, len(prompt))
    readout = Readout(model.network, trace, torch.tensor(window, device=model.device), changes)
    lens = LaterLens(readout)
    return Run(
        model=model.name,
        config=model.config,
        request=request,
        ids=tuple(ids),
        labels=tuple(model.tokenizer.labels(ids)),
        n_prompt=len(prompt),
        source_ids=tuple(source),
        source_labels=tuple(model.tokenizer.labels(source)),
        text=text_of(model, request, tokens),
        steps=tuple(steps),
        stopped=_why_stopped(request, tokens, ended, model.tokenizer.end_id),
        trace=trace,
        trace_start=start,
        position_matrices=_position_matrices(model.network),
        candidate_labels=Labels(model.tokenizer.label, lambda: _candidates(steps, found, lens)),
        surprise=LaterSurprise(readout),
        lens=lens,
        search=_search_of(model, request, found) if found else None,
        engine=engine,
    )


def _full_pass(
    model: Model, source: list[int], ids: list[int], changes: Changes | None
) -> tuple[Trace, Tensor]:
    """The trace of one text and its logits (T, V), by the network itself."""
    trace = Trace()
    given = [source, ids] if isinstance(model.network, EncoderDecoder) else [ids]
    tensors = [torch.tensor([row], device=model.device) for row in given]
    logits = model.network(*tensors, trace=trace, changes=changes)[0]
    return _in_little_room(model, trace, changes), logits


def _in_little_room(model: Model, trace: Trace, changes: Changes | None) -> Trace:
    """Scores and weights only where they cannot be computed again as they were."""
    exact = changes is None and model.network.head.weight.dtype == torch.float32
    return kept(trace) if exact else trace


@torch.inference_mode()
def batch_of(
    model: Model,
    texts: Sequence[str],
    rows: Sequence[Prepared],
    outputs: Sequence[str] = (),
    changes: Changes | None = None,
) -> Batch:
    """One padded pass over rows: sources and targets of an encoder-decoder, else the ids alone.

    outputs: what each row's ids say, for an encoder-decoder. changes: what to alter. Raises
    ValueError if rows must be padded and the model knows no padding.
    """
    sides = [row.source for row in rows], [row.ids for row in rows]
    if model.config.padding_id is None and any(len(set(map(len, side))) > 1 for side in sides):
        raise ValueError("texts of unequal length need a model with a padding_id; it has none")
    sources, targets = (pad(side, model.tokenizer.padding_id) for side in sides)
    trace = Trace()
    both = isinstance(model.network, EncoderDecoder)
    if both:
        sides_on = sources.to(model.device), targets.to(model.device)
        model.network(*sides_on, trace=trace, changes=changes)
    else:
        model.network(targets.to(model.device), trace=trace, changes=changes)
    read = sources if both else targets
    return Batch(
        model=model.name,
        texts=tuple(texts),
        ids=read,
        labels=_labels(model, read),
        padding=read != model.tokenizer.padding_id,
        target_ids=targets if both else None,
        target_labels=_labels(model, targets) if both else (),
        target_padding=targets != model.tokenizer.padding_id if both else None,
        outputs=tuple(outputs),
        trace=_in_little_room(model, trace, changes),
    )


def text_of(model: Model, request: Request, tokens: Sequence[int]) -> str:
    """Prompt and generated tokens as text; a translation stands without its source.

    A character of which only the first bytes are there is left out.
    """
    raw = model.tokenizer.to_bytes(tokens)
    prompt = "" if model.config.family == "encoder-decoder" else request.text
    return prompt + complete_characters(raw)


def complete_characters(raw: bytes) -> str:
    """Decode UTF-8, leaving out a character at the end of which only the first bytes are there."""
    return codecs.getincrementaldecoder("utf-8")(errors="replace").decode(raw, final=False)


def _labels(model: Model, ids: Tensor) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(model.tokenizer.labels(row)) for row in ids.tolist())


def _search_of(model: Model, request: Request, found: BeamResult) -> Search:
    return Search(
        hypotheses=tuple(found.hypotheses),
        texts=tuple(text_of(model, request, hypothesis.ids) for hypothesis in found.hypotheses),
        tree=tuple(tuple(nodes) for nodes in found.steps),
    )


def _candidates(steps: Sequence[GenerationStep], found: BeamResult | None, lens: Lens) -> set[int]:
    """The ids that are candidates of a step, a layer or a search."""
    ids = {candidate.id for step in steps for candidate in step.candidates}
    ids |= set(lens.ids.unique().tolist())
    if found:
        ids |= {node.token for nodes in found.steps for node in nodes}
    return ids


def _why_stopped(request: Request, tokens: Sequence[int], ended: bool, end_id: int) -> str:
    if tokens and tokens[-1] == end_id:
        return "end"
    if request.max_new_tokens == 0:
        return "read"
    return "length" if ended or len(tokens) == request.max_new_tokens else "cancelled"


def _position_matrices(network: DecoderOnly | EncoderOnly | EncoderDecoder) -> dict[str, Tensor]:
    if isinstance(network, EncoderDecoder):
        return {
            "encoder": network.source_embedding.positions.matrix,
            "decoder": network.target_embedding.positions.matrix,
        }
    stack = "decoder" if isinstance(network, DecoderOnly) else "encoder"
    return {stack: network.embedding.positions.matrix}
