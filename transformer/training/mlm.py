"""Masked language modelling: masking whole words, and how many of them a network predicts."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from transformer.inference.model import Model
from transformer.model.network import IGNORED
from transformer.tokenizer import SPECIALS, Tokenizer, around
from transformer.training.data import Example
from transformer.training.evaluate import Score, scored

HIDDEN_SHARE = 0.15  # of the tokens, as in Devlin et al. 2019


class Words:
    """Group tokens into words: a token continues the previous one if it starts, and that one ends,
    with a letter or digit; a single space continues too."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        texts = [tokenizer.to_bytes([index]) for index in range(tokenizer.vocab_size)]
        self.begins = [text[:1].isalnum() or text[:1] > b"\x7f" for text in texts]
        self.ends = [text[-1:].isalnum() or text[-1:] > b"\x7f" or text == b" " for text in texts]

    def of(self, ids: Sequence[int], frame: tuple[int, int] = (1, 0)) -> list[list[int]]:
        """The positions of each word, in order. frame: the number of special tokens before and
        after the words."""
        words: list[list[int]] = []
        for place in range(frame[0], len(ids) - frame[1]):
            if words and self.ends[ids[place - 1]] and self.begins[ids[place]]:
                words[-1].append(place)
            else:
                words.append([place])
        return words


class Hiding:
    """Mask words for an encoder to predict (Devlin et al. 2019).

    Raises ValueError for a tokenizer without a mask token.
    """

    def __init__(self, tokenizer: Tokenizer, share: float = HIDDEN_SHARE) -> None:
        if tokenizer.mask_id is None:
            raise ValueError("hiding words needs a tokenizer with a mask token; it has none")
        self.words, self.share, self.mask_id = Words(tokenizer), share, tokenizer.mask_id

    def chosen(
        self, ids: Sequence[int], rng: Random, frame: tuple[int, int] = (1, 0)
    ) -> list[list[int]]:
        """Random whole words, up to the share of the tokens; at least one."""
        words = self.words.of(ids, frame)
        rng.shuffle(words)
        wanted, n_chosen = max(1, round(self.share * (len(ids) - sum(frame)))), 0
        for number, word in enumerate(words):
            if n_chosen >= wanted:
                return words[:number]
            n_chosen += len(word)
        return words

    def hide(
        self,
        ids: Sequence[int],
        rng: Random,
        masked: float = 0.8,
        frame: tuple[int, int] = (1, 0),
    ) -> Example:
        """Mask 80 % of the chosen words, replace 10 % by random tokens and keep 10 %, so that the
        network cannot tell which input tokens are true. masked: another share than 0.8. frame: as
        in `Words.of`."""
        read, wanted = list(ids), [IGNORED] * len(ids)
        for word in self.chosen(ids, rng, frame):
            fate = rng.random()
            for place in word:
                wanted[place] = ids[place]
                if fate < masked:
                    read[place] = self.mask_id
                elif fate < 0.9:
                    read[place] = rng.randrange(len(SPECIALS), self.mask_id)
        return Example(read, wanted)


def hidden_places(tokenizer: Tokenizer, documents: Sequence[str], max_len: int) -> list[Example]:
    """Documents in pieces of at most max_len tokens, with the special tokens around a text and the
    same words masked at each call."""
    hiding = Hiding(tokenizer)
    before, behind = around(tokenizer)
    frame = len(before), len(behind)
    size = max_len - sum(frame)
    texts = tokenizer.encode_batch(list(documents))
    pieces = [ids[at : at + size] for ids in texts for at in range(0, len(ids), size)]
    return [
        hiding.hide([*before, *piece, *behind], Random(number), masked=1.0, frame=frame)
        for number, piece in enumerate(pieces)
    ]


def score_hidden(
    model: Model, tokenizer: Tokenizer, documents: Sequence[str], max_len: int
) -> Score:
    """Score the predictions of hidden tokens: an encoder reads both sides, a decoder the unmasked
    text before each.

    tokenizer: has the mask token; the model's tokenizer must give the same ids. Raises ValueError
    for an encoder-decoder, and for another vocabulary.
    """
    if model.config.family == "encoder-decoder":
        raise ValueError(
            f"hidden words are found by an encoder or a decoder alone; {model.name} is "
            f"{model.config.family}"
        )
    mine, n_shared = model.tokenizer, tokenizer.vocab_size - 1
    if mine.labels(range(n_shared)) != tokenizer.labels(range(n_shared)):
        raise ValueError(f"{model.name} has another vocabulary: its hidden tokens are others")
    rows = hidden_places(tokenizer, documents, max_len)
    if model.config.family == "decoder":
        rows = [_from_left(row) for row in rows]
    return scored(model, rows, documents)


def _from_left(hidden: Example) -> Example:
    """The same targets for a decoder, which reads the unmasked text before them."""
    read, wanted = hidden.read, hidden.wanted or []
    text = [seen if true == IGNORED else true for seen, true in zip(read, wanted, strict=True)]
    return Example(text[:-1], wanted[1:])
