"""A loaded checkpoint, and hooks that apply a request's interventions to its network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

import torch
from torch import nn

from transformer.checkpoint import HeldOutSample
from transformer.checks import InvalidCall, InvalidRequest, check_each, check_text
from transformer.inference.engines.changes import is_as_configured
from transformer.inference.engines.compiled import CompiledDecoder, engine_of
from transformer.interventions.descriptions import Patch, check_all, places_of
from transformer.interventions.hooks import ActivationCache, hooks_of, joined
from transformer.messages import mark, say
from transformer.model.config import ModelConfig
from transformer.model.hooks import Hook
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


def check_interventions(model: LoadedModel, request: Request, prepared: Prepared) -> None:
    """Raise ValueError for a part that the network or a patch's other text lacks."""
    check_all(request.interventions, model.config)
    for patch in request.interventions:
        if not isinstance(patch, Patch) or patch.values is not None:
            continue
        source, ids, _ = model.prepare(patch.text)
        read = source if patch.stack == "encoder" and source else ids
        if source and patch.stack == "decoder":
            read = [*prepared.ids, *request.forced_tokens]
        if len(ids) > model.config.max_len:
            raise InvalidRequest(
                "too_long",
                "the other text of a patch is {n_tokens} tokens long; {name} reads at "
                "most {max_len}",
                n_tokens=len(ids),
                name=model.name,
                max_len=model.config.max_len,
            )
        if patch.positions and patch.positions[-1] >= len(read):
            raise InvalidCall(
                "out_of_range",
                "the other run has places from 0 to {last} there; got {got}",
                last=len(read) - 1,
                got=patch.positions[-1],
            )


def check_places(model: LoadedModel, request: Request, prepared: Prepared) -> None:
    """Raise ValueError for an intervention at a place that the text can never have, or that is not
    read of a text longer than the model reads."""
    source, ids, _ = prepared
    last_id = len(ids) + request.max_new_tokens - 1
    first = 0
    if model.config.family == "encoder-decoder":
        last_id = min(last_id, model.config.output_max_len - 1)
        last = {"encoder": len(source) - 1, "decoder": last_id}
    else:
        last = {"encoder": last_id, "decoder": last_id}
        first = max(0, len(ids) - model.config.output_max_len)
    for intervention in request.interventions:
        for stack, place in places_of(intervention):
            if not first <= place <= last[stack]:
                raise InvalidCall(
                    "out_of_range",
                    "{intervention}: the text has places from {first} to {last} there; got {got}",
                    intervention=str(intervention),
                    first=first,
                    last=last[stack],
                    got=place,
                )


def hooks_for_rows(
    model: LoadedModel, request: Request, texts: Sequence[str], rows: Sequence[Prepared]
) -> Sequence[Hook]:
    """Hooks that apply the interventions of a request to a batch of texts, to each as if it were
    alone. Raises ValueError that names the text at fault, as `hooks_for` and `check_places` do."""
    if not request.interventions:
        return ()
    hooks: list[Sequence[Hook]] = []
    caches: dict[tuple[str, tuple[int, ...]], ActivationCache] = {}
    left = iter(rows)

    def check(text: str) -> None:
        prepared = next(left)
        hooks.append(hooks_for(model, request, prepared, caches))
        check_places(model, request, prepared)

    check_each(texts, check)
    return joined(hooks)


def hooks_for(
    model: LoadedModel,
    request: Request,
    prepared: Prepared,
    activations: dict[tuple[str, tuple[int, ...]], ActivationCache] | None = None,
) -> Sequence[Hook]:
    """Hooks that apply the interventions of this request; empty for the intact network.

    activations: by the other text and the target's ids; new ones are added. Raises ValueError as
    `check_interventions` does.
    """
    if not request.interventions:
        return ()
    model = model.in_languages(request)
    check_interventions(model, request, prepared)
    texts = {i.text: None for i in request.interventions if isinstance(i, Patch) and i.text}
    decoded = (*prepared.ids, *request.forced_tokens) if prepared.source else ()
    activations = {} if activations is None else activations
    for text in texts:
        if (text, decoded) not in activations:
            activations[text, decoded] = activations_of(model, text, decoded)
    caches = {text: activations[text, decoded] for text in texts}
    return hooks_of(request.interventions, model.config, caches)


def _is_training(part: nn.Module) -> bool:
    """Whether a module or one inside it is in training mode."""
    inside = part._modules.values()  # quicker than modules(), which names them
    return part.training or any(_is_training(module) for module in inside if module is not None)


@torch.no_grad()
def activations_of(model: LoadedModel, text: str, decoded: Sequence[int]) -> ActivationCache:
    """Activations of the intact network for another text.

    decoded: an encoder-decoder's target ids; other networks read the text alone.
    """
    source, ids, _ = model.prepare(text)
    cache = ActivationCache()
    network = model.network
    if isinstance(network, EncoderDecoder):
        read = torch.tensor([source], device=network.device)
        target = torch.tensor([list(decoded)], device=network.device)
        network(read, target, hooks=[cache])
    else:
        assert isinstance(network, DecoderOnly | EncoderOnly)
        network(torch.tensor([ids], device=network.device), hooks=[cache])
    return cache
