"""A loaded checkpoint: a network with its tokenizer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

import torch
from torch import nn

from transformer.checkpoint import HeldOutSample
from transformer.checks import InvalidRequest, check_text
from transformer.inference.engines.changes import is_as_configured
from transformer.inference.engines.compiled import CompiledDecoder, engine_of
from transformer.messages import mark, say
from transformer.model.config import ModelConfig
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly
from transformer.plain_text import Reader
from transformer.runs.request import Request
from transformer.runs.run import Run
from transformer.tokenizer import Tokenizer, hidden_ids, special_names


class Prepared(NamedTuple):
    """A text as ids: the encoder's (empty without one) and those the decoder starts with.

    types: an encoder's token types, one for each id; empty where all are 0.
    """

    source: list[int]
    ids: list[int]
    types: tuple[int, ...] = ()


def _rebuilt(kind: Any, values: dict[str, Any], had_engine: bool) -> Any:
    network = values["network"]
    engine = engine_of(network) if had_engine and is_as_configured(network) else None
    return kind(**values | {"engine": engine})


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class LoadedModel:
    """A trained network with its tokenizer. Shared by all visitors: nothing here changes.

    engine: generates one text faster than the network; None if there is none.
    sample: held-out text, to measure an intervention's effect on the loss.
    cards: the model card in other languages, by language.
    heads: metrics of its heads over many texts, see `analysis.corpus.dossiers`; None if unknown.
    neurons: where each neuron fires most, see `analysis.corpus.neurons`; None if unknown.
    most_recorded_bytes: of attention that one pass may record, beyond which it is a ValueError.
    """

    name: str
    config: ModelConfig
    tokenizer: Tokenizer
    network: DecoderOnly | EncoderOnly | EncoderDecoder
    card: str = ""
    metadata: dict[str, Any] | None = None
    engine: CompiledDecoder | None = None
    sample: HeldOutSample | None = None
    heads: dict[str, Any] | None = None
    neurons: dict[str, Any] | None = None
    cards: Mapping[str, str] = field(default_factory=dict)
    most_recorded_bytes: float = math.inf

    def __repr__(self) -> str:
        """One line; the network itself prints its layers."""
        config, engine = self.config, self.engine.name if self.engine else "network"
        return (
            f"<{type(self).__name__} {self.name!r}: {config.family}, {config.n_layers} layers x "
            f"{config.n_heads} heads x {config.d_model}, {self.n_parameters / 1e6:.1f} M "
            f"parameters, on {self.device} ({engine})>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied without its engine, which points into this process' memory."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return _rebuilt, (type(self), values | {"engine": None}, self.engine is not None)

    @property
    def device(self) -> torch.device:
        """The network's device."""
        return self.network.device

    @property
    def n_parameters(self) -> int:
        """The number of parameters; tied matrices count once."""
        return self.network.n_parameters

    @property
    def generator_network(self) -> DecoderOnly | EncoderDecoder:
        """The network, if it has a decoder that predicts tokens; else ValueError."""
        if isinstance(self.network, EncoderOnly):
            raise InvalidRequest(
                "wrong_family",
                "{name} is an encoder: it reads text but cannot generate any",
                name=self.name,
            )
        self.network.check_predicts()
        return self.network

    @property
    def reader(self) -> Reader:
        """Cleans typed text before the tokenizer reads it."""
        return Reader(source_text=(self.metadata or {}).get("source_text"))

    def in_languages(self, request: Request) -> Self:
        """This model for the languages of a request. Raises ValueError for those it lacks."""
        languages = request.source_language, request.target_language
        return self if languages == (None, None) else self.between(*languages)

    def between(self, source: str | None, target: str | None) -> Self:
        """This translator from one of its languages to another, both among
        `model.tokenizer.languages`, or None for the one it has; it has the same network. Raises
        ValueError for others.
        """
        return replace(self, tokenizer=self.tokenizer.between(source, target))

    def prepare(self, text: str) -> Prepared:
        """A text's ids. Raises ValueError for no text, or more than an encoder reads, and for a
        network in training mode."""
        check_text(text)
        self.check_evaluates()
        read = self.reader.read_as(text)
        if self.config.family == "encoder-decoder":
            source = self.tokenizer.source(self.tokenizer.encode(read))
            self.check_length(len(source))
            return self._with_target(source)
        if self.config.family == "encoder":
            ids = hidden_ids(self.tokenizer, read)
            self.check_length(len(ids))
            return Prepared([], ids)
        return Prepared([], self.tokenizer.encode(read, special=True))

    def prepare_request(self, request: Request) -> Prepared:
        """The ids of a request's prompt: its own, or those of its text. Raises ValueError as
        `prepare`, and for ids that the model does not have."""
        if not request.input_ids:
            return self.prepare(request.text)
        self.check_evaluates()
        ids, types = list(request.input_ids), tuple(request.token_type_ids)
        for name, numbers, size in (
            ("input_ids", ids, self.config.vocab_size),
            ("token_type_ids", types, max(1, self.config.n_token_types)),
        ):
            if (most := max(numbers, default=0)) >= size:
                raise ValueError(f"{name} must be from 0 to {size - 1}; got {most}")
        if self.config.family == "decoder":
            return Prepared([], ids)
        self.check_length(len(ids))
        if self.config.family == "encoder":
            return Prepared([], ids, types if any(types) else ())
        return self._with_target(ids)

    def _with_target(self, source: list[int]) -> Prepared:
        """A source, and what the decoder begins with."""
        start = self.tokenizer.target_start
        if self.config.generates:
            return Prepared(source, start)
        return Prepared(source, [start[0], *source[:-1]])  # a classifier's decoder reads it too

    def warnings(self, text: str) -> tuple[str, ...]:
        """Sentences on parts of a text that are not read as its writer may expect."""
        names = special_names(self.tokenizer, self.reader.read_as(text))
        tokens = [name for name in names if self.tokenizer.reads_as_token(name)]
        plain = [name for name in names if name not in tokens]
        groups = (
            (mark("Read as ordinary text, not as a special token: {names}."), plain),
            (mark("Read as a token of the model, not as ordinary text: {names}."), tokens),
        )
        sentences = (say(sentence, names=" ".join(group)) for sentence, group in groups if group)
        return (*self.reader.warnings(text), *sentences)

    def last_read(self, run: Run) -> int:
        """The position that is shown first: the last that is not an end token; for an encoder the
        first mask token, or the first token that is not special."""
        tokenizer = self.tokenizer
        if run.config.family == "encoder":
            plain = (at for at, index in enumerate(run.ids) if not tokenizer.is_special(index))
            hidden = (at for at, index in enumerate(run.ids) if index == tokenizer.mask_id)
            return next((at for at in (*hidden, *plain)), 0)
        last = min(len(run.ids), run.trace_start + run.config.output_max_len) - 1
        ended = last > run.trace_start and run.ids[last] in tokenizer.end_ids
        return last - ended

    def check_length(self, n_tokens: int) -> None:
        """Raise ValueError for more tokens than an encoder reads at once."""
        if n_tokens > self.config.max_len:
            raise InvalidRequest(
                "too_long",
                "the text is {n_tokens} tokens long; {name} reads at most {max_len}",
                n_tokens=n_tokens,
                name=self.name,
                max_len=self.config.max_len,
            )

    def check_evaluates(self) -> None:
        """Raise ValueError if dropout makes each reading different."""
        config = self.config
        drops = config.dropout or config.attention_dropout or config.feed_forward_dropout
        if drops and _is_training(self.network):
            raise ValueError(
                f"the network of {self.name} is in training mode, in which dropout makes each "
                "reading another; needed: model.network.eval()"
            )

    def check(self, request: Request) -> None:
        """Raise ValueError for a request that this model cannot answer."""
        highest = self.config.output_vocab_size - 1
        for token in request.forced_tokens:
            if token > highest or token == self.config.output_padding_id:
                raise ValueError(
                    f"a forced token must be an id from 0 to {highest}, without "
                    f"the padding {self.config.output_padding_id}; got {token}"
                )
        if request.beams > 1 and not isinstance(self.network, EncoderDecoder):
            raise ValueError(
                f"a beam search needs an encoder-decoder; {self.name} is "
                f"{self.config.family}; allowed: beams=1"
            )
        if request.beams > 1:
            self.network.check_predicts()


def _is_training(part: nn.Module) -> bool:
    """Whether a module or one inside it is in training mode."""
    parts: list[nn.Module | None] = [part]  # a loop over modules() takes ten times as long
    for module in parts:
        if module is not None:
            if module.training:
                return True
            parts += module._modules.values()
    return False
