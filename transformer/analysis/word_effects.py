"""Which words of a text matter to one prediction: each is left out in turn, and the text read again
(occlusion: Zeiler & Fergus 2014; leave-one-out: Li, Monroe & Jurafsky 2016)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer.analysis.continuation import N_WRITTEN, one_sentence
from transformer.analysis.text_before import TextBefore, in_parts
from transformer.checks import InvalidCall, InvalidRequest, check_whole, shortened
from transformer.inference.generation import generate
from transformer.inference.loaded import LoadedModel, Prepared
from transformer.inference.logit_sources import pad, text_in
from transformer.inference.request_hooks import hooks_for
from transformer.interventions.descriptions import EditMask, Intervention
from transformer.interventions.hooks import joined
from transformer.model.hooks import Hook
from transformer.model.transformer import EncoderDecoder, EncoderOnly
from transformer.runs.run import Run

MOST_PIECES = 10  # tokens of a word; a longer one is a text without spaces, whose tokens are words
BEGINS = re.compile("[␣⏎⇥]")  # the label of a token that begins a word
AROUND = " \n\t.,:;!?…\"'“”‘’«»()[]"  # characters that do not make two mentions different


@dataclass(frozen=True, kw_only=True, slots=True)
class WordEffect:
    """The prediction without one word, or without all its mentions.

    word: as it is in the text, without spaces; for all mentions, without punctuation around it too.
    places: those of its tokens. probability: that of the target without it; likeliest: id of the
    likeliest token then, and `likeliest_probability`.
    """

    word: str
    places: tuple[int, ...]
    probability: float
    likeliest: int
    likeliest_probability: float


@dataclass(frozen=True, kw_only=True, slots=True)
class WordEffects:
    """The effect of each word on the token that follows `position` of a run's ids; for an encoder,
    on the token there.

    target: id of that token, and its probability with all words. stack: the one whose tokens
    `places` count, "encoder" for the source of an encoder-decoder. masked: whether mask tokens
    stand in a word's place; else it is left out, and the text is shorter. words: each mention
    alone, in the order of the text. mentions: of words that occur more than once, all together.
    """

    position: int
    target: int
    probability: float
    stack: str
    masked: bool
    words: tuple[WordEffect, ...]
    mentions: tuple[WordEffect, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class WithoutWords:
    """The prediction of a text without the tokens at some places.

    logits: (V,), as in `journey`. written: ids of its greedy continuation, empty for an encoder.
    """

    logits: Tensor
    written: tuple[int, ...]


def words_in(labels: Sequence[str], special: Sequence[int]) -> list[tuple[int, ...]]:
    """Places of the tokens of each word; a special token is part of none."""
    words: list[list[int]] = []
    for place, label in enumerate(labels):
        if place in special:
            continue
        if not words or BEGINS.match(label) or place - 1 in special:
            words.append([])
        words[-1].append(place)
    return [
        part
        for word in words
        for part in ([tuple(word)] if len(word) <= MOST_PIECES else [(place,) for place in word])
    ]


@torch.no_grad()
def word_effects(
    model: LoadedModel, run: Run, position: int | None = None, target: int | None = None
) -> WordEffects:
    """Leave out each word that the network reads before it predicts, with the run's interventions;
    for an encoder-decoder, each word of the source.

    A word that the predicted token continues is kept. position: None = `model.last_read`. target:
    None = the token that follows in the run's ids; if none does, and for an encoder, the likeliest.
    Raises ValueError for a position that the network does not read, an unknown id, and for
    interventions at chosen positions, which other tokens would have in a shorter text.
    """
    text = _Text.of(model, run, position)
    intact = text.logits([()])[0].softmax(dim=-1)
    if target is None:
        target = text.next_id(run)
        target = int(intact.argmax()) if target is None else target
    check_whole("target", target, 0, len(intact) - 1)
    words = text.words(model.tokenizer.label(target))
    alike: dict[str, list[tuple[int, ...]]] = {}
    for word in words:
        said = text.said(word)
        alike.setdefault(said.strip(AROUND) or said, []).append(word)
    several = {sum(found, ()): said for said, found in alike.items() if found[1:]}
    variants = [(word, text.said(word)) for word in words] + [*several.items()]
    effects = [
        WordEffect(
            word=said,
            places=places,
            probability=float(row[target]),
            likeliest=int(row.argmax()),
            likeliest_probability=float(row.max()),
        )
        for part in in_parts(variants, text.largest_batch)
        for (places, said), row in zip(
            part, text.logits([places for places, _ in part]).softmax(dim=-1), strict=True
        )
    ]
    return WordEffects(
        position=text.position,
        target=target,
        probability=float(intact[target]),
        stack=text.stack,
        masked=text.mask is not None,
        words=tuple(effects[: len(words)]),
        mentions=tuple(effects[len(words) :]),
    )


@torch.no_grad()
def without_words(
    model: LoadedModel, run: Run, places: Sequence[int], position: int | None = None
) -> WithoutWords:
    """The prediction without the tokens at these places, and the text that would follow.

    places: in the source for an encoder-decoder. Raises ValueError for a place that the text does
    not have before the prediction, for all of them at once, and as `word_effects`.
    """
    text = _Text.of(model, run, position)
    left = sorted({*places})
    is_asked = text.mask is None and text.stack == model.network.last_stack.name == "encoder"
    here = {text.position} if is_asked else set()  # an encoder's own token, which must stand
    if not left or not {*left} <= {*text.own} - here or len(left) == len(text.own):
        raise InvalidCall(
            "out_of_range",
            "places must be some of the text's tokens and not all, out of {first} to {last}; got "
            "{got}",
            first=text.own.start,
            last=text.own.stop - 1,
            got=shortened(list(places)),
        )
    return WithoutWords(
        logits=text.logits([tuple(left)])[0].cpu(), written=text.written(tuple(left))
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Text:
    """What the network reads before one prediction of a run, of which words can be left out."""

    model: LoadedModel
    run: Run
    before: TextBefore
    position: int
    mask: int | None  # the token that stands in a word's place

    @classmethod
    def of(cls, model: LoadedModel, run: Run, position: int | None) -> _Text:
        position = model.last_read(run) if position is None else position
        before = TextBefore.up_to(model, run, position)
        mask = model.tokenizer.mask_id if isinstance(model.network, EncoderOnly) else None
        if mask is None and (
            placed := [str(change) for change in run.request.interventions if _at(change)]
        ):
            raise InvalidRequest(
                "changed_positions",
                "words cannot be left out together with a change at chosen positions, which would "
                "then hold other tokens; got {change}",
                change=placed[0],
            )
        return cls(model, run, before, position, mask)

    @property
    def stack(self) -> str:
        return "encoder" if self.before.source else self.before.network.last_stack.name

    @property
    def own(self) -> range:
        """The places that a word can have."""
        if self.before.source:
            return range(len(self.before.source))
        start = 0 if isinstance(self.before.network, EncoderOnly) else self.run.trace_start
        return range(start, start + len(self.before.ids))

    @property
    def labels(self) -> tuple[str, ...]:
        return self.run.source_labels if self.before.source else self.run.labels

    @property
    def largest_batch(self) -> int:
        return self.before.largest_batch if not self.run.request.interventions else 1

    def next_id(self, run: Run) -> int | None:
        """The token that follows in the run's ids; None for an encoder."""
        is_last = isinstance(self.before.network, EncoderOnly) or self.position + 1 >= len(run.ids)
        return None if is_last else run.ids[self.position + 1]

    def said(self, places: Sequence[int]) -> str:
        """The tokens at some places as text."""
        ids = self.before.source or self.run.ids
        return self.model.tokenizer.decode([ids[place] for place in places]).strip()

    def words(self, following: str) -> list[tuple[int, ...]]:
        """The places of each word; without the word that the label `following` continues, and
        without a text's only word."""
        positions = self.run.special_positions()
        special = positions["source_special" if self.before.source else "special"]
        hidden = self.model.tokenizer.mask_id
        ids = self.before.source or self.run.ids
        visible = self.labels[: self.own.stop]
        words = [
            word
            for word in words_in(visible, special)
            if word[0] >= self.own.start and all(ids[place] != hidden for place in word)
        ]
        last = self.own.stop - 1
        joins = self.stack == "decoder" and following[:1].isalnum()
        if words and joins and last in words[-1]:
            words.pop()
        if isinstance(self.before.network, EncoderOnly):  # the word there is what is predicted
            words = [word for word in words if self.position not in word]
        return words if len(self.own) > sum(map(len, words[:1])) else []

    def logits(self, rows: Sequence[tuple[int, ...]]) -> Tensor:
        """(N, V), each row without the tokens at its places."""
        network = self.before.network
        texts = [self._left(row) for row in rows]
        filler = self.model.tokenizer.padding_id
        ids = pad([ids for _, ids, _ in texts], filler).to(network.device)
        where = torch.zeros(ids.shape, dtype=torch.bool, device=network.device)
        for row, (_, _, at) in enumerate(texts):
            where[row, at] = True
        is_text = text_in([ids for _, ids, _ in texts], network.device)
        hooks = self._hooks(rows)
        if isinstance(network, EncoderDecoder):
            read = [source for source, _, _ in texts]
            source = pad(read, filler).to(network.device)
            told = text_in(read, network.device)
            return network(
                source, ids, where=where, hooks=hooks, src_is_text=told, tgt_is_text=is_text
            ).float()
        types = None
        if self.before.types:
            types = pad([self._types(row) for row in rows], 0).to(network.device)
        options: dict[str, Any] = {} if types is None else {"types": types}
        return network(ids, is_text=is_text, where=where, hooks=hooks, **options).float()

    def _types(self, places: tuple[int, ...]) -> list[int]:
        """The token types of a text without the tokens at these places."""
        kinds = enumerate(self.before.types)
        return [x for place, x in kinds if self.mask is not None or place not in places]

    def _left(self, places: tuple[int, ...]) -> tuple[list[int], list[int], int]:
        """(source, ids, the row of the logits) without the tokens at these places."""
        before, gone = self.before, set(places)
        at = before.at % len(before.ids)
        if before.source:
            return [x for i, x in enumerate(before.source) if i not in gone], list(before.ids), at
        numbered = list(zip(self.own, before.ids, strict=True))
        if self.mask is not None:
            return [], [self.mask if place in gone else x for place, x in numbered], at
        rest = [x for place, x in numbered if place not in gone]
        if isinstance(before.network, EncoderOnly):
            return [], rest, at - sum(place < at for place in gone)
        return [], rest, len(rest) - 1

    def _hooks(self, rows: Sequence[tuple[int, ...]]) -> Sequence[Hook]:
        if not self.run.request.interventions:
            return ()
        read = [Prepared(source, ids) for source, ids, _ in map(self._left, rows)]
        return joined([hooks_for(self.model, self.run.request, ids) for ids in read])

    def written(self, places: tuple[int, ...]) -> tuple[int, ...]:
        """Ids of the greedy continuation, to the end of the sentence, at most N_WRITTEN."""
        network = self.before.network
        if isinstance(network, EncoderOnly):
            return ()
        source, ids, _ = self._left(places)
        steps = generate(
            network,
            [ids],
            sources=[source] if source else None,
            max_new_tokens=N_WRITTEN,
            end_ids=self.model.tokenizer.end_ids,
            hooks=self._hooks([places]),
        )
        return tuple(one_sentence(self.model, (step.token for (step,) in steps if step)))


def _at(change: Intervention) -> bool:
    """Whether a change names positions."""
    if isinstance(change, EditMask):
        return bool(change.allow or change.forbid)
    return getattr(change, "positions", None) is not None
