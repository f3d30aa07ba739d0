"""Tokenizers as other projects have them, trained on a few lines."""

from __future__ import annotations

import json

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

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


def train(made, trainer, specials, **settings):
    kind = trainer(vocab_size=600, special_tokens=specials, show_progress=False, **settings)
    made.train_from_iterator(CORPUS, kind)


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
