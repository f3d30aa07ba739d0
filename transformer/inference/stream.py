"""Generation token by token, and beam searches, which have no result before their end."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence

from transformer.inference.beam import beam_search
from transformer.inference.decode_session import DecodeSession, session_of
from transformer.inference.generation import generate
from transformer.inference.loaded import LoadedModel
from transformer.inference.request_hooks import check_interventions, check_places, hooks_for
from transformer.inference.run_builder import Writer, has_stopped, run_of, text_of
from transformer.model.hooks import Hook, HookLike, called
from transformer.model.transformer import EncoderDecoder
from transformer.runs.request import Request
from transformer.runs.run import Run
from transformer.runs.steps import GenerationStep


class Stream:
    """A running generation: iterate over its steps; `run()` works at any time.

    A beam search yields all its steps at the end.
    """

    def __init__(
        self, model: LoadedModel, request: Request, hooks: Sequence[HookLike] = ()
    ) -> None:
        """hooks: the caller's own, applied after the request's interventions."""
        self._model = model = model.in_languages(request)
        self.request = request
        self._own_hooks = called(hooks, model.network.points)
        self._prepared = model.prepare_request(request)
        if request.interventions:
            check_interventions(model, request, self._prepared)
            check_places(model, request, self._prepared)
        self._writer = Writer(model, () if self._prepared.source else self._prepared.ids)
        self.steps: list[GenerationStep] = []
        self._ended = False
        self._searched: Run | None = None
        self._steps = self._search() if request.beams > 1 else self._generate()

    def __repr__(self) -> str:
        """One line: the model and the progress."""
        of = self.request.max_new_tokens
        return f"<Stream of {self._model.name!r}: {len(self.steps)} of at most {of} new tokens>"

    def __iter__(self) -> Iterator[GenerationStep]:
        return self

    def __next__(self) -> GenerationStep:
        try:
            step = self._writer.written(next(self._steps))
        except StopIteration:
            self._ended = True
            raise
        self.steps.append(step)
        return step

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """The first n_prompt ids of the run."""
        return tuple(self._prepared.ids)

    @property
    def source_ids(self) -> tuple[int, ...]:
        """The encoder's ids; empty without one."""
        return tuple(self._prepared.source)

    @property
    def n_prompt(self) -> int:
        """The number of ids that the decoder starts with."""
        return len(self._prepared.ids)

    @property
    def text(self) -> str:
        """Text so far: the prompt and what was generated (a translation without its source).

        An incomplete character at its end is left out.
        """
        tokens = [step.token for step in self.steps]
        return text_of(self._model, self.request, self.prompt_ids, tokens)

    def finish(self) -> Run:
        """Generate to the end and return the run."""
        for _ in self:
            pass
        return self.run()

    def run(self) -> Run:
        """The run so far, with the trace of one pass over it."""
        if self._searched is not None:
            return self._searched
        return run_of(
            self._model,
            self.request,
            self._prepared,
            self.steps,
            ended=self._ended,
            hooks=self._hooks,
            session=self._session,
        )

    @functools.cached_property
    def _session(self) -> DecodeSession | None:
        return session_of(self._model.engine, self._hooks)

    @functools.cached_property
    def _hooks(self) -> Sequence[Hook]:
        if not self.request.interventions:
            return self._own_hooks
        return (*hooks_for(self._model, self.request, self._prepared), *self._own_hooks)

    def _generate(self) -> Iterator[GenerationStep]:
        source, ids, _ = self._prepared
        for (step,) in generate(
            self._model.generator_network,
            [ids],
            sources=[source] if source else None,
            max_new_tokens=self.request.max_new_tokens,
            end_ids=self._model.tokenizer.end_ids,
            forced_end=self._model.tokenizer.forced_end,
            sampling=self.request.sampling,
            seeds=[self.request.seed],
            session=self._session,
            forced_tokens=self.request.forced_tokens,
            hooks=self._hooks,
            text_of=self._model.tokenizer.text,
            repetition_penalty=self.request.repetition_penalty,
            is_stopped=lambda tokens: has_stopped(self._model, self.request, tokens),
        ):
            assert step is not None  # a single row: generation stops when it ends
            yield step

    def _search(self) -> Iterator[GenerationStep]:
        (self._searched,) = search(self._model, [self.request])
        yield from self._searched.steps


def search(model: LoadedModel, requests: Sequence[Request]) -> list[Run]:
    """Beam searches, all in one batch; the requests differ in their text alone.

    Raises ValueError for a model that is not an encoder-decoder.
    """
    network, first = model.network, requests[0]
    model.check(first)
    assert isinstance(network, EncoderDecoder)
    prepared = [model.prepare_request(request) for request in requests]
    if first.max_new_tokens == 0:
        return [
            run_of(model, request, row, [], ended=False)
            for request, row in zip(requests, prepared, strict=True)
        ]
    engine = model.engine if model.engine is not None and model.engine.refresh() else None
    sessions = [] if engine is None else [DecodeSession(engine) for _ in requests]
    results = beam_search(
        network,
        [row.source for row in prepared],
        start=model.tokenizer.target_start,
        end_ids=model.tokenizer.end_ids,
        forced_end=model.tokenizer.forced_end,
        beams=first.beams,
        max_new_tokens=first.max_new_tokens,
        length_penalty=first.length_penalty,
        sessions=sessions,
    )
    return [
        run_of(model, request, row, [], ended=True, result=result, session=session)
        for request, row, result, session in itertools.zip_longest(
            requests, prepared, results, sessions
        )
    ]
