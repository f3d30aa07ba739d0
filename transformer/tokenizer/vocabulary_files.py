"""Tokenizers without a tokenizer.json: from vocab.txt, or from vocab.json and merges.txt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as BPETokenizer

from transformer.checks import check_file, shortened, text_of

_BERT_NAMES = {
    "pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]",
}  # fmt: skip
_MPNET_NAMES = {"pad": "<pad>", "unk": "[UNK]", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
# What vocab.txt, or vocab.json and merges.txt, are read as, by transformers' name of the tokenizer.
WORD_PIECE = {
    "BertTokenizer": _BERT_NAMES, "DistilBertTokenizer": _BERT_NAMES,
    "ElectraTokenizer": _BERT_NAMES, "MPNetTokenizer": _MPNET_NAMES,
}  # fmt: skip
BYTE_LEVEL = (
    "GPT2Tokenizer", "GPTNeoXTokenizer", "Qwen2Tokenizer", "RobertaTokenizer", "BartTokenizer",
)  # fmt: skip
# By model_type, where no file names the tokenizer.
_DEFAULTS = {
    "albert": "AlbertTokenizer",
    "deberta-v2": "DebertaV2Tokenizer",
    "pegasus": "PegasusTokenizer",
    "bert": "BertTokenizer", "distilbert": "BertTokenizer", "electra": "BertTokenizer",
    "mpnet": "MPNetTokenizer", "gpt2": "GPT2Tokenizer", "gpt_neo": "GPT2Tokenizer",
    "opt": "GPT2Tokenizer", "starcoder2": "GPT2Tokenizer", "gpt_neox": "GPTNeoXTokenizer",
    "olmo": "GPTNeoXTokenizer", "qwen2": "Qwen2Tokenizer", "qwen3": "Qwen2Tokenizer",
    "roberta": "RobertaTokenizer", "bart": "BartTokenizer",
}  # fmt: skip
SPECIAL_LISTS = ("extra_special_tokens", "additional_special_tokens")  # in settings files
_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>")
_QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def word_piece(folder: Path, settings: dict[str, Any]) -> BPETokenizer:
    """BERT's tokenizer, from vocab.txt. Raises ValueError for another kind of tokenizer."""
    defaults = WORD_PIECE[check_class(folder, settings, WORD_PIECE)]
    names = {key: named_token(settings, key, name) for key, name in defaults.items()}
    check_file(folder / "vocab.txt")
    vocabulary = models.WordPiece.read_file(str(folder / "vocab.txt"))
    tokenizer = BPETokenizer(models.WordPiece(vocabulary, unk_token=names["unk"]))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens([name for name in names.values() if name in vocabulary])
    frame(tokenizer, names["cls"], names["sep"], types=names["cls"] == _BERT_NAMES["cls"])
    return tokenizer


def byte_level_bpe(folder: Path, settings: dict[str, Any]) -> BPETokenizer:
    """The tokenizer of GPT-2 and its relatives, from vocab.json and merges.txt. Raises ValueError
    for another kind."""
    kind = check_class(folder, settings, BYTE_LEVEL)
    files = folder / "vocab.json", folder / "merges.txt"
    for file in files:
        check_file(file)
    vocabulary, merges = models.BPE.read_file(str(files[0]), str(files[1]))
    tokenizer = BPETokenizer(models.BPE(vocabulary, merges))
    spaced = bool(settings.get("add_prefix_space"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    if kind in ("GPTNeoXTokenizer", "Qwen2Tokenizer"):
        tokenizer.normalizer = normalizers.NFC()
    if kind == "Qwen2Tokenizer":
        in_bytes = pre_tokenizers.ByteLevel(add_prefix_space=spaced, use_regex=False)
        words = pre_tokenizers.Split(Regex(_QWEN_WORDS), behavior="isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, in_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    specials = [name for name in _SPECIALS if name in vocabulary]
    tokenizer.add_special_tokens(
        [AddedToken(name, special=True, lstrip=name == "<mask>") for name in specials]
    )
    if kind in ("RobertaTokenizer", "BartTokenizer"):
        frame(tokenizer, "<s>", "</s>")
    else:
        begin, end = (
            named_token(settings, name, "<|endoftext|>")
            if settings.get(f"add_{name}_token")
            else None
            for name in ("bos", "eos")
        )
        frame(tokenizer, begin, end)
    return tokenizer


def check_class(folder: Path, settings: dict[str, Any], classes: Any) -> str:
    """transformers' name of the tokenizer: in its settings, in config.json, or by the family.

    Raises ValueError for one that is not known.
    """
    try:
        config = json.loads(text_of(folder / "config.json"))
    except (OSError, ValueError, RecursionError):
        config = {}
    named = settings.get("tokenizer_class") or config.get("tokenizer_class") or ""
    kind = str(named).removesuffix("Fast")
    if kind in ("", "PreTrainedTokenizer", "TokenizersBackend"):
        kind = _DEFAULTS.get(str(config.get("model_type")), "")
    if kind not in classes:
        names = [name for name in classes if name]
        raise ValueError(
            f"its tokenizer_class is {shortened(kind)}; what is read: {names}; transformers "
            "writes a tokenizer.json: AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        )
    return kind


def named_token(settings: dict[str, Any], key: str, default: str) -> str:
    """A special token's name in the settings."""
    return token_name(settings.get(f"{key}_token") or default)


def token_name(token: Any) -> str:
    """The name of a token in a settings file, which may give it flags."""
    return str(token["content"] if isinstance(token, dict) else token)


def frame(
    tokenizer: BPETokenizer, begin: str | None, end: str | None, *, types: bool = False
) -> None:
    """Put special tokens before and after a text, and between two: one of them where the second has
    another token type, else two."""
    names = [name for name in (begin, end) if name is not None]
    behind = "$B:1 {end}:1" if types else "{end} $B {end}"
    pair = f"{begin} $A {end} {behind.format(end=end)}" if begin and end else None
    tokenizer.post_processor = processors.TemplateProcessing(
        single=" ".join(name for name in (begin, "$A", end) if name is not None),
        pair=pair,
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in dict.fromkeys(names)],
    )


def add_tokens(
    tokenizer: BPETokenizer, folder: Path, settings: dict[str, Any], vocab_size: int
) -> None:
    """Add the tokens of tokenizer_config.json, or of added_tokens.json in older folders, that a
    tokenizer does not have. Special ones beyond the network's vocabulary stay out.

    Raises ValueError for an id that leaves a gap.
    """
    contents = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    for index, token in sorted(added_tokens(folder, settings).items()):
        name, special = token["content"], bool(token.get("special"))
        if name in contents or (special and index >= vocab_size):
            continue
        flags = {key: x for key, x in token.items() if key in _FLAGS}
        added = AddedToken(name, special=special, **flags)
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([added])
        if (got := tokenizer.token_to_id(name)) != index:
            raise ValueError(
                f"its added token {shortened(name)} has the id {index}; needed: {got}, the next one"
            )


def added_tokens(folder: Path, settings: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The added tokens that a folder's files name, by id. In added_tokens.json they have no flags:
    those that another file gives a role are special."""
    tokens = settings.get("added_tokens_decoder")
    if tokens is not None:
        return {int(index): token for index, token in tokens.items()}
    if not (older := folder / "added_tokens.json").is_file():
        return {}
    named = set(_special_names(settings))
    if (parts := folder / "special_tokens_map.json").is_file():
        named |= set(_special_names(json.loads(text_of(parts))))
    return {
        index: {"content": name, "special": name in named, "normalized": name not in named}
        for name, index in json.loads(text_of(older)).items()
    }


def _special_names(settings: dict[str, Any]) -> Iterator[str]:
    """The names of special tokens in a settings file."""
    for key, value in settings.items():
        if key.endswith("_token") or key in SPECIAL_LISTS:
            for token in value if isinstance(value, list) else [value]:
                yield token_name(token)


_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")
