"""A generation under way."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from transformer.inference.altered import changes_for, check_interventions
from transformer.inference.generation import GenerationStep, generate
from transformer.inference.reading import Reading
from transformer.inference.record import run_of, text_of
from transformer.inference.request import Request
from transformer.inference.run import Run
from transformer.model.changes import Changes

if TYPE_CHECKING:
    from transformer.inference.model import Model


class Stream:
    """A generation under way: iterate for the steps, then (or at any time) take `run()`.

    A beam search knows its best text only at the end: all its steps come together then.
    """

    def __init__(self, model: Model, request: Request) -> None:
        self._model = model
        self.request = request
        self._prepared = model.prepare(request.text)
        check_interventions(model, request, self._prepared)
        self.steps: list[GenerationStep] = []
        self._ended = False
        self._searched: Run | None = None
        self._steps = self._search() if request.beams > 1 else self._generate()

    def __iter__(self) -> Iterator[GenerationStep]:
        return self

    def __next__(self) -> GenerationStep:
        try:
            step = next(self._steps)
        except StopIteration:
            self._ended = True
            raise
        self.steps.append(step)
        return step

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """What the decoder starts from: the first n_prompt ids of the run."""
        return tuple(self._prepared.ids)

    @property
    def source_ids(self) -> tuple[int, ...]:
        """What the encoder reads; empty without one."""
        return tuple(self._prepared.source)

    @property
    def n_prompt(self) -> int:
        """How many ids the decoder starts from."""
        return len(self._prepared.ids)

    @property
    def text(self) -> str:
        """Text so far: the prompt and what was generated (a translation without its source).

        A character of which only some bytes exist yet is left out.
        """
        return text_of(self._model, self.request, [step.token for step in self.steps])

    def run(self) -> Run:
        """What happened so far, with the trace of one pass over it."""
        if self._searched is not None:
            return self._searched
        return run_of(
            self._model,
            self.request,
            self._prepared,
            self.steps,
            ended=self._ended,
            changes=self._changes,
            reading=self._reading,
        )

    @functools.cached_property
    def _reading(self) -> Reading | None:
        """A fast engine reads one text as an unaltered network would."""
        engine = self._model.engine if self._changes is None else None
        return None if engine is None else Reading(engine)

    @functools.cached_property
    def _changes(self) -> Changes | None:
        return changes_for(self._model, self.request, self._prepared)

    def _generate(self) -> Iterator[GenerationStep]:
        source, ids = self._prepared
        for (step,) in generate(
            self._model.generator_network,
            [ids],
            sources=[source] if source else None,
            max_new_tokens=self.request.max_new_tokens,
            end_id=self._model.tokenizer.end_id,
            sampling=self.request.sampling,
            seeds=[self.request.seed],
            reading=self._reading,
            taken=self.request.taken,
            changes=self._changes,
        ):
            assert step is not None  # a single row: generation stops when it ends
            yield step

    def _search(self) -> Iterator[GenerationStep]:
        (self._searched,) = self._model.search([self.request])
        yield from self._searched.steps
