"""A loaded checkpoint, and all that can be asked of it: generate, translate, search, read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from transformer.inference.altered import changes_for, check_interventions
from transformer.inference.beam import beam_search
from transformer.inference.buffers import Engine
from transformer.inference.generation import GenerationStep, generate
from transformer.inference.record import Prepared, batch_of, run_of
from transformer.inference.request import Request, check_each, request_of
from transformer.inference.run import Batch, Run
from transformer.inference.sample import Sample
from transformer.inference.stream import Stream
from transformer.model.config import ModelConfig
from transformer.model.interventions import Intervention
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly
from transformer.text import Tokenizer


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Model:
    """A trained network with its tokenizer. Shared by all visitors: nothing here changes.

    engine: what generates one text faster than the network; None where that does not apply.
    sample: text that it was not trained on, to see what an alteration does to its loss.
    """

    name: str
    config: ModelConfig
    tokenizer: Tokenizer
    network: DecoderOnly | EncoderOnly | EncoderDecoder
    card: str = ""
    metadata: dict[str, Any] | None = None
    engine: Engine | None = None
    sample: Sample | None = None

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
        request = request_of(text, settings)
        self.check(request)
        return Stream(self, request)

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

        seeds: one for each text; by default all use the request's seed. Raises ValueError that
        says which text is at fault.
        """
        _check_texts(texts)
        seeds = seeds or [settings.pop("seed", 0)] * len(texts)
        if len(seeds) != len(texts):
            raise ValueError(f"one seed a text is needed; got {len(seeds)} for {len(texts)} texts")
        requests = [
            request_of(text, {**settings, "seed": seed})
            for text, seed in zip(texts, seeds, strict=True)
        ]
        self.check(requests[0])
        if requests[0].beams > 1:
            return self.search(requests)
        if requests[0].interventions or requests[0].taken:
            return [self._alone(request) for request in requests]
        prepared = [self.prepare(text) for text in texts]
        return [
            run_of(self, request, row, steps, ended=True)
            for request, row, steps in zip(
                requests, prepared, self._steps(requests, prepared), strict=True
            )
        ]

    def search(self, requests: Sequence[Request]) -> list[Run]:
        """Beam searches, all in one batch; the requests differ in their text alone."""
        network, first = self.network, requests[0]
        self.check(first)
        assert isinstance(network, EncoderDecoder)
        prepared = [self.prepare(request.text) for request in requests]
        if first.max_new_tokens == 0:
            return [
                run_of(self, request, row, [], ended=False)
                for request, row in zip(requests, prepared, strict=True)
            ]
        found = beam_search(
            network,
            [row.source for row in prepared],
            start_id=self.tokenizer.start_id,
            end_id=self.tokenizer.end_id,
            beams=first.beams,
            max_new_tokens=first.max_new_tokens,
            length_penalty=first.length_penalty,
        )
        return [
            run_of(self, request, row, [], ended=True, found=result)
            for request, row, result in zip(requests, prepared, found, strict=True)
        ]

    def trace(
        self, texts: str | Sequence[str], interventions: Sequence[Intervention] = ()
    ) -> Run | Batch:
        """Read without generating: one text gives a Run, several give a padded Batch.

        interventions: what to alter while reading. Raises ValueError for what the network does not
        have.
        """
        if isinstance(texts, str):
            request = Request(text=texts, max_new_tokens=0, interventions=interventions)
            prepared = self.prepare(texts)
            check_interventions(self, request, prepared)
            changes = changes_for(self, request, prepared)
            return run_of(self, request, prepared, [], ended=False, changes=changes)
        _check_texts(texts)
        rows = [self.prepare(text) for text in texts]
        request = Request(text=texts[0], max_new_tokens=0, interventions=interventions)
        check_interventions(self, request, rows[0])
        return batch_of(self, texts, rows, changes=changes_for(self, request, rows[0]))

    def translate_batch(
        self, texts: Sequence[str], *, altered: Sequence[Intervention] = (), **settings: Any
    ) -> Batch:
        """Translate several texts, then read sources and translations as one padded Batch.

        altered: interventions for that reading; the translations are those of `settings`.
        Raises ValueError for a model that is not an encoder-decoder.
        """
        if self.config.family != "encoder-decoder":
            raise ValueError(
                f"translating needs an encoder-decoder; {self.name} is {self.config.family}"
            )
        runs = self.generate_batch(texts, **settings)
        rows = [
            Prepared(list(run.source_ids), list(run.ids[: self.config.max_len])) for run in runs
        ]
        request = Request(text=texts[0], max_new_tokens=0, interventions=altered)
        check_interventions(self, request, rows[0])
        changes = changes_for(self, request, rows[0])
        return batch_of(self, texts, rows, [run.text for run in runs], changes)

    def prepare(self, text: str) -> Prepared:
        """A text's ids. Raises ValueError for a source that is too long for the encoder."""
        ids = self.tokenizer.encode(text)
        if self.config.family == "encoder-decoder":
            source = [*ids, self.tokenizer.end_id]
            if len(source) > self.config.max_len:
                raise ValueError(
                    f"the text is {len(source)} tokens long; {self.name} reads at most "
                    f"{self.config.max_len}"
                )
            return Prepared(source, [self.tokenizer.start_id])
        return Prepared([], [self.tokenizer.end_id, *ids])

    def _steps(
        self, requests: Sequence[Request], prepared: Sequence[Prepared]
    ) -> list[list[GenerationStep]]:
        rows: list[list[GenerationStep]] = [[] for _ in prepared]
        sources = [source for source, _ in prepared]
        for steps in generate(
            self.generator_network,
            [ids for _, ids in prepared],
            sources=sources if all(sources) else None,
            max_new_tokens=requests[0].max_new_tokens,
            end_id=self.tokenizer.end_id,
            sampling=requests[0].sampling,
            seeds=[request.seed for request in requests],
        ):
            for row, step in zip(rows, steps, strict=True):
                if step is not None:
                    row.append(step)
        return rows

    def _alone(self, request: Request) -> Run:
        stream = Stream(self, request)
        for _ in stream:
            pass
        return stream.run()

    def check(self, request: Request) -> None:
        """Raise ValueError for a request that this model cannot answer."""
        highest = self.config.output_vocab_size - 1
        for token in request.taken:
            if token > highest or token == self.config.padding_id:
                raise ValueError(
                    f"a taken token must be an id from 0 to {highest}, without the padding "
                    f"{self.config.padding_id}; got {token}"
                )
        if request.beams > 1 and not isinstance(self.network, EncoderDecoder):
            raise ValueError(
                f"a beam search needs an encoder-decoder; {self.name} is {self.config.family}; "
                "allowed: beams=1"
            )


def _check_texts(texts: Sequence[str]) -> None:
    if not texts:
        raise ValueError("at least one text is needed; got an empty list")
    check_each(texts)
