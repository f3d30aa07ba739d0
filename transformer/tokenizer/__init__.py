"""Text to ids and back: byte-level BPE or characters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as BPETokenizer

from transformer.checks import (
    InvalidCall,
    InvalidRequest,
    check_file,
    check_text,
    check_texts,
    is_whole,
    shortened,
)
from transformer.tokenizer.chat import ChatTemplate
from transformer.tokenizer.cost import check_cost
from transformer.tokenizer.labels import byte_level, show

PADDING = "<|padding|>"
START = "<|start|>"
END = "<|endoftext|>"
SPECIALS = (PADDING, START, END)  # ids 0, 1, 2 of every vocabulary made here
HIDDEN = "[MASK]"
TYPED_MASK = re.compile(r"[\[［【] *mask *[\]］】]", re.IGNORECASE)  # HIDDEN as people type it
MASK = "<|mask|>"  # the last id, if present: hides a token from an encoder

# Usual names of special tokens, and how many of a text's a warning lists.
_USUAL = re.compile(
    r"<\|\w{1,30}\|>|</?s>|<(?:pad|unk|mask|cls|sep|bos|eos|start_of_turn|end_of_turn)>"
    r"|\[(?:PAD|UNK|CLS|SEP|MASK|BOS|EOS|/?INST)\]"
)
MOST_NAMES = 3

# Texts that a tokenizer may encode wrongly, or never finish encoding.
HARD_TEXTS = (f"{'a' * 2000}!", " " * 2000, "Hé, 🦊 said:\n\t« ça va ? » \x00", f"1{PADDING} {END}")


class Tokenizer:
    """Byte-level BPE, with ids for every string that decode to exactly that string; or characters,
    one token each, with ids only for strings of known characters.

    A special token's name in a text is ordinary text: only the program adds the special ids
    `padding_id`, `start_id` and `end_id`.

    chat_template: how a chat model reads conversations; None for other models. reads_sources:
    whether it belongs to an encoder-decoder.
    """

    chat_template: ChatTemplate | None = None
    reads_sources = False

    def __init__(self, bpe: BPETokenizer) -> None:
        bpe.encode_special_tokens = True
        self._bpe = bpe
        self.padding_id = self._special(PADDING)
        self.start_id = self._special(START)
        self.end_id = self._special(END)
        self._specials = {self.padding_id: PADDING, self.start_id: START, self.end_id: END}
        self._mask_id = bpe.token_to_id(MASK)
        if self._mask_id is not None:
            self._specials[self._mask_id] = MASK
        names = {index: name for name, index in bpe.get_vocab().items()}
        if set(names) != set(range(len(names))):
            raise ValueError(f"its {len(names)} ids must count up from 0; highest: {max(names)}")
        self._by_character = isinstance(bpe.model, models.WordLevel)
        to_bytes = _character if self._by_character else byte_level
        self._bytes = [
            b"" if index in self._specials else to_bytes(names[index])
            for index in range(len(names))
        ]
        self._known = frozenset(names.values()) if self._by_character else frozenset()

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> Tokenizer:
        """Learn merges from texts. vocab_size includes the 256 bytes and the three specials."""
        smallest = 256 + len(SPECIALS)
        if vocab_size < smallest:
            raise ValueError(f"vocab_size must be at least {smallest}; got {vocab_size}")
        bpe = BPETokenizer(models.BPE())
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        bpe.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=list(SPECIALS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        bpe.train_from_iterator(texts, trainer)
        return cls(bpe)

    @classmethod
    def of_characters(cls, texts: Iterable[str]) -> Tokenizer:
        """One token for each distinct character of the texts, in Unicode order."""
        names = [*SPECIALS, *sorted(set().union(*texts))]
        bpe = BPETokenizer(models.WordLevel({name: at for at, name in enumerate(names)}))
        bpe.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        bpe.decoder = decoders.Fuse()
        bpe.add_special_tokens(list(SPECIALS))
        return cls(bpe)

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Read a tokenizer.json. Raises ValueError if it is not one that this class wrote."""
        try:
            check_file(path)
            bpe = BPETokenizer.from_file(str(path))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a bare Exception, or a Rust panic
            raise ValueError(f"{path} is not a readable tokenizer file: {error}") from error
        try:
            tokenizer = cls(bpe)
            content = json.loads(bpe.to_str())
            _check_plain(content, in_bytes=not tokenizer._known)
            check_cost(bpe, content)
            tokenizer._check_texts()
            return tokenizer
        except ValueError as error:
            raise ValueError(f"{path} is not a tokenizer of this project: {error}") from error

    def with_mask(self) -> Tokenizer:
        """This tokenizer with MASK as its last id; itself if it already has one."""
        if self._mask_id is not None:
            return self
        bpe = BPETokenizer.from_str(self._bpe.to_str())
        bpe.add_special_tokens([MASK])
        return type(self)(bpe)

    def save(self, path: Path) -> None:
        """Write tokenizer.json."""
        self._bpe.save(str(path))

    def __repr__(self) -> str:
        """One line."""
        return f"<{type(self).__name__}: {self.kind}, {self.vocab_size:,} tokens>"

    @property
    def kind(self) -> str:
        """A description of its tokens."""
        return "characters" if self._by_character else "byte-level BPE"

    @property
    def vocab_size(self) -> int:
        """The number of ids, specials included."""
        return len(self._bytes)

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Ids of a text. special: with the special tokens that a decoder or an encoder reads around
        it; for the encoder of an encoder-decoder see `source`.

        Raises ValueError for half of a surrogate pair or an unknown character.
        """
        if not isinstance(text, str):
            raise ValueError(f"the text must be a string; got {type(text).__name__}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidCall(
                "invalid_unicode",
                "the text holds half of a surrogate pair at character {start}, which "
                "is not valid Unicode; allowed: any valid Unicode text",
                start=error.start,
            ) from error
        self._check_characters(text)
        return self._framed(text) if special else self._encoded(text)

    def __call__(self, text: Any, text_pair: Any = None) -> dict[str, Any]:
        """What a network reads of a text or a list of texts, as transformers' tokenizers return it:
        lists of input_ids, without padding, their attention_mask, and for pairs of texts their
        token_type_ids. Raises ValueError as `encode`."""
        if not isinstance(text, str):
            check_texts(text)
            pairs = [None] * len(text) if text_pair is None else text_pair
            rows = [self(first, other) for first, other in zip(text, pairs, strict=True)]
            return {name: [row[name] for row in rows] for name in rows[0]}
        check_text(text)
        types: dict[str, Any] = {}
        if text_pair is not None:
            ids, types["token_type_ids"] = pair_of(self, text, text_pair)
        elif self.reads_sources:
            ids = self.source(self.encode(text))
        else:
            ids = hidden_ids(self, text)
        return {"input_ids": ids, "attention_mask": [1] * len(ids), **types}

    def encode_chat(self, text: str) -> list[int]:
        """Ids of the text of a conversation, in which names of special tokens are read as these
        tokens. Raises ValueError for a tokenizer that cannot read them."""
        raise ValueError(
            f"conversations are not read by a tokenizer of {self.kind}; needed: a tokenizer.json, "
            "which transformers writes: AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        )

    def _framed(self, text: str) -> list[int]:
        """A text's ids after the end of another text."""
        return [self.end_id, *self._encoded(text)]

    def _encoded(self, text: str, *, special: bool = False) -> list[int]:
        """Ids of a text; special: with those that tokenizer.json adds."""
        with panics_said():
            return self._bpe.encode(text, add_special_tokens=special).ids

    def source(self, ids: Sequence[int]) -> list[int]:
        """A text's ids as the encoder of an encoder-decoder reads them: with an end token."""
        return [*ids, self.end_id]

    def pair(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
        """The ids of two texts as an encoder reads them, and their token types. Raises ValueError
        for a tokenizer that joins no pairs."""
        raise ValueError("its tokenizer joins no pairs of texts")

    @property
    def target_start(self) -> list[int]:
        """Ids that a target of an encoder-decoder begins with."""
        return [self.start_id]

    @property
    def languages(self) -> dict[str, int]:
        """The tokens that name a language, by name: a translator of many languages has them."""
        return {}

    def between(self, source: str | None, target: str | None) -> Tokenizer:
        """This tokenizer from one of its languages to another; None = unchanged.

        Raises ValueError for a language that it does not have.
        """
        raise ValueError("its tokenizer names no languages")

    def document(self, ids: Sequence[int]) -> list[int]:
        """A whole text's ids between two end tokens; a network predicts all but the first."""
        return [self.end_id, *ids, self.end_id]

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of translations, without specials."""
        return self.encode_batch(texts)

    def target(self, ids: Sequence[int]) -> list[int]:
        """A whole translation's ids: what a decoder predicts after `target_start`."""
        return [*ids, self.end_id]

    @property
    def mask_id(self) -> int | None:
        """The token that hides another from an encoder, or None."""
        return self._mask_id

    def is_special(self, index: int) -> bool:
        """Whether an id is a special token, which decodes to no text."""
        return index in self._specials

    def special_labels(self) -> list[str]:
        """The names of its special tokens."""
        return list(self._specials.values())

    def reads_as_token(self, name: str) -> bool:
        """Whether a typed name is encoded as the special token of that name."""
        return False

    @property
    def end_ids(self) -> frozenset[int]:
        """The ids that end a text."""
        return frozenset({self.end_id})

    @property
    def forced_end(self) -> int | None:
        """The id that ends a text of maximum length, whatever the network predicts."""
        return None

    def whole(self, ids: Iterable[int]) -> bytes:
        """The bytes of a whole text."""
        return self.to_bytes(ids)

    def added(self, before: Sequence[int], ids: Sequence[int]) -> bytes:
        """The bytes that more ids add to the text of the ids before them."""
        return self.to_bytes(ids)

    def token_bytes(self, index: int) -> bytes:
        """The bytes of one token inside a text; none for a special token."""
        return self._bytes[index]

    def without_unknown(self, text: str) -> str:
        """A text without the characters that have no ids."""
        missing = self.unknown(text)
        return (
            "".join(character for character in text if character not in missing)
            if missing
            else text
        )

    def readable(self, text: str) -> str:
        """A text without its unknown characters; a known character if only space is left."""
        kept = self.without_unknown(text)
        letters = (name for name in sorted(self._known.difference(SPECIALS)) if name.strip())
        return kept if kept.strip() else next(letters, kept)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` for many texts, on all cores."""
        for text in texts:
            self._check_characters(text)
        return [
            encoding.ids
            for encoding in self._bpe.encode_batch_fast(texts, add_special_tokens=False)
        ]

    def to_bytes(self, ids: Iterable[int]) -> bytes:
        """The UTF-8 bytes of ids; none for special tokens."""
        return b"".join(map(self.token_bytes, ids))

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids. Bytes that end in the middle of a character become U+FFFD. Raises ValueError
        for ids that the tokenizer does not have."""
        return self.to_bytes(self.checked(ids)).decode("utf-8", errors="replace")

    def checked(self, ids: Iterable[int]) -> list[int]:
        """A list of these ids: a list, an array or a tensor (T,). Raises ValueError for ids that
        the tokenizer does not have."""
        listed = ids.tolist() if hasattr(ids, "tolist") else ids
        listed = list(listed) if isinstance(listed, Iterable) else [listed]
        last = self.vocab_size - 1
        for index in listed:
            if not is_whole(index) or not 0 <= index <= last:
                raise ValueError(f"ids are whole numbers from 0 to {last}; got {shortened(index)}")
        return [int(index) for index in listed]

    def text(self, index: int) -> str:
        """The text of one token inside a text: U+FFFD for part of a character, "" for a special
        token."""
        return self.token_bytes(index).decode("utf-8", errors="replace")

    def label(self, index: int) -> str:
        """A token for display: spaces and controls visible, parts of characters as bytes."""
        if index in self._specials:
            return self._specials[index]
        return show(self.token_bytes(index))

    def labels(self, ids: Iterable[int]) -> list[str]:
        """`label` for each id, made once for all texts."""
        labels = self._shown
        return [labels[at] if at in labels else labels.setdefault(at, self.label(at)) for at in ids]

    @cached_property
    def _shown(self) -> dict[int, str]:
        """Labels by id, as far as they were asked for."""
        return {}

    def _check_texts(self) -> None:
        """Raise ValueError unless a few difficult texts survive encoding and decoding."""
        for text in () if self._known else HARD_TEXTS:
            if self.to_bytes(self.encode(text)) != text.encode():
                raise ValueError(f"the ids of {shortened(text)} decode to another text")

    def unknown(self, text: str) -> frozenset[str]:
        """The characters of a text that have no ids."""
        return frozenset(text) - self._known if self._known else frozenset()

    def _check_characters(self, text: str) -> None:
        if missing := self.unknown(text):
            unknown = next(character for character in text if character in missing)
            allowed = "".join(sorted(self._known.difference(SPECIALS)))
            raise InvalidRequest(
                "unknown_character",
                "the text holds {unknown}, which this model never learned; allowed: "
                "the {n_allowed} characters {allowed}",
                unknown=shortened(unknown),
                n_allowed=len(allowed),
                allowed=shortened(allowed),
            )

    def _special(self, name: str) -> int:
        index = self._bpe.token_to_id(name)
        if index is None:
            raise ValueError(f"the tokenizer has no {name} token; needed: {list(SPECIALS)}")
        return index


@contextmanager
def panics_said() -> Iterator[None]:
    """Turn a panic of the library, as where a pattern takes too long, into one sentence."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise InvalidRequest(
            "unsplittable_text", "the tokenizer's own pattern cannot split this text"
        ) from error


def _check_plain(content: dict[str, Any], *, in_bytes: bool) -> None:
    """Raise ValueError for settings with which ids would not decode to the text that was encoded:
    truncation, padding, normalization, dropout.
    """
    model, before = content["model"], content["pre_tokenizer"] or {"type": None}
    wrong = [name for name in ("truncation", "padding", "normalizer") if content[name] is not None]
    if in_bytes and model["type"] != "BPE":
        wrong.append(f"a model of type {model['type']}")
    wrong += ["dropout"] if model.get("dropout") else []
    *splits, last = before["pretokenizers"] if before["type"] == "Sequence" else [before]
    wrong += [
        f"a pre_tokenizer of type {step['type']}"
        for step, allowed in [*((split, "Split") for split in splits), (last, "ByteLevel")]
        if in_bytes and step["type"] != allowed
    ]
    wrong += ["add_prefix_space"] if last.get("add_prefix_space") else []
    for token in content["added_tokens"]:
        taken = [name for name in ("lstrip", "rstrip", "single_word") if token[name]]
        if taken:
            wrong.append(f"{', '.join(taken)} for the token {shortened(token['content'])}")
    if wrong:
        raise ValueError(f"it has {', '.join(wrong)}; needed: a plain byte-level BPE")


def _character(name: str) -> bytes:
    if len(name) != 1:
        raise ValueError(f"token {shortened(name)} is no character; needed: single characters")
    return name.encode()


def hidden_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """A text's ids for an encoder, with the mask token for each [MASK], also typed as [mask], and
    for each name of that token; a space before it belongs to it.

    The same as `Tokenizer.encode(text, special=True)` if the tokenizer has no mask token or the
    text no [MASK].
    """
    if tokenizer.mask_id is None:
        return tokenizer.encode(text, special=True)
    ids = _with_masks(tokenizer, text)
    if tokenizer.mask_id not in ids:
        return tokenizer.encode(text, special=True)
    before, behind = around(tokenizer)
    return [*before, *ids, *behind]


def pair_of(tokenizer: Tokenizer, first: str, second: str) -> tuple[list[int], list[int]]:
    """The ids of a pair of texts for an encoder, as in `hidden_ids`, and their token types. Raises
    ValueError for a tokenizer that joins no pairs."""
    return tokenizer.pair(_with_masks(tokenizer, first), _with_masks(tokenizer, second))


def _with_masks(tokenizer: Tokenizer, text: str) -> list[int]:
    """A text's ids without those around it, with the mask token for each [MASK]."""
    if tokenizer.mask_id is None:
        return tokenizer.encode(text)
    *pieces, last = TYPED_MASK.split(text.replace(tokenizer.label(tokenizer.mask_id), HIDDEN))
    ids: list[int] = []
    for piece in pieces:
        ids += [*_encoded(tokenizer, piece.removesuffix(" ")), tokenizer.mask_id]
    return [*ids, *_encoded(tokenizer, last)]


def special_names(tokenizer: Tokenizer, text: str) -> list[str]:
    """The names of special tokens, of this tokenizer or usual ones, that a text contains; without
    the mask token's, at most MOST_NAMES, each once."""
    specials = (name for name in tokenizer.special_labels() if len(name) > 2 and name in text)
    names = dict.fromkeys([*_USUAL.findall(text), *specials])
    if tokenizer.mask_id is not None:
        for name in (HIDDEN, tokenizer.label(tokenizer.mask_id)):
            names.pop(name, None)
    return list(names)[:MOST_NAMES]


def around(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The special ids that `encode` adds before and after those of a text."""
    text = tokenizer.readable("a")
    whole, part = tokenizer.encode(text, special=True), tokenizer.encode(text)
    start = next(at for at in range(len(whole)) if whole[at : at + len(part)] == part)
    return whole[:start], whole[start + len(part) :]


def _encoded(tokenizer: Tokenizer, piece: str) -> list[int]:
    return tokenizer.encode(piece) if piece else []
