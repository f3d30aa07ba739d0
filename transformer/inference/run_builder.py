"""Make a Run or a Batch from ids: one pass of the network with a trace, and labels."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from transformer.inference.beam import BeamResult
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.changes import digest
from transformer.inference.generation import forced_steps
from transformer.inference.loaded import LoadedModel, Prepared
from transformer.inference.logit_sources import pad, text_in
from transformer.interventions.descriptions import places_of
from transformer.interventions.hooks import continued
from transformer.messages import numeral, say
from transformer.model.blocks import Embedding, Stack
from transformer.model.functional import on_device
from transformer.model.hooks import Hook, OwnHook
from transformer.model.trace import Trace
from transformer.model.transformer import EncoderDecoder
from transformer.runs.batch import Batch
from transformer.runs.compact_trace import CompactedRecords
from transformer.runs.request import Request
from transformer.runs.run import OWN_HOOKS, Run
from transformer.runs.steps import GenerationStep, LazyLabels, Search
from transformer.tokenizer import PADDING


@torch.no_grad()
def run_of(
    model: LoadedModel,
    request: Request,
    prepared: Prepared,
    steps: Sequence[GenerationStep],
    *,
    ended: bool,
    result: BeamResult | None = None,
    hooks: Sequence[Hook] = (),
    session: DecodeSession | None = None,
) -> Run:
    """A Run of these steps (or of the best hypothesis), with the trace of one pass over it.

    steps: with their `new_text`, see `Writer`. result: of a beam search; a session has then read
    the prompt alone. hooks: apply the request's interventions. session: generated the steps, if an
    engine did; it has the trace already, unless the window slid.
    """
    source, prompt, types = prepared
    tokens = list(result.hypotheses[0].ids) if result else [step.token for step in steps]
    ids = prompt + tokens
    # A decoder-only window slides; an encoder-decoder's does not, and its last token may be unread.
    slides = not isinstance(model.network, EncoderDecoder)
    start = max(0, len(ids) - model.config.output_max_len) if slides else 0
    window = ids[start:][: model.config.output_max_len]
    engine, trace, weights = "network", None, ""
    logits: Tensor | None = None
    predicted: Tensor | None = None  # (T, V), from the prompt's last token on
    if session is not None and not (steps or result or start) and _can_trace(session):
        logits = session.begin(window, source, len(window))[None]
    if session is not None and session.ids and not start:
        engine = session.engine.name
        predicted = session.read_each(window[len(prompt) :]) if result else None
        trace, weights = session.trace_of(window), session.weights
    if trace is None:
        weights = digest(model.network)
        trace, logits = _full_pass(model, source, window, continued(hooks, start), types)
        predicted = logits[0, len(prompt) - 1 :]
    if result and predicted is not None:
        steps = forced_steps(predicted[: len(tokens)], tokens, len(prompt), model.tokenizer.text)
        steps = written(model, prepared, steps)
    return Run(
        model=model.name,
        config=model.config,
        request=request,
        ids=tuple(ids),
        labels=tuple(model.tokenizer.labels(ids)),
        n_prompt=len(prompt),
        source_ids=tuple(source),
        source_labels=tuple(model.tokenizer.labels(source)),
        special_ids=_special_ids(model, {*source, *ids}),
        text=text_of(model, request, prompt, tokens),
        steps=tuple(steps),
        stopped=_why_stopped(model, request, tokens, ended),
        trace=trace,
        trace_start=start,
        position_matrices=_position_matrices(model),
        candidate_labels=LazyLabels(model.tokenizer.label, lambda: _candidates(steps, result)),
        search=_search_of(model, request, result) if result else None,
        engine=engine,
        read_as=_read_as(model, request),
        warnings=(
            *(() if request.input_ids else model.warnings(request.text)),
            *_left_out(model, request, len(prompt), len(ids)),
        ),
        logits=logits if request.max_new_tokens == 0 and model.config.head != "none" else None,
        weights=weights,
        altered_by=_altered_by(hooks),
    )


def _can_trace(session: DecodeSession) -> bool:
    """Whether a session's engine computes what a pass of the network now would record."""
    engine = session.engine
    usual = engine.network.config.scores_from_heads
    # Reading the weights again may make copies.
    return usual and not engine.has_copies and engine.refresh() and not engine.has_copies


def _read_as(model: LoadedModel, request: Request) -> str | None:
    """See `Run.read_as`."""
    read = request.text if request.input_ids else model.reader.read_as(request.text)
    return None if read == request.text else read


def _left_out(model: LoadedModel, request: Request, n_prompt: int, n_ids: int) -> Iterator[str]:
    """Sentences on what was asked for and is not in the run."""
    most = model.config.output_max_len
    if n_prompt > most:
        yield say(
            "The text is {n_tokens} tokens long; only the last {most} are read.",
            n_tokens=numeral(n_prompt, ","),
            most=numeral(most, ","),
        )
    places = {at for i in request.interventions for stack, at in places_of(i) if stack == "decoder"}
    if unmet := sorted(at for at in places if at >= n_ids):
        yield say("The text ended before place {place}, which was to be altered.", place=unmet[0])


def _altered_by(hooks: Sequence[Hook]) -> str | None:
    """What altered the pass and no request describes: `Run.altered_by`."""
    return OWN_HOOKS if any(isinstance(h, OwnHook) and h.has_changed for h in hooks) else None


def _special_ids(model: LoadedModel, ids: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(filter(model.tokenizer.is_special, {*ids})))


def _position_matrices(model: LoadedModel) -> dict[str, Tensor]:
    return {
        stack: matrix
        for stack, embedding in model.network.embeddings.items()
        if (matrix := _position_matrix(embedding, getattr(model.network, stack))) is not None
    }


def _full_pass(
    model: LoadedModel,
    source: list[int],
    ids: list[int],
    hooks: Sequence[Hook],
    types: Sequence[int] = (),
) -> tuple[Trace, Tensor]:
    """The trace of one text and its logits (1, T, V), by the network itself."""
    records = _new_records(model)
    trace = Trace(records=records)
    rows = [source, ids] if isinstance(model.network, EncoderDecoder) else [ids]
    tensors = [torch.tensor([row], device=model.device) for row in rows]
    more = {"types": torch.tensor([list(types)], device=model.device)} if types else {}
    return trace, model.network(*tensors, trace=trace, hooks=[records, *hooks], **more)


def _new_records(model: LoadedModel) -> CompactedRecords:
    """Records for one pass, without scores and weights that can be recomputed exactly."""
    exact = model.network.config.scores_from_heads and model.network.dtype == torch.float32
    return CompactedRecords(
        model.config.heads_per_key, exact=exact, most_bytes=model.most_recorded_bytes
    )


@torch.no_grad()
def batch_of(
    model: LoadedModel,
    texts: Sequence[str],
    request: Request,
    rows: Sequence[Prepared],
    outputs: Sequence[str] = (),
    hooks: Sequence[Hook] = (),
) -> Batch:
    """One padded pass over rows: sources and targets of an encoder-decoder, else the ids alone.

    request: what the batch says it was read with. outputs: each row's translation, for an
    encoder-decoder. hooks: alter the network. For a model without a padding token any id fills the
    rows; the mask hides it.
    """
    config, records = model.config, _new_records(model)
    trace, hooks, weights = Trace(records=records), [records, *hooks], digest(model.network)
    targets = [row.ids for row in rows]
    if isinstance(model.network, EncoderDecoder):
        sources = [row.source for row in rows]
        fields, written = _padded(model, sources), _padded(model, targets)
        logits = model.network(
            on_device(fields["ids"], model.device), on_device(written["ids"], model.device),
            src_is_text=text_in(sources, model.device), tgt_is_text=text_in(targets, model.device),
            trace=trace, hooks=hooks,
        )  # fmt: skip
        fields |= {f"target_{name}": value for name, value in written.items()}
    else:
        fields = _padded(model, targets)
        ids, is_text = on_device(fields["ids"], model.device), text_in(targets, model.device)
        more = {}
        if any(row.types for row in rows):
            types = pad([row.types or [0] * len(row.ids) for row in rows], 0)
            fields["token_types"] = types
            more = {"types": on_device(types, model.device)}
        logits = model.network(ids, is_text=is_text, trace=trace, hooks=hooks, **more)
    return Batch(
        model=model.name,
        config=config,
        texts=tuple(texts),
        request=request,
        outputs=tuple(outputs),
        trace=trace,
        logits=None if config.head == "none" else logits,
        special_ids=_special_ids(model, {at for row in rows for ids in row for at in ids}),
        position_matrices=_position_matrices(model),
        weights=weights,
        altered_by=_altered_by(hooks),
        **fields,
    )


def _padded(model: LoadedModel, rows: Sequence[Sequence[int]]) -> dict[str, Any]:
    """A Batch's fields for one stack, on the CPU: ids, labels, and which are not padding."""
    ids = pad(rows, model.tokenizer.padding_id)
    has_padding = model.config.padding_id is not None
    filler = model.tokenizer.label(model.tokenizer.padding_id) if has_padding else PADDING
    labels = tuple(
        (*model.tokenizer.labels(row), *[filler] * (ids.shape[1] - len(row))) for row in rows
    )
    lengths = torch.tensor([len(row) for row in rows], device="cpu")
    return {
        "ids": ids,
        "labels": labels,
        "padding": torch.arange(ids.shape[1], device="cpu") < lengths[:, None],
    }


class Writer:
    """Adds to each step of a text, in their order, the whole characters that it completes.

    before: the ids of the text that the first step continues.
    """

    def __init__(self, model: LoadedModel, before: Sequence[int]) -> None:
        self._tokenizer, self._ids = model.tokenizer, list(before)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def written(self, step: GenerationStep) -> GenerationStep:
        """The step with its `new_text`."""
        raw = self._tokenizer.added(self._ids, [step.token])
        self._ids.append(step.token)
        return GenerationStep(  # in half the time of dataclasses.replace
            index=step.index,
            token=step.token,
            window=step.window,
            candidates=step.candidates,
            n_kept=step.n_kept,
            new_text=self._decoder.decode(raw),
        )


def written(
    model: LoadedModel, prepared: Prepared, steps: Sequence[GenerationStep]
) -> list[GenerationStep]:
    """The steps of a text with their `new_text`."""
    writer = Writer(model, () if prepared.source else prepared.ids)
    return [*map(writer.written, steps)]


def text_of(
    model: LoadedModel, request: Request, prompt: Sequence[int], tokens: Sequence[int]
) -> str:
    """Prompt and generated tokens as text; a translation without its source.

    A character whose last bytes are missing is left out.
    """
    if model.config.family == "encoder-decoder":
        return complete_characters(model.tokenizer.whole(tokens))
    return request.text + complete_characters(model.tokenizer.added(prompt, tokens))


def complete_characters(raw: bytes) -> str:
    """Decode UTF-8, leaving out an incomplete character at the end."""
    return codecs.getincrementaldecoder("utf-8")(errors="replace").decode(raw, final=False)


def _search_of(model: LoadedModel, request: Request, result: BeamResult) -> Search:
    return Search(
        hypotheses=tuple(result.hypotheses),
        texts=tuple(
            text_of(model, request, (), hypothesis.ids) for hypothesis in result.hypotheses
        ),
        tree=tuple(tuple(nodes) for nodes in result.steps),
    )


def _candidates(steps: Sequence[GenerationStep], result: BeamResult | None) -> set[int]:
    """Ids of all candidates of the steps or the search."""
    ids = {candidate.id for step in steps for candidate in step.candidates}
    if result:
        ids |= {node.token for nodes in result.steps for node in nodes}
    return ids


def has_stopped(model: LoadedModel, request: Request, tokens: Sequence[int]) -> bool:
    """Whether the last of these new tokens completes one of the request's stop texts."""
    if not request.stop:
        return False
    texts = [text.encode() for text in request.stop]
    last = tokens[-max(map(len, texts)) :]  # a token has a byte or more
    return any(text in model.tokenizer.to_bytes(last) for text in texts)


def _why_stopped(model: LoadedModel, request: Request, tokens: Sequence[int], ended: bool) -> str:
    if tokens and tokens[-1] in model.tokenizer.end_ids:
        return "end"
    if has_stopped(model, request, tokens):
        return "stop"
    if request.max_new_tokens == 0:
        return "read"
    return "length" if ended or len(tokens) == request.max_new_tokens else "cancelled"


def _position_matrix(embedding: Embedding, layers: Stack) -> Tensor | None:
    """The added vectors (max_len, C); the cosines and sines of rotary positions (max_len, R); what
    each head of the first layer adds to the score of a key by its distance before the query
    (max_len, H); None for a network without positions."""
    matrix = (layers.rotation or embedding.positions).matrix
    if matrix is not None:
        return matrix
    first: Any = layers.layers[0]
    added = layers.relative or first.self_attention.relative
    if added is None:
        return None
    distances = torch.arange(layers.max_len, device=next(layers.parameters()).device)
    bias: Tensor = added(distances, distances[:1])  # (H, max_len, 1)
    return bias.detach()[..., 0].T
