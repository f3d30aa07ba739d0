"""What the page and the API share: the models, the kept runs, and running the network."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar, Unpack

from transformer.checkpoint import CheckpointError
from transformer.checks import (
    InvalidCall,
    InvalidRequest,
    check_choice,
    check_each,
    check_text,
    check_whole,
    shortened,
)
from transformer.inference.deadline import CANCELLED, current
from transformer.inference.fill import Filled
from transformer.inference.model import Model
from transformer.inference.prompts import conversation
from transformer.inference.stream import Stream
from transformer.runs.batch import Batch
from transformer.runs.compact_trace import to_device
from transformer.runs.run import Run
from transformer.server.fields import CHAT, TEXT
from transformer.server.http.limits import (
    MAX_CHARACTERS,
    MAX_INTERVENTIONS,
    MAX_NEW_TOKENS,
    MAX_RECORDED_BYTES,
    MAX_TEXTS,
    MAX_TRAININGS,
)
from transformer.server.http.requests import OpenRequests, shares
from transformer.server.kept.experiments import Experiments
from transformer.server.kept.page_models import example_of
from transformer.server.kept.store import MemoryBudget, RunStore
from transformer.server.kept.trainings import OwnModels, Trainings, is_own

Item = TypeVar("Item", Run, Batch)


class Languages(TypedDict, total=False):
    """The languages of a translator that has several; see `Request`."""

    source_language: str | None
    target_language: str | None


class Service:
    """One per server, shared by all visitors.

    shares: which requests run now, and which wait. queries: what views and lessons ask of a model.

    budget: all that visits make the server keep. own: models of visits. trainings: how many
    networks may be trained at the same time.
    """

    def __init__(
        self, models: Sequence[Model], trainings: int = MAX_TRAININGS, *, debug: bool = False
    ) -> None:
        self.debug = debug  # whether a picture that fails is drawn as its traceback
        if not models:
            raise ValueError("the page needs at least one model; got none")
        check_distinct((model.name, f"model {place}") for place, model in enumerate(models, 1))
        self.models = {
            model.name: dataclasses.replace(model, most_recorded_bytes=MAX_RECORDED_BYTES)
            for model in models
        }
        self.budget = MemoryBudget()
        self.store, self.own = RunStore(self.budget), OwnModels(self.budget)
        self.shares = shares(trainings)
        self.trainings = Trainings(self.shares["trainings"], self.budget)
        self.requests = OpenRequests(self.budget.leave, self.trainings.leave)
        self.queries = Experiments(self.model, self.shares["experiments"])
        self.examples: dict[str, tuple[str, str]] = {}
        self._offer_usable()

    def names(self, visitor: str) -> list[tuple[str, str]]:
        """The list of models for a visitor: (words, name) of each."""
        own = [(entry.label, entry.model.name) for entry in self.own.of(visitor)]
        return [*((name, name) for name in self.models), *own]

    def example(self, name: str) -> tuple[str, str]:
        """(run id, batch id) of a model's example, which the page shows at first.

        Those of a visit's own model can be evicted and are then made again.
        """
        if name in self.examples:
            return self.examples[name]
        own = self.own.find(name)
        if not all(map(self.store.has, own.example)):
            run, batch = self._example(own.model)
            own.example = self.store.put(run, own.visitor), self.store.put(batch, own.visitor)
        return own.example

    def sweep(self) -> None:
        """Evict what is too old."""
        self.budget.sweep()
        self.trainings.sweep()

    def model(self, name: Any, visitor: str | None = None) -> Model:
        """The model with this name. visitor: who asks, see `OwnModels.find`.

        Raises ValueError that lists the names for an unknown one.
        """
        is_served = isinstance(name, str) and name in self.models
        if not is_served and is_own(name):
            return self.own.find(name, visitor).model
        check_choice("model", name, self.models)
        return self.models[name]

    def stream(self, name: str, text: str, **settings: Any) -> Stream:
        """The steps, computed as they are read. ValueError for bad input."""
        model = self.model(name)
        check_whole("max_new_tokens", settings.get("max_new_tokens"), 1, MAX_NEW_TOKENS)
        check_interventions(settings.get("interventions", ()))
        if settings.pop("read_as", TEXT) == CHAT:
            _, ids = conversation(model, [{"role": "user", "content": check_input(text)}])
            settings["input_ids"] = ids
        return model.stream(check_input(text), **settings)

    def finish(self, stream: Stream) -> Run:
        """The run so far; it says if time was up."""
        return _noted(on_cpu(stream.run()))

    def generate(self, name: str, text: str, **settings: Any) -> Run:
        """Generate a run without streaming."""
        stream = self.stream(name, text, **settings)
        for _ in stream:
            pass
        return self.finish(stream)

    def batch(
        self,
        name: str,
        texts: Sequence[str],
        interventions: Any = (),
        **languages: Unpack[Languages],
    ) -> Batch:
        """Several texts at once, padded: read, or (by a translator) translated and then read.

        interventions: what to alter while reading. Raises ValueError for bad input.
        """
        check_interventions(interventions)
        texts, model = check_texts(texts), self.model(name)
        if model.config.family != "encoder-decoder" or not model.config.generates:
            return on_cpu(model.trace(texts, interventions, **languages))
        settings = {"max_new_tokens": MAX_NEW_TOKENS, "trace_interventions": interventions}
        return on_cpu(model.translate_batch(texts, **settings, **languages))

    def translate(self, name: str, texts: Sequence[str], **settings: Any) -> list[Run]:
        """Several texts translated at once; each gets the run that it gets alone.

        Raises ValueError for bad input, or for a model that does not translate.
        """
        model = self.model(name)
        model.check_translator()
        check_whole("max_new_tokens", settings.get("max_new_tokens"), 1, MAX_NEW_TOKENS)
        check_interventions(settings.get("interventions"))
        runs = model.generate_batch(check_texts(texts), **settings)
        return [_noted(on_cpu(run)) for run in runs]

    def one_by_one(self, name: str, text: str, **settings: Any) -> str | None:
        """A text translated sentence by sentence, as in training; None if it is one."""
        model = self.model(name)
        for of_whole_text in ("forced_tokens", "read_as"):
            settings.pop(of_whole_text, None)
        several = len(model.reader.sentences(text)) > 1
        return model.translate(text, **settings) if several else None

    def read(
        self, name: str, text: str, interventions: Any = (), **languages: Unpack[Languages]
    ) -> Run:
        """One text, read and not continued. Raises ValueError for bad input."""
        model = self.model(name)
        check_interventions(interventions)
        return on_cpu(model.trace(check_input(text), interventions, **languages))

    def read_end(self, name: str, text: str, **languages: Unpack[Languages]) -> Run:
        """`read` by a model that generates; of a longer text, the end that fits."""
        text = check_input(text)
        return on_cpu(self.model(name).generate(text, max_new_tokens=0, **languages))

    def fill(self, name: str, text: str, n_best: int) -> Filled:
        """Predict each [MASK] of a text. Raises ValueError for bad input."""
        return self.model(name).fill(check_input(text), n_best)

    def _offer_usable(self) -> None:
        """Make each model's example; one that fails is reported on stderr and not offered. Raises
        ValueError if none is left."""
        refused = []
        for name, model in list(self.models.items()):
            try:
                run, batch = self._example(model)
                self.examples[name] = self.store.pin(run), self.store.pin(batch)
            except Exception as error:  # one bad model is no reason to serve none
                refused.append(why_refused(name, error))
                del self.models[name]
        if not self.models:
            raise ValueError("\n".join(refused))
        tell_refused(refused)

    def _example(self, model: Model) -> tuple[Run, Batch]:
        """The run and the batch that the page shows at first."""
        example, name = example_of(model), model.name
        if example.only_read:
            run = self.read(name, example.text)
        else:
            run = self.generate(name, example.text, **example.settings)
        return run, self.batch(name, example.batch)


def check_input(text: Any, most: int = MAX_CHARACTERS) -> str:
    """A text that may be read, of at most `most` characters. Raises ValueError for any other."""
    check_text(text)
    if len(text) > most:
        raise InvalidRequest(
            "too_long",
            "the text must have at most {most} characters; got {got}",
            most=most,
            got=len(text),
        )
    return str(text)


def check_interventions(interventions: Any) -> None:
    """Raise ValueError for too many, or a patch's invalid text; the request checks the rest."""
    if not isinstance(interventions, Sequence):
        return
    if len(interventions) > MAX_INTERVENTIONS:
        raise InvalidCall(
            "too_many_interventions",
            "a request must have at most {most} interventions; got {got}",
            most=MAX_INTERVENTIONS,
            got=len(interventions),
        )
    for intervention in interventions:
        text = (
            intervention.get("text")
            if isinstance(intervention, Mapping)
            else getattr(intervention, "text", None)
        )
        if isinstance(text, str) and text.strip():
            check_input(text)


def check_texts(texts: Any) -> list[str]:
    """Check a batch. Raises ValueError unless it is 1 to MAX_TEXTS texts that may be read."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise ValueError(f"the texts must be a list of strings; got {type(texts).__name__}")
    if not 1 <= len(texts) <= MAX_TEXTS:
        raise InvalidRequest(
            "too_many_texts",
            "a batch must have from 1 to {most} texts; got {got}",
            most=MAX_TEXTS,
            got=len(texts),
        )
    check_each(texts, check_input)
    return list(texts)


def lines_of(text: Any) -> list[str]:
    """A text's lines, without empty ones."""
    check_input(text, MAX_CHARACTERS * MAX_TEXTS)
    return check_texts([line for line in text.split("\n") if line.strip()])


def check_distinct(named: Iterable[tuple[str, str]]) -> None:
    """Raise ValueError if two models have one name. named: (name, where it is from) each."""
    origins: dict[str, str] = {}
    for name, origin in named:
        if name in origins:
            raise ValueError(
                f"two models are called {shortened(name)}: {origins[name]} and {origin}; rename "
                "the folder of one of them, or leave one out"
            )
        origins[name] = origin


def why_refused(name: str, error: Exception) -> str:
    """Why a model cannot be used, in one sentence that names it."""
    if isinstance(error, CheckpointError) or str(error).startswith(f"{name} "):
        return str(error)
    got = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return f"{name} cannot be used: {got}"


def tell_refused(sentences: Iterable[str]) -> None:
    """Say on stderr which models are not offered, and why."""
    for sentence in sentences:
        print(f"not offered: {sentence}", file=sys.stderr, flush=True)


def _noted(run: Run) -> Run:
    """The run with the reason why it ended early, if its request was cut short."""
    why = current().why
    early = len(run.steps) < run.request.max_new_tokens and run.stopped in ("length", CANCELLED)
    return dataclasses.replace(run, stopped=why) if why and early else run


def on_cpu(item: Item) -> Item:
    """A copy in main memory and without logits, so that kept runs do not fill the accelerator.

    The steps' candidates are computed, which frees their logits.
    """
    if isinstance(item, Run):
        for step in item.steps:
            len(step.candidates)
    if item.logits is not None:
        item = dataclasses.replace(item, logits=None)
    if all(x.device.type == "cpu" for tensors in item.trace.residuals.values() for x in tensors):
        return item
    changes: dict[str, object] = {"trace": to_device(item.trace, "cpu")}
    if isinstance(item, Run):
        changes["position_matrices"] = {k: m.cpu() for k, m in item.position_matrices.items()}
        changes["candidate_labels"] = dict(item.candidate_labels)
    return dataclasses.replace(item, **changes)  # type: ignore[arg-type]
