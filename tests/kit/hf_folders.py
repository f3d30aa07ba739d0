"""Folders of every family as other projects publish them: their special tokens, their odd keys."""

import json
from pathlib import Path
from typing import Any

import tokenizers
import torch
from kit.hf_models import made
from safetensors.torch import load_file, save_file
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

# ---- tokenizers ----

CORPUS = [
    "The black cat is sleeping on the bed, and the dog is not.",
    "Once upon a time there was a fox who said: don't you know me? It's 1234 o'clock!",
    "Le chat noir dort sur le lit. Où est-il allé? Ça va très bien.",
    "def f(x):\n    return {'a': x + 1}\n\n# a comment\t<- tab",
    "Привет, мир! 你好,世界。 こんにちは 🦊🇫🇷 naïve café",
] * 4


def byte_level():
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    train(made, trainers.BpeTrainer, ["<|endoftext|>"], initial_alphabet=alphabet)
    return made, dict(eos_token="<|endoftext|>", bos_token="<|endoftext|>")


def word_piece():
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    train(made, trainers.WordPieceTrainer, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    ends = [(name, made.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    return made, dict(pad_token="[PAD]", mask_token="[MASK]", cls_token="[CLS]", sep_token="[SEP]")


def byte_fallback():
    made = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    made.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )  # fmt: skip
    all_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    train(made, trainers.BpeTrainer, ["<unk>", "<s>", "</s>", *all_bytes])
    content = json.loads(made.to_str())
    content["added_tokens"] = content["added_tokens"][:3]  # a byte is none
    made = tokenizers.Tokenizer.from_str(json.dumps(content))
    begin = [("<s>", made.token_to_id("<s>"))]
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=begin)
    return made, dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def unigram():
    made = tokenizers.Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    train(made, trainers.UnigramTrainer, ["<unk>", "<s>", "</s>"], unk_token="<unk>")
    return made, dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def t5():
    made = tokenizers.Tokenizer(models.Unigram())
    spaces = pre_tokenizers.Metaspace()
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces])
    made.decoder = decoders.Metaspace()
    specials = ["<pad>", "</s>", "<unk>", "<extra_id_0>"]
    train(made, trainers.UnigramTrainer, specials, unk_token="<unk>")
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return made, dict(pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


LANGUAGES = {"NllbTokenizer": ("eng_Latn", "fra_Latn"), "MBartTokenizer": ("en_XX", "fr_XX")}


def of_languages(kind):
    """A tokenizer of transformers that has languages, "NllbTokenizer" or "MBartTokenizer"."""
    import transformers

    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    if kind == "NllbTokenizer":
        made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        train(made, trainers.BpeTrainer, specials)
        model = json.loads(made.to_str())["model"]
        merges = [tuple(merge) for merge in model["merges"]]
        return transformers.NllbTokenizer(vocab=model["vocab"], merges=merges)
    made = tokenizers.Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    train(made, trainers.UnigramTrainer, specials, unk_token="<unk>")
    vocab = [tuple(piece) for piece in json.loads(made.to_str())["model"]["vocab"]]
    return transformers.MBartTokenizer(vocab=vocab)


def train(made, trainer, specials, **settings):
    kind = trainer(vocab_size=600, special_tokens=specials, show_progress=False, **settings)
    made.train_from_iterator(CORPUS, kind)


def piece_file(folder, name):
    """Llama's tokenizer.model, T5's spiece.model or DeBERTa's spm.model, trained on the corpus."""
    import sentencepiece

    (folder / "corpus.txt").write_text("\n".join(CORPUS), encoding="utf-8")
    own = dict(
        model_type="bpe", byte_fallback=True, vocab_size=500, normalization_rule_name="identity",
        remove_extra_whitespaces=False,
    )  # fmt: skip
    if name == "spiece.model":
        own = dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1, vocab_size=120)
    if name == "spm.model":
        own = dict(
            pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]",
            eos_piece="[SEP]", unk_piece="[UNK]", vocab_size=400, byte_fallback=True,
            control_symbols=["<ctrl>"], user_defined_symbols=["<user>", "x1"],
        )  # fmt: skip
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"), model_prefix=str(folder / "made"), minloglevel=2,
        hard_vocab_limit=False, **own,
    )  # fmt: skip
    return (folder / "made.model").rename(folder / name)


def marian_files(folder):
    """SentencePiece models and a vocabulary of both, trained on the corpus."""
    import sentencepiece

    for name, texts in (("source", CORPUS[:2] * 8), ("target", CORPUS[2:3] * 8)):
        (folder / "corpus.txt").write_text("\n".join(texts), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / "corpus.txt"), model_prefix=str(folder / name), vocab_size=60,
            hard_vocab_limit=False, minloglevel=2,
        )  # fmt: skip
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
    pieces = ["</s>", "<unk>"]
    for name in ("source", "target"):
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.spm"))
        pieces += [model.id_to_piece(at) for at in range(model.get_piece_size())]
    known = list(dict.fromkeys(piece for piece in pieces if piece != "<s>"))
    vocabulary = {piece: at for at, piece in enumerate([*known, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    return vocabulary


# ---- folders ----

GONE = object()  # not in the file at all
ODD = {
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    "_name_or_path": "someone/a-model", "use_cache": True, "transformers_version": "4.2.0",
    "auto_map": {"AutoConfig": "x.Y"}, "torch_dtype": "bfloat16", "unheard_of": [1, {"a": None}],
}  # fmt: skip
END = "<|endoftext|>"


def write(
    folder: Path,
    family: str,
    size: int = 0,
    tokenizer: Any = byte_level,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    head: str = "",
    **config: Any,
) -> Any:
    """A folder as transformers saves it; its network. head: see `made`. config: what its
    config.json says else."""
    import transformers

    folder.mkdir(exist_ok=True)
    if family == "marian":
        vocab_size = len(marian_files(folder))
    elif isinstance(tokenizer, str):
        of_languages(tokenizer).save_pretrained(folder)
        vocab_size = len(transformers.AutoTokenizer.from_pretrained(folder))
    else:
        made_of, special = tokenizer()
        vocab_size = made_of.get_vocab_size() + 5
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made_of, **special)
        fast.save_pretrained(folder)
    theirs = made(family, size, seed, vocab_size=vocab_size, head=head)
    theirs.to(dtype).save_pretrained(folder)
    change(folder / "config.json", **config)
    return theirs


def change(path: Path, **values: Any) -> None:
    """Other values in a JSON file; GONE takes one out."""
    content = json.loads(path.read_text(encoding="utf-8")) | values
    kept = {key: value for key, value in content.items() if value is not GONE}
    path.write_text(json.dumps(kept), encoding="utf-8")


def publish(folder: Path) -> dict[str, tuple[Path, Any]]:
    """By name: a folder of each family, and transformers' network of it."""
    found = {}
    for name, (family, tokenizer, ids) in PUBLISHED.items():
        place = folder / name
        theirs = write(place, family, 1, tokenizer).float()
        known = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), GONE)
        changes = (known if family != "marian" else {}) | {
            key: _id(place, token) for key, token in ids.items()
        }
        change(place / "config.json", **{**ODD, **changes})
        said = {"_from_model_config": True, "do_sample": True, "top_p": 0.9, "vocab_size": 1}
        (place / "generation_config.json").write_text("{}", encoding="utf-8")
        change(place / "generation_config.json", **{**said, **changes})
        change(place / "tokenizer_config.json", **{**ODD, "pad_token": None}) if ids else None
        found[name] = place, theirs
    _as_first_published(folder / "gpt2" / "model.safetensors")
    return found


def _id(folder: Path, tokens: Any) -> Any:
    """The id of a token, or those of several."""
    if isinstance(tokens, list):
        return [_id(folder, token) for token in tokens]
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    return next(one["id"] for one in content["added_tokens"] if one["content"] == tokens)


def _as_first_published(path: Path) -> None:
    """GPT-2's weights without a prefix, and with the masks that its first files hold."""
    plain = {name.removeprefix("transformer."): x for name, x in load_file(path).items()}
    layers = {name.split(".")[1] for name in plain if name.startswith("h.")}
    masks = {f"h.{layer}.attn.bias": torch.ones(1, 1, 100, 100).tril() for layer in layers}
    save_file(plain | masks, path)


def _llama_3() -> Any:
    made_of, _ = byte_level()
    specials = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
    made_of.add_special_tokens(specials)
    start = [(specials[0], made_of.token_to_id(specials[0]))]
    made_of.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=f"{specials[0]} $A", special_tokens=start),
    ])  # fmt: skip
    return made_of, {"bos_token": specials[0], "eos_token": specials[2]}


def _qwen() -> Any:
    made_of, _ = byte_level()
    made_of.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    return made_of, {"eos_token": "<|im_end|>", "pad_token": END}


def roberta() -> Any:
    made_of = tokenizers.Tokenizer(models.BPE())
    made_of.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    train(made_of, trainers.BpeTrainer, specials, initial_alphabet=alphabet)
    made_of.decoder = decoders.ByteLevel()
    made_of.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return made_of, {"bos_token": "<s>", "eos_token": "</s>", "mask_token": "<mask>"}


def modern_bert() -> Any:
    made_of, _ = byte_level()
    made_of.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[MASK]"])
    ends = [(name, made_of.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    made_of.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    return made_of, dict(
        pad_token="[PAD]", mask_token="[MASK]", cls_token="[CLS]", sep_token="[SEP]"
    )


_ONE = {"bos_token_id": END, "eos_token_id": END}
_SENTENCE_PIECE = {"bos_token_id": "<s>", "eos_token_id": "</s>"}
_BERT = {"pad_token_id": "[PAD]"}
# By the folder's name: the family, its tokenizer, and the ids that its files name.
PUBLISHED: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "gpt2": ("gpt2", byte_level, _ONE),
    "pythia": ("gpt_neox", byte_level, _ONE),
    "llama-2": ("llama", byte_fallback, _SENTENCE_PIECE),
    "llama-3": (
        "llama", _llama_3,
        {"bos_token_id": "<|begin_of_text|>", "eos_token_id": ["<|end_of_text|>", "<|eot_id|>"]},
    ),
    "mistral": ("mistral", byte_fallback, _SENTENCE_PIECE),
    "qwen2": ("qwen2", _qwen, {"eos_token_id": ["<|im_end|>", END], "pad_token_id": END}),
    "qwen3": ("qwen3", _qwen, {"eos_token_id": "<|im_end|>"}),
    "gemma": ("gemma", byte_fallback, _SENTENCE_PIECE),
    "bert": ("bert", word_piece, _BERT),
    "distilbert": ("distilbert", word_piece, {}),
    "roberta": (
        "roberta", roberta,
        {"bos_token_id": "<s>", "eos_token_id": "</s>", "pad_token_id": "<pad>"},
    ),
    "modernbert": (
        "modernbert", modern_bert,
        {"pad_token_id": "[PAD]", "bos_token_id": "[CLS]", "eos_token_id": "[SEP]"},
    ),
    "marian": ("marian", None, {}),
    "t5": ("t5", t5, {"eos_token_id": "</s>", "pad_token_id": "<pad>"}),
}  # fmt: skip
