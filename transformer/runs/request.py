"""A request: a text and every setting of its run, validated."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, Unpack

import numpy as np
from torch import Tensor

from transformer.checks import (
    check_number,
    check_text,
    check_whole,
    is_number,
    is_scalar,
    is_whole,
    shortened,
)
from transformer.interventions.descriptions import Intervention, interventions_of, to_dict
from transformer.messages import numeral, say, say_list

MAX_NEW_TOKENS = 4096
MAX_SEED = 2**32 - 1
MAX_TEMPERATURE = 10.0
MIN_TEMPERATURE = 0.01
MAX_BEAMS = 16
MAX_LENGTH_PENALTY = 5.0
MAX_REPETITION_PENALTY = 10.0
MAX_STOPS, MAX_STOP_CHARACTERS = 16, 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How a token is drawn. Applied in this order: temperature, top-k, top-p, min-p.

    Raises ValueError naming the allowed range; None switches a filter off.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature, MIN_TEMPERATURE, MAX_TEMPERATURE)
        if self.top_k is not None:
            check_whole("top_k", self.top_k, 1, 1_000_000)
        if self.top_p is not None:
            check_number("top_p", self.top_p, 0.0, 1.0, above=True)
        if self.min_p is not None:
            check_number("min_p", self.min_p, 0.0, 1.0)


class Settings(TypedDict, total=False):
    """Every field of a Request but its text, as keywords of `generate` and the like."""

    max_new_tokens: int
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int
    beams: int
    length_penalty: float
    repetition_penalty: float
    stop: str | Sequence[str]
    source_language: str | None
    target_language: str | None
    forced_tokens: Sequence[int]
    interventions: Sequence[Intervention]
    input_ids: Sequence[int]
    token_type_ids: Sequence[int]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Request:
    """Text and every setting of a run; the same request gives the same run.

    Greedy when temperature, top_k, top_p and min_p are all None, or when the temperature is 0; else
    sampled, at temperature 1 unless given. Two beams or more: a beam search, which does not sample;
    a hypothesis' score is divided by its length to the power of length_penalty.

    repetition_penalty: makes tokens that the text already has less likely: their logits are divided
    by it, or multiplied if they are negative. stop: texts that end the generation once it has
    written one of them. source_language, target_language: for a translator with several, names
    among `model.tokenizer.languages`; None = as its files say. forced_tokens: ids of the first new
    tokens, whatever the network predicts; max_new_tokens counts them. interventions: applied to the
    network for this run, as objects or as plain values. Of all these, a beam search takes only the
    languages. input_ids: read in place of the text, which is then only for people: with all special
    tokens; for an encoder-decoder, the source's. token_type_ids: for an encoder, a number for each
    of them. Raises ValueError naming the allowed values.
    """

    text: str = dataclasses.field(kw_only=False)
    max_new_tokens: int = 64
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int = 0
    beams: int = 1
    length_penalty: float = 1.0
    repetition_penalty: float = 1.0
    stop: str | Sequence[str] = ()
    source_language: str | None = None
    target_language: str | None = None
    forced_tokens: Sequence[int] = ()
    interventions: Sequence[Intervention] = ()
    input_ids: Sequence[int] = ()
    token_type_ids: Sequence[int] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if is_scalar(value):  # a run is written as JSON
                object.__setattr__(self, field.name, value.item())
        check_text(self.text)
        check_whole("max_new_tokens", self.max_new_tokens, 0, MAX_NEW_TOKENS)
        check_whole("seed", self.seed, 0, MAX_SEED)
        check_whole("beams", self.beams, 1, MAX_BEAMS)
        check_number("length_penalty", self.length_penalty, 0.0, MAX_LENGTH_PENALTY)
        if self.sampling is not None and self.beams > 1:  # also validates the sampling
            raise ValueError(
                f"a beam search does not sample; got beams={self.beams} with a temperature or "
                "filter; allowed: beams=1 with them, or more beams without"
            )
        check_number(
            "repetition_penalty", self.repetition_penalty, 0.0, MAX_REPETITION_PENALTY, above=True
        )
        object.__setattr__(self, "stop", _stops(self.stop))
        for name in ("source_language", "target_language"):
            if not isinstance(language := getattr(self, name), str | None):
                raise ValueError(f"{name} must be a language's name; got {shortened(language)}")
        object.__setattr__(self, "forced_tokens", _forced(self.forced_tokens, self.max_new_tokens))
        object.__setattr__(self, "interventions", interventions_of(self.interventions))
        for name in ("input_ids", "token_type_ids"):
            object.__setattr__(self, name, _ids(name, getattr(self, name)))
        if self.token_type_ids and len(self.token_type_ids) != len(self.input_ids):
            raise ValueError(
                f"token_type_ids are one for each of {len(self.input_ids)} input_ids; got "
                f"{len(self.token_type_ids)}"
            )
        needs_one = (self.forced_tokens, self.interventions, self.stop)
        if self.beams > 1 and (any(needs_one) or self.repetition_penalty != 1):
            raise ValueError(
                "a beam search runs the network as it is, chooses every token and ends by itself; "
                f"got beams={self.beams} with interventions, forced tokens, a stop text or a "
                "repetition penalty; allowed: beams=1"
            )

    def __repr__(self) -> str:
        """The fields that differ from their defaults."""
        changed = (f"{name}={x!r}" for name, x in request_to_dict(self, defaults=False).items())
        return f"Request({', '.join(changed)})"

    def greedy(self, **settings: Unpack[Settings]) -> Request:
        """A greedy request for the same text or ids, between the same languages, with other
        settings."""
        kept = ("source_language", "target_language", "input_ids", "token_type_ids")
        return request_of(self.text, {name: getattr(self, name) for name in kept} | settings)

    @property
    def sampling(self) -> Sampling | None:
        """How tokens are drawn; None = greedy."""
        options = (self.temperature, self.top_k, self.top_p, self.min_p)
        greedy = all(value is None for value in options) or _is_zero(self.temperature)
        temperature = 1.0 if greedy or self.temperature is None else self.temperature
        sampling = Sampling(
            temperature=temperature, top_k=self.top_k, top_p=self.top_p, min_p=self.min_p
        )
        return None if greedy else sampling


def method_words(request: Request, *, brief: bool = False) -> str:
    """How tokens are chosen, in words. brief: only those that tell two runs apart, and the seed."""
    if request.beams > 1:
        words = say("beam search with {beams} beams", beams=request.beams)
        if request.length_penalty == 1:
            return words
        number = numeral(request.length_penalty, "g")
        return say("{words}, length penalty {number}", words=words, number=number)
    penalty, sampling = request.repetition_penalty, request.sampling
    if sampling is not None:
        words = _sampled(sampling)
    elif brief or penalty != 1:
        words = say("greedy")
    else:
        words = say("greedy: always the likeliest")
    if penalty != 1:
        number = numeral(penalty, "g")
        words = say("{words}, repetition penalty {number}", words=words, number=number)
    if sampling is None or not brief:
        return words
    return say("{words}, seed {seed}", words=words, seed=request.seed)


def _sampled(sampling: Sampling) -> str:
    words = {"temperature": say("temperature")}
    parts = [
        f"{words.get(field.name, field.name.replace('_', '-'))} {numeral(value, 'g')}"
        for field in fields(sampling)
        if (value := getattr(sampling, field.name)) is not None
    ]
    return say("sampled: {settings}", settings=say_list(parts))


# Other libraries' names of settings, and what to use here.
THEIR_NAMES = {
    "num_beams": "beams",
    "max_length": "max_new_tokens, which does not count the prompt",
    "max_tokens": "max_new_tokens",
    "do_sample": "temperature: None or 0 takes the likeliest token, a number samples",
    "num_return_sequences": "model.samples(text, n)",
    "n": "model.samples(text, n)",
    "stop_strings": "stop",
    "src_lang": "source_language",
    "tgt_lang": "target_language",
    "forced_bos_token_id": "target_language, a name",
    "fwd_hooks": "hooks",
}


def request_to_dict(request: Request, *, defaults: bool = True) -> dict[str, Any]:
    """A request as plain JSON values, for files, links and the page.

    defaults False: without settings at their defaults.
    """
    values = {
        field.name: getattr(request, field.name)
        for field in fields(request)
        if defaults or getattr(request, field.name) != field.default
    }
    for name in ("input_ids", "token_type_ids"):
        if not values.get(name):
            values.pop(name, None)
    for name in {"forced_tokens", "stop", "input_ids", "token_type_ids"} & values.keys():
        values[name] = list(values[name])
    if "interventions" in values:
        values["interventions"] = [to_dict(intervention) for intervention in request.interventions]
    return values


def request_from_dict(values: Mapping[str, Any]) -> Request:
    """The inverse of `request_to_dict`.

    Raises ValueError for a wrong value, and one that lists the settings for an unknown one.
    """
    names = [field.name for field in fields(Request) if field.name != "text"]
    for name in values.keys() - {"text", *names}:
        ours = f"; here it is {THEIR_NAMES[name]}" if name in THEIR_NAMES else ""
        raise ValueError(f"unknown setting {shortened(name)}{ours}; allowed: {names}")
    return Request(**values)


def request_of(text: str, settings: Mapping[str, Any]) -> Request:
    """A validated Request. Raises ValueError that lists the settings for an unknown one."""
    return request_from_dict({"text": text, **settings})


def _is_zero(temperature: Any) -> bool:
    """Whether it is 0 and not False."""
    return is_number(temperature) and temperature == 0


def _stops(got: Any) -> tuple[str, ...]:
    texts = (got,) if isinstance(got, str) else tuple(got) if isinstance(got, Sequence) else (got,)
    if len(texts) > MAX_STOPS or not all(
        isinstance(text, str) and 0 < len(text) <= MAX_STOP_CHARACTERS for text in texts
    ):
        raise ValueError(
            f"stop must be a text or a list of up to {MAX_STOPS}, each of 1 to "
            f"{MAX_STOP_CHARACTERS} characters; got {shortened(got)}"
        )
    return texts


def _ids(name: str, got: Any) -> tuple[int, ...]:
    is_list = isinstance(got, Sequence | np.ndarray | Tensor) and not isinstance(got, str)
    if not is_list or not all(is_whole(token) and token >= 0 for token in got):
        raise ValueError(f"{name} must be a list of token ids, whole numbers from 0")
    return tuple(map(int, got))


def _forced(got: Any, max_new_tokens: int) -> tuple[int, ...]:
    ids = _ids("forced_tokens", got)
    if len(ids) > max_new_tokens:
        raise ValueError(
            f"at most max_new_tokens={max_new_tokens} tokens can be forced; got {len(ids)}"
        )
    return ids
