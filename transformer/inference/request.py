"""What a visitor asks for: a text and every setting, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from transformer.inference.beam import MAX_BEAMS, MAX_LENGTH_PENALTY
from transformer.inference.sampling import MAX_SEED, Sampling, check_number, check_whole
from transformer.model.interventions import Intervention, interventions_of

MAX_NEW_TOKENS = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """Text and every setting of a run; the same request gives the same run.

    Greedy when temperature, top_k, top_p and min_p are all None; else sampled, at temperature 1
    unless given. Two beams or more: a beam search, which does not sample; length_penalty is the
    power of the length that a hypothesis' score is divided by.

    taken: ids of tokens that are taken first, whatever the network says of them; generation goes on
    from there and max_new_tokens counts them. interventions: what is altered in the network for
    this run, as objects or as their plain values. Both need one beam.
    Raises ValueError naming what is allowed.
    """

    text: str
    max_new_tokens: int = 64
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int = 0
    beams: int = 1
    length_penalty: float = 1.0
    taken: Sequence[int] = ()
    interventions: Sequence[Intervention] = ()

    def __post_init__(self) -> None:
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
        object.__setattr__(self, "taken", _taken(self.taken, self.max_new_tokens))
        object.__setattr__(self, "interventions", interventions_of(self.interventions))
        if self.beams > 1 and (self.taken or self.interventions):
            raise ValueError(
                f"a beam search runs the network as it is and chooses every token; got "
                f"beams={self.beams} with interventions or taken tokens; allowed: beams=1 with them"
            )

    @property
    def sampling(self) -> Sampling | None:
        """How tokens are drawn; None = greedy."""
        filters = {"top_k": self.top_k, "top_p": self.top_p, "min_p": self.min_p}
        if self.temperature is None:
            if all(value is None for value in filters.values()):
                return None
            return Sampling(**filters)  # type: ignore[arg-type]
        return Sampling(temperature=self.temperature, **filters)  # type: ignore[arg-type]


def request_of(text: str, settings: dict[str, Any]) -> Request:
    """A validated Request. Raises ValueError that lists the settings for an unknown one."""
    known = [name for name in Request.__dataclass_fields__ if name != "text"]
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise ValueError(f"unknown setting {unknown[0]!r}; allowed: {known}")
    return Request(text=text, **settings)


def _taken(got: Any, max_new_tokens: int) -> tuple[int, ...]:
    is_list = isinstance(got, Sequence) and not isinstance(got, str)
    if not is_list or not all(type(token) is int and token >= 0 for token in got):
        raise ValueError("taken must be a list of token ids, whole numbers from 0")
    if len(got) > max_new_tokens:
        raise ValueError(
            f"at most max_new_tokens={max_new_tokens} tokens can be taken; got {len(got)}"
        )
    return tuple(got)


def check_text(text: Any) -> None:
    """Raise ValueError unless it is a text with something in it."""
    if not isinstance(text, str):
        raise ValueError(f"the text must be a string; got {type(text).__name__}")
    if not text.strip():
        raise ValueError("the text must have at least one character that is not a space; got none")


def check_each(texts: Sequence[Any], check: Callable[[Any], Any] = check_text) -> None:
    """Check every text of a batch; the ValueError says which one is at fault."""
    for place, text in enumerate(texts):
        try:
            check(text)
        except ValueError as error:
            raise ValueError(f"text {place} of {len(texts)}, counted from 0: {error}") from error
