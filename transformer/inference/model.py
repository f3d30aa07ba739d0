"""Where text and network meet: Model (a loaded checkpoint) and Stream (a generation under way)."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer.inference.generation import GenerationStep, generate, pad
from transformer.inference.request import Request, check_text, request_of
from transformer.inference.run import Batch, Run
from transformer.model.config import ModelConfig
from transformer.model.trace import Trace
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly
from transformer.text import Tokenizer


class Stream:
    """A generation under way: iterate for the steps, then (or at any time) take `run()`."""

    def __init__(self, model: Model, request: Request) -> None:
        self._model = model
        self.request = request
        self._source, self._ids = model._prepare(request.text)
        self.n_prompt = len(self._ids)
        self.steps: list[GenerationStep] = []
        self._ended = False
        self._steps = generate(
            model.generator_network,
            [self._ids],
            sources=[self._source] if self._source else None,
            max_new_tokens=request.max_new_tokens,
            end_id=model.tokenizer.end_id,
            sampling=request.sampling,
            seeds=[request.seed],
        )

    def __iter__(self) -> Iterator[GenerationStep]:
        return self

    def __next__(self) -> GenerationStep:
        try:
            (step,) = next(self._steps)
        except StopIteration:
            self._ended = True
            raise
        assert step is not None  # a single row: generation stops when it ends
        self.steps.append(step)
        return step

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """What the decoder starts from: the first n_prompt ids of the run."""
        return tuple(self._ids)

    @property
    def text(self) -> str:
        """Text so far: the prompt and what was generated (a translation without its source).

        A character of which only some bytes exist yet is left out.
        """
        return self._model._text(self.request, self.steps)

    def run(self) -> Run:
        """What happened so far, with the trace of one pass over it."""
        return self._model._finish(self.request, self._source, self._ids, self.steps, self._ended)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Model:
    """A trained network with its tokenizer. Shared by all visitors: nothing here changes."""

    name: str
    config: ModelConfig
    tokenizer: Tokenizer
    network: DecoderOnly | EncoderOnly | EncoderDecoder
    card: str = ""
    metadata: dict[str, Any] | None = None

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return self.network.device

    @property
    def n_parameters(self) -> int:
        """Trained numbers, tied ones counted once."""
        return self.network.n_parameters

    @property
    def generator_network(self) -> DecoderOnly | EncoderDecoder:
        """The network, if it has a decoder; else ValueError."""
        if isinstance(self.network, EncoderOnly):
            raise ValueError(f"{self.name} is an encoder: it reads text but cannot generate any")
        return self.network

    def stream(self, text: str, **settings: Any) -> Stream:
        """Generate token by token; `settings` are Request's fields."""
        return Stream(self, request_of(text, settings))

    def generate(self, text: str, **settings: Any) -> Run:
        """Generate to the end; `settings` are Request's fields."""
        stream = self.stream(text, **settings)
        for _ in stream:
            pass
        return stream.run()

    def generate_batch(
        self, texts: Sequence[str], seeds: Sequence[int] | None = None, **settings: Any
    ) -> list[Run]:
        """Generate for several texts at once; each gets the run that it gets alone.

        seeds: one for each text; by default all use the request's seed.
        """
        if not texts:
            raise ValueError("at least one text is needed; got an empty list")
        seeds = seeds or [settings.pop("seed", 0)] * len(texts)
        if len(seeds) != len(texts):
            raise ValueError(f"one seed a text is needed; got {len(seeds)} for {len(texts)} texts")
        requests = [
            request_of(text, {**settings, "seed": seed})
            for text, seed in zip(texts, seeds, strict=True)
        ]
        prepared = [self._prepare(text) for text in texts]
        rows: list[list[GenerationStep]] = [[] for _ in texts]
        sources = [source for source, _ in prepared]
        for steps in generate(
            self.generator_network,
            [ids for _, ids in prepared],
            sources=sources if all(sources) else None,
            max_new_tokens=requests[0].max_new_tokens,
            end_id=self.tokenizer.end_id,
            sampling=requests[0].sampling,
            seeds=seeds,
        ):
            for row, step in zip(rows, steps, strict=True):
                if step is not None:
                    row.append(step)
        return [
            self._finish(request, source, ids, row, ended=True)
            for request, (source, ids), row in zip(requests, prepared, rows, strict=True)
        ]

    def trace(self, texts: str | Sequence[str]) -> Run | Batch:
        """Read without generating: one text gives a Run, several give a padded Batch."""
        if isinstance(texts, str):
            request = Request(text=texts, max_new_tokens=0)
            source, ids = self._prepare(texts)
            return self._finish(request, source, ids, [], ended=False)
        return self._trace_batch(list(texts))

    @torch.inference_mode()
    def _trace_batch(self, texts: list[str]) -> Batch:
        if not texts:
            raise ValueError("at least one text is needed; got an empty list")
        for text in texts:
            check_text(text)
        rows = [self._prepare(text) for text in texts]
        if self.config.padding_id is None and len({len(read or own) for read, own in rows}) > 1:
            raise ValueError("texts of unequal length need a model with a padding_id; it has none")
        ids = pad([read or own for read, own in rows], self.tokenizer.padding_id)
        trace = Trace()
        if isinstance(self.network, EncoderDecoder):
            targets = pad([row[1] for row in rows], self.tokenizer.padding_id)
            self.network(ids.to(self.device), targets.to(self.device), trace=trace)
        else:
            self.network(ids.to(self.device), trace=trace)
        return Batch(
            model=self.name,
            texts=tuple(texts),
            ids=ids,
            labels=tuple(tuple(self.tokenizer.labels(row)) for row in ids.tolist()),
            padding=ids != self.tokenizer.padding_id,
            trace=trace,
        )

    def _prepare(self, text: str) -> tuple[list[int], list[int]]:
        """(source ids, ids that the decoder starts from)."""
        ids = self.tokenizer.encode(text)
        if self.config.family == "encoder-decoder":
            source = [*ids, self.tokenizer.end_id]
            if len(source) > self.config.max_len:
                raise ValueError(
                    f"the text is {len(source)} tokens long; {self.name} reads at most "
                    f"{self.config.max_len}"
                )
            return source, [self.tokenizer.start_id]
        return [], [self.tokenizer.end_id, *ids]

    def _text(self, request: Request, steps: Sequence[GenerationStep]) -> str:
        raw = self.tokenizer.to_bytes(step.token for step in steps)
        prompt = "" if self.config.family == "encoder-decoder" else request.text
        return prompt + _complete_characters(raw)

    @torch.inference_mode()
    def _finish(
        self,
        request: Request,
        source: list[int],
        prompt: list[int],
        steps: Sequence[GenerationStep],
        ended: bool,
    ) -> Run:
        ids = prompt + [step.token for step in steps]
        start = max(0, len(ids) - self.config.max_len)
        trace = Trace()
        window = torch.tensor([ids[start:]], device=self.device)
        if isinstance(self.network, EncoderDecoder):
            self.network(torch.tensor([source], device=self.device), window, trace=trace)
        else:
            self.network(window, trace=trace)
        return Run(
            model=self.name,
            config=self.config,
            request=request,
            ids=tuple(ids),
            labels=tuple(self.tokenizer.labels(ids)),
            n_prompt=len(prompt),
            source_ids=tuple(source),
            source_labels=tuple(self.tokenizer.labels(source)),
            text=self._text(request, steps),
            steps=tuple(steps),
            stopped=_why_stopped(request, steps, ended, self.tokenizer.end_id),
            trace=trace,
            trace_start=start,
            position_matrices=_position_matrices(self.network),
            candidate_labels={
                candidate.id: self.tokenizer.label(candidate.id)
                for step in steps
                for candidate in step.candidates
            },
        )


def _complete_characters(raw: bytes) -> str:
    """Decode, leaving out a character at the end of which only the first bytes are there."""
    return codecs.getincrementaldecoder("utf-8")(errors="replace").decode(raw, final=False)


def _why_stopped(
    request: Request, steps: Sequence[GenerationStep], ended: bool, end_id: int
) -> str:
    if steps and steps[-1].token == end_id:
        return "end"
    if request.max_new_tokens == 0:
        return "read"
    return "length" if ended or len(steps) == request.max_new_tokens else "cancelled"


def _position_matrices(network: DecoderOnly | EncoderOnly | EncoderDecoder) -> dict[str, Tensor]:
    if isinstance(network, EncoderDecoder):
        return {
            "encoder": network.source_embedding.positions.matrix,
            "decoder": network.target_embedding.positions.matrix,
        }
    stack = "decoder" if isinstance(network, DecoderOnly) else "encoder"
    return {stack: network.embedding.positions.matrix}
