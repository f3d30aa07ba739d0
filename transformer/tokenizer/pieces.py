"""Tokenizers that are SentencePiece models, read by the package sentencepiece."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as BPETokenizer

from transformer.checks import check_file, needs_package, shortened, text_of
from transformer.tokenizer.chat import read_template
from transformer.tokenizer.foreign import (
    BYTE,
    SPACE,
    SpecialIds,
    TheirTokenizer,
    settings_file,
)
from transformer.tokenizer.vocabulary_files import (
    SPECIAL_LISTS,
    add_tokens,
    added_tokens,
    check_class,
    frame,
    named_token,
    token_name,
)

MARIAN_FILES = ("source.spm", "target.spm", "vocab.json")
_UNKNOWN = "<unk>"
_OF_PIECES = ("", "T5Tokenizer", "MT5Tokenizer")  # others number spiece.model's pieces otherwise

_DEBERTA_NAMES = {  # in the order in which transformers adds those that are no pieces
    "bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]",
    "mask": "[MASK]",
}  # fmt: skip


class Frame(NamedTuple):
    """Whether a start is added before a text and an end after it, unless the folder's settings say
    otherwise."""

    start: bool
    end: bool


PIECE_FILES = {  # of Llama and Gemma, and of T5
    "tokenizer.model": Frame(start=True, end=False),
    "spiece.model": Frame(start=False, end=True),
}


class PieceTokenizer(TheirTokenizer):
    """A SentencePiece model whose pieces' numbers are the ids; others are added tokens."""

    def __init__(self, path: Path, ids: SpecialIds, vocab_size: int) -> None:
        self._path, self._processor = path, _pieces(path)
        size, settings = self._processor.get_piece_size(), settings_file(path.parent)
        if path.name == "spiece.model":
            check_class(path.parent, settings, _OF_PIECES)
        if size > vocab_size:
            raise ValueError(
                f"{path} has {size} pieces; needed: at most the network's vocabulary of "
                f"{vocab_size}"
            )
        names = [self._processor.id_to_piece(at) for at in range(size)]
        raw = [self._raw(at, name) for at, name in enumerate(names)]
        beyond = {at: x for at, x in added_tokens(path.parent, settings).items() if at >= size}
        _check_special(beyond)
        added = {at: str(x["content"]) for at, x in beyond.items()}
        names += [added.get(at, "") for at in range(size, vocab_size)]
        raw += [b""] * (vocab_size - size)
        free = {at for at in range(size) if not raw[at]}
        named = {ids.start, *ids.ends, *([] if ids.padding is None else [ids.padding])}
        specials = {at for at in free | named | {*added} if at < vocab_size}
        for at in specials:
            raw[at] = b""
        super().__init__(ids, names, raw, specials)
        start, end = (
            settings.get(f"add_{name}_token", default)
            for name, default in zip(("bos", "eos"), PIECE_FILES[path.name], strict=True)
        )
        self._around = ([self.start_id] if start else [], [self.end_id] if end else [])
        self.read_languages(settings)
        self.chat_template = read_template(path.parent, settings)

    @property
    def _frame(self) -> tuple[list[int], list[int]]:
        return self._around

    @property
    def kind(self) -> str:
        """A description of its tokens."""
        return "SentencePiece"

    def save(self, path: Path) -> None:
        """Write its file and its settings into the folder of `path`."""
        for name in (self._path.name, "tokenizer_config.json"):
            file = self._path.with_name(name)
            if file.is_file() and file.resolve() != path.with_name(name).resolve():
                shutil.copyfile(file, path.with_name(name))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, without specials."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, as in transformers: where some of a row of byte tokens are no
        character, each of them is U+FFFD."""
        parts, kept = [], [index for index in self.checked(ids) if index not in self._specials]
        for is_byte, row in groupby(kept, lambda index: bool(BYTE.fullmatch(self.names[index]))):
            raw = self.to_bytes(row)
            try:
                parts.append(raw.decode())
            except UnicodeDecodeError:
                assert is_byte
                parts.append("\ufffd" * len(raw))
        return "".join(parts).removeprefix(" ")

    def _encoded(self, text: str, *, special: bool = False) -> list[int]:
        return [int(index) for index in self._processor.encode(text)]

    def _raw(self, index: int, name: str) -> bytes:
        """The bytes of a piece; none for a control piece."""
        if self._processor.is_control(index) or self._processor.is_unknown(index):
            return b""
        byte = BYTE.fullmatch(name) if self._processor.is_byte(index) else None
        return bytes([int(byte[1], 16)]) if byte else name.replace(SPACE, " ").encode()


def _check_special(added: dict[int, dict[str, Any]]) -> None:
    """Raise ValueError for an added word: SentencePiece would split it."""
    for token in added.values():
        if not token.get("special"):
            raise ValueError(
                f"its added word {shortened(token['content'])} is not read beside a SentencePiece "
                "file; needed: a tokenizer.json, which transformers writes: "
                "AutoTokenizer.from_pretrained(...).save_pretrained(...)"
            )


def deberta(folder: Path, settings: dict[str, Any]) -> BPETokenizer:
    """DeBERTa v2's and v3's tokenizer, from spm.model. Raises ValueError for another kind.

    As in transformers, only the pieces and their scores are read: texts are normalized by NFC, not
    by the model's own rules, and characters that are no pieces are unknown, not bytes.
    """
    check_class(folder, settings, ("DebertaV2Tokenizer",))
    model = _pieces(folder / "spm.model")
    pieces = [(model.id_to_piece(at), model.get_score(at)) for at in range(model.get_piece_size())]
    names = {key: named_token(settings, key, name) for key, name in _DEBERTA_NAMES.items()}
    unknown = (names["unk"], 0.0)
    unk_id = pieces.index(unknown) if unknown in pieces else model.unk_id()
    tokenizer = BPETokenizer(models.Unigram(pieces, unk_id=unk_id, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([
        *([normalizers.Lowercase()] if settings.get("do_lower_case") else []),
        normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "), normalizers.NFC(),
        normalizers.Strip(left=False, right=True),
    ])  # fmt: skip
    scheme = "always" if settings.get("add_prefix_space", True) else "first"
    words = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    punctuation = pre_tokenizers.Punctuation(behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [punctuation, words] if settings.get("split_by_punct") else [words]
    )
    tokenizer.decoder = decoders.Metaspace()
    add_tokens(tokenizer, folder, settings, sys.maxsize)  # before the special ones
    tokenizer.add_special_tokens([*names.values()])
    lists = [settings[key] for key in SPECIAL_LISTS if isinstance(settings.get(key), list)]
    if lists:  # in place of the model's own symbols
        tokenizer.add_special_tokens([token_name(token) for token in lists[0] or lists[-1]])
    for at, (name, score) in enumerate([] if lists else pieces):
        if model.is_control(at):
            tokenizer.add_special_tokens([name])
        elif score == 0 and not (model.is_unknown(at) or model.is_byte(at)):  # a user's own symbol
            tokenizer.add_tokens([AddedToken(name, normalized=False)])
    frame(tokenizer, names["cls"], names["sep"], types=True)
    return tokenizer


class MarianTokenizer(TheirTokenizer):
    """SentencePiece pieces with the ids of vocab.json. Raises ValueError."""

    def __init__(self, folder: Path, ids: SpecialIds, vocab_size: int) -> None:
        self._folder = folder
        self._ids_of = _vocabulary(folder / "vocab.json", vocab_size)
        self._pieces = _pieces(folder / "source.spm")
        self._target_pieces = _pieces(folder / "target.spm")
        added = added_tokens(folder, settings_file(folder))
        vocabulary = self._ids_of.values()
        _check_special({at: token for at, token in added.items() if at not in vocabulary})
        names = [""] * vocab_size
        for name, index in self._ids_of.items():
            names[index] = name
        named = {ids.start, *ids.ends, *([] if ids.padding is None else [ids.padding])}
        specials = {*named, self._ids_of[_UNKNOWN]}
        raw = [
            b"" if index in specials else name.replace(SPACE, " ").encode()
            for index, name in enumerate(names)
        ]
        super().__init__(ids, names, raw, specials)

    @cached_property
    def _frame(self) -> tuple[list[int], list[int]]:
        return [], [self.end_id]

    @property
    def kind(self) -> str:
        """A description of its tokens."""
        return "SentencePiece"

    def save(self, path: Path) -> None:
        """Write its three files into the folder of `path`."""
        for name in MARIAN_FILES:
            if self._folder.resolve() != path.parent.resolve():
                shutil.copyfile(self._folder / name, path.parent / name)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, without specials."""
        return [self.encode(text) for text in texts]

    def _encoded(self, text: str, *, special: bool = False) -> list[int]:
        """A source text's ids; a language code like >>fra<< at its start is one token."""
        return self._ids_by(self._pieces, text)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, as in transformers: without spaces around it."""
        return super().decode(ids).strip()

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of translations, split by the target language's pieces."""
        for text in texts:
            self.encode(text)  # raises for invalid Unicode
        return [self._ids_by(self._target_pieces, text) for text in texts]

    def _ids_by(self, processor: Any, text: str) -> list[int]:
        code, text = _language_code(text)
        pieces = [*code, *processor.encode(text, out_type=str)]
        unknown = self._ids_of[_UNKNOWN]
        return [self._ids_of.get(piece, unknown) for piece in pieces]


def _language_code(text: str) -> tuple[list[str], str]:
    end = text.find("<<")
    if not text.startswith(">>") or end < 0:
        return [], text
    return [text[: end + 2]], text[end + 2 :]


def _vocabulary(path: Path, vocab_size: int) -> dict[str, int]:
    try:
        ids = json.loads(text_of(path))
        good = isinstance(ids, dict) and _UNKNOWN in ids
        good = good and all(isinstance(i, int) and 0 <= i < vocab_size for i in ids.values())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not readable JSON: {error}") from error
    if not good:
        raise ValueError(
            f"{path} must give each piece, {_UNKNOWN} among them, an id below {vocab_size}"
        )
    return dict(ids)


def _pieces(path: Path) -> Any:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise ValueError(needs_package(str(path), "sentencepiece")) from error
    try:
        check_file(path)
        return SentencePieceProcessor(model_file=str(path))
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{path} is not a readable SentencePiece model: {error}") from error
