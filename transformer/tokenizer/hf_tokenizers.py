"""Tokenizers of other projects with the interface of `Tokenizer`: tokenizer.json, Marian files."""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as BPETokenizer

from transformer.checks import check_choice, check_file, needs_package, shortened, text_of
from transformer.messages import say
from transformer.tokenizer import Tokenizer, around
from transformer.tokenizer.cost import check_cost
from transformer.tokenizer.labels import byte_level, show

MARIAN_FILES = ("source.spm", "target.spm", "vocab.json")
MASKS = ("[MASK]", "<mask>")  # usual names of the mask token
_UNKNOWN = "<unk>"
# A language as in mBART or NLLB, and in M2M-100: en_XX, eng_Latn; __en__.
_LANGUAGE = re.compile(r"[a-z]{2,3}_[A-Z]{2}|[a-z]{3}_[A-Z][a-z]{3}|__[a-z]{2,3}__")
_SPACE, _BYTE = "▁", re.compile(r"<0x([0-9A-F]{2})>")  # SentencePiece's space, and a single byte


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialIds:
    """start: what a decoder continues if the prompt is empty. ends: they end a text.

    padding: fills up the rows of a batch, or None. mask: hides a token; None if no file names it.
    then: they follow the start of a target: its language, or what the network was trained with.
    source_language: replaces the language that the tokenizer adds to a source.
    """

    start: int
    ends: frozenset[int]
    padding: int | None
    mask: int | None = None
    then: tuple[int, ...] = ()
    source_language: int | None = None


class TheirTokenizer(Tokenizer):
    """Base class of tokenizers that other projects trained.

    names: by id, the tokenizer's own spelling of the token, "" for an unused id. raw: by id, the
    bytes it decodes to, none for a special token. A special token's name in a text is ordinary
    text.
    """

    def __init__(
        self, ids: SpecialIds, names: Sequence[str], raw: Sequence[bytes], specials: Iterable[int]
    ) -> None:
        self.ids, self.names = ids, names
        self._bytes, self._by_character = list(raw), False
        self._known: frozenset[str] = frozenset()
        self._specials = {index: names[index] for index in specials}
        self.start_id, self.end_id = ids.start, min(ids.ends, default=ids.start)
        self.padding_id = min(ids.ends, default=0) if ids.padding is None else ids.padding

    @property
    def target_start(self) -> list[int]:
        """The start, and what follows it in every target."""
        return [self.start_id, *self.ids.then]

    @cached_property
    def languages(self) -> dict[str, int]:
        """The special tokens that name a language, by name."""
        return {name: at for at, name in self._specials.items() if _LANGUAGE.fullmatch(name)}

    def between(self, source: str, target: str) -> TheirTokenizer:
        """This tokenizer for translations from one of its languages to another."""
        for name in (source, target):
            check_choice("language", name, self.languages)
        chosen = self._to(target, replace(self.ids, source_language=self.languages[source]))
        other = copy.copy(self)
        other.ids, other.start_id = chosen, chosen.start
        return other

    def _to(self, target: str, ids: SpecialIds) -> SpecialIds:
        """Targets begin with a language, or with another token and a language."""
        language = self.languages[target]
        if ids.start in self.languages.values():
            return replace(ids, start=language)
        return replace(ids, then=(language,))

    @property
    def mask_id(self) -> int | None:
        """The token that hides another from an encoder, or None."""
        return self.ids.mask

    def reads_as_token(self, name: str) -> bool:
        """Whether a typed name is encoded as the special token of that name."""
        return name in (self.names[index] for index in self.encode(name))

    @property
    def end_ids(self) -> frozenset[int]:
        """The ids that end a text."""
        return self.ids.ends

    def label(self, index: int) -> str:
        """A token for display; ‹no token 7› for an unused id."""
        if not self.names[index]:
            return say("‹no token {index}›", index=index)
        return super().label(index)

    def whole(self, ids: Iterable[int]) -> bytes:
        """The bytes of a whole text, without the space that the first word carries."""
        return self.to_bytes(ids).removeprefix(b" ")


def _word_piece(folder: Path, settings: dict[str, Any]) -> BPETokenizer:
    """BERT's tokenizer, from vocab.txt."""
    names = {name: settings.get(f"{name}_token") or f"[{name.upper()}]" for name in _BERT_SPECIALS}
    names = {key: x["content"] if isinstance(x, dict) else x for key, x in names.items()}
    check_file(folder / "vocab.txt")
    vocabulary = models.WordPiece.read_file(str(folder / "vocab.txt"))
    made = BPETokenizer(models.WordPiece(vocabulary, unk_token=names["unk"]))
    made.normalizer = normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.add_special_tokens([name for name in names.values() if name in vocabulary])
    begin, end = names["cls"], names["sep"]
    made.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        special_tokens=[(name, made.token_to_id(name)) for name in (begin, end)],
    )
    return made


def _byte_level_bpe(folder: Path, settings: dict[str, Any]) -> BPETokenizer:
    """GPT-2's tokenizer, or RoBERTa's where the vocabulary has its special tokens, from vocab.json
    and merges.txt."""
    files = folder / "vocab.json", folder / "merges.txt"
    for file in files:
        check_file(file)
    vocabulary, merges = models.BPE.read_file(str(files[0]), str(files[1]))
    made = BPETokenizer(models.BPE(vocabulary, merges))
    spaced = settings.get("add_prefix_space", False)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    made.decoder = decoders.ByteLevel()
    specials = [name for name in (*_ROBERTA_SPECIALS, _GPT2_END) if name in vocabulary]
    made.add_special_tokens(
        [AddedToken(name, special=True, lstrip=name == "<mask>") for name in specials]
    )
    if {"<s>", "</s>"} <= vocabulary.keys():
        end, begin = ((name, vocabulary[name]) for name in ("</s>", "<s>"))
        made.post_processor = processors.RobertaProcessing(end, begin, add_prefix_space=spaced)
    else:
        made.post_processor = processors.ByteLevel(trim_offsets=False)
    return made


_BERT_SPECIALS = ("pad", "unk", "cls", "sep", "mask")
_ROBERTA_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_GPT2_END = "<|endoftext|>"
# Files of a tokenizer -> how they are read, the first that a folder has.
_FILES: dict[str, Callable[[Path, dict[str, Any]], BPETokenizer]] = {
    "tokenizer.json": lambda folder, settings: BPETokenizer.from_file(
        str(folder / "tokenizer.json")
    ),
    "vocab.txt": _word_piece,
    "merges.txt": _byte_level_bpe,
}


class FastTokenizer(TheirTokenizer):
    """Any tokenizer.json, or the files it is made of. Raises ValueError for unreadable ones."""

    def __init__(self, path: Path, ids: SpecialIds, vocab_size: int) -> None:
        try:
            check_file(path)
            bpe = _FILES[path.name](path.parent, _settings(path.parent))
            content = json.loads(bpe.to_str())
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a bare Exception, or a Rust panic
            raise ValueError(f"{path} is not a readable tokenizer file: {error}") from error
        try:
            check_cost(bpe, content)
        except ValueError as error:
            raise ValueError(f"{path} cannot be used: {error}") from error
        bpe.no_truncation()
        bpe.no_padding()
        bpe.encode_special_tokens = True
        self._bpe, self._content = bpe, content
        if ids.mask is None:
            ids = replace(ids, mask=_mask(path.parent, content, vocab_size))
        names, specials = _names(bpe, vocab_size), _specials(content, ids, vocab_size)
        plain = {added["id"] for added in content["added_tokens"]}
        raw = [
            b"" if index in specials else name.encode() if index in plain else self._raw(name)
            for index, name in enumerate(names)
        ]
        super().__init__(ids, names, raw, specials)
        self._read_languages(_settings(path.parent))

    def _read_languages(self, settings: dict[str, Any]) -> None:
        """Those that tokenizer_config.json names, unless others were chosen."""
        source, target = (settings.get(name) for name in ("src_lang", "tgt_lang"))
        if self.ids.source_language is None and source in self.languages:
            self.ids = replace(self.ids, source_language=self.languages[source])
        if not self.ids.then and target in self.languages:
            self.ids = self._to(target, self.ids)
            self.start_id = self.ids.start

    @property
    def kind(self) -> str:
        """A description of its tokens."""
        model = str(self._content["model"]["type"])
        return f"byte-level {model}" if _in_bytes(self._content) else model

    def save(self, path: Path) -> None:
        """Write tokenizer.json."""
        path.write_text(json.dumps(self._content, ensure_ascii=False), encoding="utf-8")

    def prompt(self, text: str) -> list[int]:
        """A text's ids with the special ones that the tokenizer adds."""
        self.encode(text)  # raises for invalid Unicode
        return self._encoded(text, specials=True) or [self.start_id]

    @cached_property
    def _frame(self) -> tuple[list[int], list[int]]:
        return around(self)

    def document(self, ids: Sequence[int]) -> list[int]:
        """A whole text's ids with the special ones that the tokenizer adds."""
        before, behind = self._frame
        return [*before, *ids, *behind]

    def source(self, ids: Sequence[int]) -> list[int]:
        """A text's ids as an encoder reads them, with the special ones that the tokenizer adds."""
        language, known = self.ids.source_language, self.languages.values()
        before, behind = (
            [index if language is None or index not in known else language for index in part]
            for part in self._frame
        )
        return [*before, *ids, *behind]

    def label(self, index: int) -> str:
        """A token for display: spaces visible, "##" before the continuation of a word."""
        if index not in self._specials and self._content["model"]["type"] == "WordPiece":
            return show(self.names[index].encode()) if self.names[index] else super().label(index)
        return super().label(index)

    def _raw(self, name: str) -> bytes:
        """The bytes of a token of the vocabulary."""
        if _in_bytes(self._content):
            return byte_level(name)
        model = self._content["model"]
        if model["type"] == "WordPiece":
            prefix = model["continuing_subword_prefix"]
            goes_on = name.startswith(prefix)
            return name.removeprefix(prefix).encode() if goes_on else f" {name}".encode()
        byte = _BYTE.fullmatch(name) if model.get("byte_fallback") else None
        return bytes([int(byte[1], 16)]) if byte else name.replace(_SPACE, " ").encode()


def _names(bpe: BPETokenizer, vocab_size: int) -> list[str]:
    names = [""] * vocab_size
    for name, index in bpe.get_vocab().items():
        if index >= vocab_size:
            raise ValueError(
                f"token {shortened(name)} has the id {index}; needed: ids below the network's "
                f"vocabulary of {vocab_size}"
            )
        names[index] = name
    return names


def _specials(content: dict[str, Any], ids: SpecialIds, vocab_size: int) -> set[int]:
    given = {ids.start, *ids.ends, *([] if ids.mask is None else [ids.mask])}
    found = {
        added["id"]
        for added in content["added_tokens"]
        if added["special"] or added["id"] == ids.padding
    }
    return {index for index in found | given if index < vocab_size}


def _mask(folder: Path, content: dict[str, Any], vocab_size: int) -> int | None:
    """The mask token: named by the settings files in the folder, else by a usual name, or None."""
    named = [
        _mask_name(folder / name) for name in ("tokenizer_config.json", "special_tokens_map.json")
    ]
    added = {one["content"]: one["id"] for one in content["added_tokens"] if one["id"] < vocab_size}
    return next((added[name] for name in (*named, *MASKS) if name in added), None)


def _settings(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json; empty without a readable one."""
    try:
        found = json.loads(text_of(folder / "tokenizer_config.json"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _mask_name(path: Path) -> str | None:
    """The mask token that a settings file names, or None."""
    try:
        named = json.loads(text_of(path))["mask_token"]
        return str(named["content"] if isinstance(named, dict) else named)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _in_bytes(content: dict[str, Any]) -> bool:
    """Whether the vocabulary uses the byte-level alphabet."""
    return "ByteLevel" in json.dumps([content["pre_tokenizer"], content["decoder"]])


class MarianTokenizer(TheirTokenizer):
    """SentencePiece pieces with the ids of vocab.json. Raises ValueError."""

    def __init__(self, folder: Path, ids: SpecialIds, vocab_size: int) -> None:
        self._folder = folder
        self._ids_of = _vocabulary(folder / "vocab.json", vocab_size)
        self._pieces = _pieces(folder / "source.spm")
        self._target_pieces = _pieces(folder / "target.spm")
        names = [""] * vocab_size
        for name, index in self._ids_of.items():
            names[index] = name
        given = {ids.start, *ids.ends, *([] if ids.padding is None else [ids.padding])}
        specials = {*given, self._ids_of[_UNKNOWN]}
        raw = [
            b"" if index in specials else name.replace(_SPACE, " ").encode()
            for index, name in enumerate(names)
        ]
        super().__init__(ids, names, raw, specials)

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

    def _encoded(self, text: str, *, specials: bool = False) -> list[int]:
        """A source text's ids; a language code like >>fra<< at its start is one token."""
        return self._ids_by(self._pieces, text)

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
        found = json.loads(text_of(path))
        good = isinstance(found, dict) and _UNKNOWN in found
        good = good and all(isinstance(i, int) and 0 <= i < vocab_size for i in found.values())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not readable JSON: {error}") from error
    if not good:
        raise ValueError(
            f"{path} must give each piece, {_UNKNOWN} among them, an id below {vocab_size}"
        )
    return dict(found)


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


def read(folder: Path, ids: SpecialIds, vocab_size: int) -> FastTokenizer | MarianTokenizer:
    """Read a folder's tokenizer.json, vocab.txt, vocab.json with merges.txt, or Marian's files.

    vocab_size: the number of ids in the network, some of which may be unused. Raises ValueError.
    """
    if (folder / "source.spm").is_file():
        return MarianTokenizer(folder, ids, vocab_size)
    path = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    if path is None:
        raise ValueError(
            f"{folder} holds no tokenizer.json; needed: one, or vocab.txt, or vocab.json and "
            "merges.txt, or Marian's source.spm, target.spm and vocab.json (transformers writes "
            "it: AutoTokenizer.from_pretrained(...).save_pretrained(...))"
        )
    return FastTokenizer(path, ids, vocab_size)


def settings_of(tokenizer: TheirTokenizer) -> dict[str, Any]:
    """Its special ids as plain values, for a checkpoint's metadata."""
    ids = tokenizer.ids
    return {
        "start": ids.start, "ends": sorted(ids.ends), "padding": ids.padding, "mask": ids.mask,
        "then": list(ids.then), "source_language": ids.source_language,
    }  # fmt: skip


def from_settings(folder: Path, settings: Any, vocab_size: int) -> FastTokenizer | MarianTokenizer:
    """The inverse of `settings_of` and `save`. Raises ValueError."""
    try:
        ids = SpecialIds(
            start=int(settings["start"]),
            ends=frozenset(map(int, settings["ends"])),
            padding=None if settings["padding"] is None else int(settings["padding"]),
            mask=None if settings.get("mask") is None else int(settings["mask"]),
            then=tuple(map(int, settings.get("then", ()))),
            source_language=None if (at := settings.get("source_language")) is None else int(at),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"the ids under 'tokenizer' must be start, ends and padding; got {shortened(settings)}"
        ) from error
    return read(folder, ids, vocab_size)
