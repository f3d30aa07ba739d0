"""What the page and the API share: the models, the kept runs, and how to run the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from transformer.inference.generation import GenerationStep
from transformer.inference.model import Model
from transformer.inference.run import Batch, Run
from transformer.ui.limits import check_input, check_length, check_texts
from transformer.ui.store import RunStore, on_cpu

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

EXAMPLE = {"max_new_tokens": 40, "temperature": 0.7, "top_k": 40, "seed": 3}
EXAMPLE_TEXT = "Once upon a time"
EXAMPLE_BATCH = (
    "The fox ran.",
    "Lily went to the park with her mom.",
    "It was a sunny day.",
)


class Service:
    """One a server. `models` and `store` are shared by all visitors and safe to share.

    gpu: wraps what runs the network (a Space's accelerator may be lent for the time of such a
    call, in another process: so these take and give plain, picklable values).
    """

    def __init__(self, models: Sequence[Model], gpu: Decorator | None = None) -> None:
        if not models:
            raise ValueError("the page needs at least one model; got none")
        self.models = {model.name: model for model in models}
        self.store = RunStore()
        wrap = gpu or (lambda function: function)
        self._steps = wrap(self._steps_of)
        self._finish = wrap(self._run_of)
        self._trace = wrap(self._trace_of)
        self._read = wrap(self._batch_of)
        self.examples = {name: self._example(name) for name in self.models}

    def model(self, name: Any) -> Model:
        """The model of a name. Raises ValueError that lists the names for an unknown one."""
        if not isinstance(name, str) or name not in self.models:
            raise ValueError(f"model must be one of {list(self.models)}; got {name!r}")
        return self.models[name]

    def stream(
        self, name: str, text: str, **settings: Any
    ) -> tuple[tuple[str, ...], Iterator[GenerationStep]]:
        """(labels of the prompt's tokens, the steps as they come). ValueError for bad input."""
        model = self.model(name)
        check_length(settings.get("max_new_tokens"))
        stream = model.stream(check_input(text), **settings)  # only the tokenizer runs as yet
        labels = model.tokenizer.labels(stream.prompt_ids)
        return tuple(labels), self._steps(name, text, settings)

    def finish(self, name: str, text: str, steps: Sequence[GenerationStep], **settings: Any) -> Run:
        """The run that these steps make, with its trace."""
        run: Run = self._finish(name, text, settings, list(steps))
        return run

    def generate(self, name: str, text: str, **settings: Any) -> Run:
        """All of it at once."""
        _, steps = self.stream(name, text, **settings)
        return self.finish(name, text, list(steps), **settings)

    def batch(self, name: str, texts: Sequence[str]) -> Batch:
        """Several texts read at once, padded. Raises ValueError for bad input."""
        self.model(name)
        batch: Batch = self._read(name, check_texts(texts))
        return batch

    def read(self, name: str, text: str) -> Run:
        """One text, read and not continued. Raises ValueError for bad input."""
        self.model(name)
        run: Run = self._trace(name, check_input(text))
        return run

    def _steps_of(self, name: str, text: str, settings: dict[str, Any]) -> Iterator[GenerationStep]:
        yield from self.models[name].stream(text, **settings)

    def _run_of(
        self, name: str, text: str, settings: dict[str, Any], steps: list[GenerationStep]
    ) -> Run:
        stream = self.models[name].stream(text, **settings)
        stream.steps.extend(steps)
        return on_cpu(stream.run())

    def _trace_of(self, name: str, text: str) -> Run:
        run = self.models[name].trace(text)
        assert isinstance(run, Run)  # a single text always gives one
        return on_cpu(run)

    def _batch_of(self, name: str, texts: list[str]) -> Batch:
        batch = self.models[name].trace(texts)
        assert isinstance(batch, Batch)  # a list of texts always gives one
        return on_cpu(batch)

    def _example(self, name: str) -> tuple[str, str]:
        """(run id, batch id) of what the page shows before a visitor has done anything."""
        if self.models[name].config.family == "encoder":
            run = self.read(name, EXAMPLE_TEXT)
        else:
            run = self.generate(name, EXAMPLE_TEXT, **EXAMPLE)
        return self.store.pin(run), self.store.pin(self.batch(name, EXAMPLE_BATCH))
