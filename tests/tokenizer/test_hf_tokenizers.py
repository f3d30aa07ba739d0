"""Tokenizers of other projects: the ids of transformers' AutoTokenizer on awkward texts."""

import json
import random
from dataclasses import replace
from itertools import product

import pytest
import tokenizers
from kit.documents import ROOT
from kit.hf_folders import (
    CORPUS,
    byte_fallback,
    byte_level,
    change,
    marian_files,
    piece_file,
    roberta,
    train,
    unigram,
    word_piece,
    write,
)
from sentencepiece import SentencePieceProcessor
from tokenizers import decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

import transformer
from transformer.analysis.corpus.reading import KINDS, kinds_of
from transformer.checkpoint.hub import PATTERNS
from transformer.tokenizer.foreign import SpecialIds
from transformer.tokenizer.hf_tokenizers import TOKENIZER_FILES, FastTokenizer, read
from transformer.tokenizer.pieces import (
    MARIAN_FILES,
    PIECE_FILES,
    MarianTokenizer,
    PieceTokenizer,
)

pytestmark = pytest.mark.filterwarnings("ignore")
AWKWARD = [
    "a", " a", "a ", "  a  b ", "\n", "\t\tx", "\n\n\n", " ", "    ", "a\nb", "a \n b", "\r\n",
    "The cat", "the THE ThE", "don't can't it's we'll I'm they've", "1234567890", "3.14159",
    "1,000",
    "2026-11-22T09:00:00Z", "a@b.example", "https://example.org/?q=1&r=2#x", "C:\\dir\\file.txt",
    "naïve café", "Où est-il?", "Ça", "e\u0301", "\u00e9", "Å Å", "ﬁ ligature", "½ ² ™ ©",
    "Привет, мир!", "你好,世界。", "こんにちは", "안녕하세요", "مرحبا", "שלום", "हिन्दी", "🦊",
    "👩‍👩‍👧",
    "🇫🇷", "a\u200bb", "\ufeffbom", "a\u00a0b", "word" * 30, "x" * 200, "##ing", "▁under", "<0x41>",
    "[CLS] [MASK]", "def f(x):\n    return x",
]  # fmt: skip


@pytest.fixture(scope="module", params=[byte_level, word_piece, byte_fallback, unigram],
                ids=lambda kind: kind.__name__)  # fmt: skip
def kind(request, tmp_path_factory):
    """(kind, our tokenizer, AutoTokenizer's, folder)."""
    import transformers

    made, special = request.param()
    folder = tmp_path_factory.mktemp("tokenizer")
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, **special).save_pretrained(folder)
    start, end = (0, 0) if request.param is byte_level else (1, 2)
    ids = SpecialIds(start=start, ends=frozenset({end}), padding=None)
    size = made.get_vocab_size() + 3  # a network often has more rows than its tokenizer tokens
    ours = FastTokenizer(folder / "tokenizer.json", ids, size)
    return request.param, ours, transformers.AutoTokenizer.from_pretrained(folder), folder


def test_ids_are_those_of_auto_tokenizer(kind, tmp_path):
    _, ours, theirs, _ = kind
    ours.save(tmp_path / "tokenizer.json")
    again = FastTokenizer(tmp_path / "tokenizer.json", ours.ids, ours.vocab_size)
    for text in AWKWARD:
        wanted = theirs(text, split_special_tokens=True)["input_ids"]
        assert (
            ours.encode(text, special=True)
            == again.encode(text, special=True)
            == (wanted or [ours.start_id])
        ), text
        plain = theirs(text, add_special_tokens=False, split_special_tokens=True)
        assert ours.encode(text) == plain["input_ids"]
    assert ours.encode_batch(AWKWARD) == [ours.encode(text) for text in AWKWARD]


def test_ids_decode_to_the_text_where_nothing_of_it_is_lost(kind):
    build, ours, _, _ = kind
    model = ours._content["model"]["type"]
    assert ours.kind == (f"byte-level {model}" if build is byte_level else model)
    for text in ("The black cat", "Once upon a time", "It is 12 o"):
        ids = ours.encode(text)
        for whole in (ids, ours.encode(text, special=True)):  # special tokens are no text
            assert ours.whole(whole).decode() == (text.lower() if build is word_piece else text)
    if build in (byte_level, byte_fallback):
        for text in AWKWARD:
            read = ours.to_bytes(ours.encode(text)).decode()
            assert read == (text if build is byte_level else f" {text}".replace("▁", " "))


def test_labels_mark_spaces_and_continued_words(kind):
    build, ours, _, _ = kind
    labels = ours.labels(ours.encode("The sleepings\n"))
    if build is word_piece:
        assert any(label.startswith("##") for label in labels)
    else:
        assert any(label.startswith("␣") for label in labels)
    if build is byte_fallback:
        assert labels[-1] == "⏎"
    assert ours.label(ours.vocab_size - 1) == f"‹no token {ours.vocab_size - 1}›"
    assert all(ours.labels(range(ours.vocab_size)))


def test_a_special_name_that_is_typed_is_ordinary_text(kind):
    build, ours, _, _ = kind
    for name in ours._specials.values() if build is not unigram else ():  # its model has them
        unknown = {ours._bpe.token_to_id(name) for name in ("<unk>", "[UNK]")}
        assert not set(ours.encode(name)) & set(ours._specials) - unknown


def test_more_tokens_than_the_network_has_are_refused(kind):
    _, ours, _, folder = kind
    with pytest.raises(ValueError, match="needed: ids below the network"):
        FastTokenizer(folder / "tokenizer.json", ours.ids, 50)


def test_padding_that_was_added_beyond_the_network_is_no_token(kind, tmp_path):
    _, ours, _, folder = kind
    size = ours._bpe.get_vocab_size()
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    added = {**content["added_tokens"][-1], "id": size, "content": "<added>"}
    content["added_tokens"].append(added)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    read_again = FastTokenizer(tmp_path / "tokenizer.json", ours.ids, size)
    assert "<added>" not in read_again.names
    for text in ("The cat", "<added>"):
        assert read_again.encode(text) == ours.encode(text)


def check_decoded(ours, theirs, n_ids):
    """Random ids decode as in transformers."""
    draw = random.Random(n_ids)
    for _ in range(150):
        row = draw.choices(range(n_ids), k=draw.randint(1, 12))
        text = [index for index in row if not ours.is_special(index)]
        assert ours.decode(row) == theirs.decode(text, skip_special_tokens=True), row


def test_marians_ids_are_those_of_its_tokenizer(tmp_path):
    import transformers

    vocabulary = marian_files(tmp_path)
    ids = SpecialIds(start=len(vocabulary) - 1, ends=frozenset({0}), padding=len(vocabulary) - 1)
    ours = MarianTokenizer(tmp_path, ids, len(vocabulary))
    files = (str(tmp_path / name) for name in ("source.spm", "target.spm", "vocab.json"))
    theirs = transformers.MarianTokenizer(*files)
    for text in [*(text for text in AWKWARD if "<" not in text), ">>fra<<The cat"]:
        assert ours.source(ours.encode(text)) == theirs(text)["input_ids"], text
    assert ours.whole(ours.encode("The black cat")).decode() == "The black cat"
    assert ours.kind == "SentencePiece"
    check_decoded(ours, theirs, len(vocabulary))
    padded = MarianTokenizer(tmp_path, replace(ids, padding=9), len(vocabulary))
    assert (ours.to_bytes([9]) != b"", padded.to_bytes([9])) == (True, b"")
    assert ours.labels(ours.encode("The cat"))[0].startswith("␣")
    (tmp_path / "copy").mkdir()
    ours.save(tmp_path / "copy" / "tokenizer.json")
    again = MarianTokenizer(tmp_path / "copy", ids, len(vocabulary))
    assert again.encode("The cat") == ours.encode("The cat")
    size = len(vocabulary)
    for wrong in ({"a": 0}, ["<unk>"], *({"<unk>": index} for index in ("0", 1.0, -1, size))):
        (tmp_path / "copy" / "vocab.json").write_text(json.dumps(wrong), encoding="utf-8")
        with pytest.raises(ValueError, match=f"each piece, <unk> among them, an id below {size}"):
            MarianTokenizer(tmp_path / "copy", ids, size)


@pytest.mark.parametrize("name", PIECE_FILES)
def test_the_ids_of_a_sentencepiece_file_are_those_of_transformers(name, tmp_path):
    from transformers import LlamaTokenizer, T5Tokenizer

    path, llama = piece_file(tmp_path, name), name == "tokenizer.model"
    if llama:
        settings = json.dumps({"add_bos_token": True})
        (tmp_path / "tokenizer_config.json").write_text(settings, encoding="utf-8")
    theirs = (LlamaTokenizer if llama else T5Tokenizer).from_pretrained(tmp_path)
    added, size = {str(len(theirs)): {"content": "<extra>", "special": True}}, len(theirs) + 1
    settings = {"add_eos_token": True, "added_tokens_decoder": added}
    ids = SpecialIds(start=1 if llama else 0, ends=frozenset({2 if llama else 1}), padding=None)
    ours = read(tmp_path, ids, size)
    assert isinstance(ours, PieceTokenizer)
    for text in AWKWARD:  # where a text begins with a space, LlamaTokenizer adds no second one
        if not text.strip() or (llama and text.startswith((" ", "▁"))):
            continue
        assert (
            ours.encode(text, special=True) == theirs(text, split_special_tokens=True)["input_ids"]
        ), text
        if llama:
            assert ours.whole(ours.encode(text)).decode() == text.replace("▁", " ")
    check_decoded(ours, theirs, len(theirs))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    again = read(tmp_path, ids, size)
    assert again.source(again.encode("The cat"))[-1] in ids.ends
    assert again.label(size - 1) == "<extra>"
    (tmp_path / "copy").mkdir()
    again.save(tmp_path / "copy" / "tokenizer.json")
    assert read(tmp_path / "copy", ids, size).encode("The cat", special=True) == again.encode(
        "The cat", special=True
    )
    with pytest.raises(ValueError, match="pieces; needed: at most the network's vocabulary"):
        PieceTokenizer(path, ids, 50)


SPM_WORDS = ({}, {"[MASK]": 0}, {"covid": 0, "[MASK]": 1}, {"[MASK]": 0, "<tool>": 1, "covid": 2})


def test_debertas_spm_model_is_read_as_its_own_tokenizer_reads_it(tmp_path):
    size = len(SentencePieceProcessor(str(piece_file(tmp_path, "spm.model"))))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "deberta-v2"}))
    ids, draw = SpecialIds(start=1, ends=frozenset({2}), padding=0), random.Random(0)
    parts = [*AWKWARD, "x1", "<user>", "<ctrl>", "Covid", "covid,", "<tool>", "The cat", "...", " "]
    files = ("added_tokens.json", "added_tokens_decoder")
    for lower, named_in, words in product([False, True], files, SPM_WORDS):
        settings = {"vocab_type": "spm", "do_lower_case": lower}
        for option in ({"split_by_punct": True}, {"add_prefix_space": False}):
            settings |= draw.choice([{}, option])
        settings |= draw.choice([{}, {"additional_special_tokens": []},
                                 {"extra_special_tokens": ["<tool>"]}])  # fmt: skip
        added = {name: size + at for name, at in words.items()}
        if named_in == "added_tokens_decoder":
            settings[named_in] = {at: {"content": name, "special": name != "covid"}
                                  for name, at in added.items()}  # fmt: skip
        else:
            (tmp_path / named_in).write_text(json.dumps(added))
            (tmp_path / "special_tokens_map.json").write_text(json.dumps({"mask_token": "[MASK]"}))
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
        theirs = AutoTokenizer.from_pretrained(tmp_path)
        ours = read(tmp_path, ids, len(theirs) + 9)
        assert {name: at for at, name in enumerate(ours.names) if name} == theirs.get_vocab()
        assert ours.mask_id == theirs.mask_token_id
        for _ in range(10):
            text = "".join(draw.choices(parts, k=draw.randint(1, 4)))
            wanted = theirs(text, split_special_tokens=True)["input_ids"]
            assert ours.encode(text, special=True) == wanted, (text, settings)
            assert ours.decode(wanted) == theirs.decode(wanted, skip_special_tokens=True), text
            pair = theirs(text, "The x1", split_special_tokens=True)
            types = pair["input_ids"], pair["token_type_ids"]
            assert ours.pair(ours.encode(text), ours.encode("The x1")) == types, text
        check_decoded(ours, theirs, len(theirs))
    ours.save(tmp_path / "tokenizer.json")
    again = read(tmp_path, ids, len(theirs) + 9)
    assert again.encode("a covid cat", special=True) == ours.encode("a covid cat", special=True)


def test_each_file_that_a_tokenizer_is_read_from_is_fetched_and_documented():
    names = {*TOKENIZER_FILES, *PIECE_FILES, *MARIAN_FILES}
    assert names <= {*PATTERNS}
    text = (ROOT / "docs/your-model.md").read_text(encoding="utf-8")
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


OPT = {  # as facebook/opt-125m has it
    "tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "add_prefix_space": False,
    "bos_token": {"content": "</s>", "lstrip": False, "normalized": True, "rstrip": False,
                  "single_word": False, "__type": "AddedToken"},
}  # fmt: skip
FILES = [  # (model_type, tokenizer, tokenizer_config.json)
    ("bert", word_piece, {"tokenizer_class": "BertTokenizer"}),
    ("bert", word_piece, {"tokenizer_class": "BertTokenizer", "do_lower_case": False}),
    ("electra", word_piece, {"strip_accents": False, "tokenize_chinese_chars": False}),
    ("mpnet", word_piece, {}),
    ("gpt2", byte_level, {"tokenizer_class": "GPT2TokenizerFast"}),
    ("gpt_neox", byte_level, {"add_prefix_space": True}),
    ("qwen2", byte_level, {}),
    ("qwen3", byte_level, {"tokenizer_class": "Qwen2Tokenizer", "add_bos_token": True,
                           "bos_token": "<|endoftext|>"}),
    ("opt", roberta, OPT),
    ("opt", roberta, {}),
    ("roberta", roberta, {"tokenizer_class": "RobertaTokenizer"}),
    ("bart", roberta, {}),
]  # fmt: skip


def vocabulary_files(folder, kind, build, settings):
    """The files of a tokenizer that has no tokenizer.json; its size."""
    made, _ = build()
    vocabulary = made.get_vocab()
    if build is word_piece:
        names = sorted(vocabulary, key=vocabulary.__getitem__)
        names += ["<s>", "<pad>", "</s>", "<mask>"]  # MPNet's
        (folder / "vocab.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    else:
        made.model.save(str(folder))
    for name, content in (("tokenizer_config", settings), ("config", {"model_type": kind})):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return len(vocabulary) + 8


@pytest.mark.parametrize(("kind", "build", "settings"), FILES)
def test_vocabulary_files_without_a_tokenizer_json_are_read(kind, build, settings, tmp_path):
    import transformers

    size = vocabulary_files(tmp_path, kind, build, settings)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ids = SpecialIds(start=0, ends=frozenset({2}), padding=None)
    ours = read(tmp_path, ids, size)
    for text in AWKWARD:
        wanted = theirs(text, split_special_tokens=True)["input_ids"]
        assert ours.encode(text, special=True) == (wanted or [ours.start_id]), text
    ours.save(tmp_path / "tokenizer.json")
    again = read(tmp_path, ids, size)
    assert again.encode("The cat", special=True) == ours.encode("The cat", special=True)


@pytest.mark.parametrize("named_in", ["config.json", "tokenizer_config.json"])
def test_vocabulary_files_of_another_tokenizer_are_refused_by_name(named_in, tmp_path):
    size = vocabulary_files(tmp_path, "bert", word_piece, {})
    change(tmp_path / named_in, tokenizer_class="BertJapaneseTokenizer")  # splits words by MeCab
    ids = SpecialIds(start=0, ends=frozenset({2}), padding=None)
    with pytest.raises(ValueError, match=r"tokenizer_class is 'BertJapaneseTokenizer'; what is re"):
        read(tmp_path, ids, size)


def test_added_tokens_beside_vocabulary_files_are_read(tmp_path):
    size = vocabulary_files(tmp_path, "qwen2", byte_level, {})
    vocabulary = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8"))
    first, ids = len(vocabulary), SpecialIds(start=0, ends=frozenset({0}), padding=None)
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<|im_end|>": first + 1,
                                                            "<|im_start|>": first}))  # fmt: skip
    added = {str(first): {"content": "<tool>", "special": False}}
    change(tmp_path / "tokenizer_config.json", eos_token="<|im_end|>")
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(
        {"additional_special_tokens": ["<|im_start|>"]}
    ))  # fmt: skip
    ours = read(tmp_path, ids, size)
    assert ours.names[first : first + 2] == ["<|im_start|>", "<|im_end|>"]
    assert ours.encode("<|im_end|>") != [first + 1]  # special: ordinary text where it is typed
    change(tmp_path / "tokenizer_config.json", added_tokens_decoder=added)
    assert read(tmp_path, ids, size).encode("<tool>") == [first]
    for wrong in (first + 1, first - 1):  # a gap, and an id that another token has
        added = {str(wrong): {"content": "<tool>", "special": False}}
        change(tmp_path / "tokenizer_config.json", added_tokens_decoder=added)
        with pytest.raises(ValueError, match=f"'<tool>' has the id {wrong}; needed: {first}"):
            read(tmp_path, ids, size)


def plain_words():
    """The tokenizers library's quick tour: words, and no decoder."""
    made = tokenizers.Tokenizer(models.WordLevel(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    train(made, trainers.WordLevelTrainer, ["[UNK]", "[PAD]"])
    return made, dict(unk_token="[UNK]", pad_token="[PAD]")


def end_of_word(decoder=None):
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.decoder = decoder or decoders.BPEDecoder()
    train(made, trainers.BpeTrainer, ["<unk>"], end_of_word_suffix="</w>")
    return made, dict(unk_token="<unk>")


def decoded_by(decoder, build):
    def built():
        made, special = build()
        made.decoder = decoder
        return made, special

    return built


DECODERS = {
    "None": plain_words,
    "BPEDecoder": end_of_word,
    "WordPiece": word_piece,
    "WordPiece, as it is": decoded_by(decoders.WordPiece(cleanup=False), word_piece),
    "Metaspace": unigram,
    "Metaspace without a first": decoded_by(decoders.Metaspace(prepend_scheme="never"), unigram),
    "ByteLevel": byte_level,
    "Fuse": decoded_by(decoders.Fuse(), unigram),
    "ByteFallback": decoded_by(decoders.ByteFallback(), byte_fallback),
    "Sequence": byte_fallback,
    "Sequence of bytes": decoded_by(
        decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]), byte_fallback
    ),
    "Replace": decoded_by(decoders.Replace("▁", " "), unigram),
}
ADDED = ["brexit", "covid 19", "café", "日本", "##ly", "▁new", "don't"]


@pytest.mark.parametrize("name", DECODERS)
def test_ids_decode_to_the_text_of_auto_tokenizer(name, tmp_path):
    """Random ids and texts, with added words between."""
    import transformers

    made, special = DECODERS[name]()
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **special)
    theirs.add_tokens(ADDED)
    theirs.save_pretrained(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ids = SpecialIds(start=0, ends=frozenset({0}), padding=None)
    ours = read(tmp_path, ids, len(theirs) + 3)
    draw = random.Random(name)
    rows = [draw.choices(range(len(theirs)), k=draw.randint(1, 12)) for _ in range(150)]
    words = [*ADDED, *CORPUS[0].split(), *CORPUS[4].split(), ".", "  "]
    for _ in range(50):
        text = draw.choice(["", " "]).join(draw.choices(words, k=6))
        rows.append(theirs(text, split_special_tokens=True)["input_ids"])
        assert ours.encode(text, special=True) == (rows[-1] or [ours.start_id]), text
    for row in rows:
        text = [index for index in row if not ours.is_special(index)]
        wanted = theirs.decode(text)
        assert ours.decode(row) == wanted, row
        if "\ufffd" not in wanted:  # which stands for bytes that are no character
            assert ours.whole(row).decode() == wanted, row
            at = draw.randint(0, len(text))
            if text[:at] and "\ufffd" not in (before := theirs.decode(text[:at])):
                assert before + ours.added(text[:at], text[at:]).decode() == wanted, row
    if name in ("None", "BPEDecoder"):
        labels = ours.labels(ours.encode("The black cat is"))
        assert (sum("␣" in label for label in labels), "</w>" in "".join(labels)) == (4, False)


@pytest.mark.parametrize("build", [plain_words, end_of_word, word_piece, unigram, byte_level])
def test_kinds_tell_words_from_what_goes_on_in_them(build, tmp_path):
    import transformers

    made, special = build()
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, **special).save_pretrained(tmp_path)
    ids = SpecialIds(start=0, ends=frozenset({0}), padding=None)
    tokenizer = read(tmp_path, ids, made.get_vocab_size())
    row = tokenizer.encode("The black cat is")
    kinds = [KINDS[kind] for kind in kinds_of(tokenizer, row)]
    begins = [kind == "word" for kind in kinds if kind != "white space"]
    assert (kinds.count("word"), begins[0]) == (4, True), tokenizer.labels(row)


@pytest.mark.parametrize("place", ["added_tokens.json", "added_tokens_decoder", "tokenizer.json"])
@pytest.mark.parametrize(("kind", "build"), [("bert", word_piece), ("gpt2", byte_level),
                                             ("roberta", roberta)])  # fmt: skip
def test_added_words_are_one_token_wherever_they_are_named(place, kind, build, tmp_path):
    import transformers

    size = vocabulary_files(tmp_path, kind, build, {})
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path)
    first = len(auto)
    words = {"covid": first, "<tool>": first + 1, "brexit": first + 2}
    change(tmp_path / "tokenizer_config.json", extra_special_tokens=["<tool>"])
    if place == "added_tokens.json":
        (tmp_path / place).write_text(json.dumps(words), encoding="utf-8")
    elif place == "added_tokens_decoder":
        flags = {str(at): {"content": name, "special": name == "<tool>"}
                 for name, at in words.items()}  # fmt: skip
        change(tmp_path / "tokenizer_config.json", added_tokens_decoder=flags)
    else:
        auto.add_tokens(["covid"])
        auto.add_special_tokens({"extra_special_tokens": ["<tool>"]})
        auto.add_tokens(["brexit"])
        auto.save_pretrained(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ours = read(tmp_path, SpecialIds(start=0, ends=frozenset({2}), padding=None), size + 8)
    texts = ["the covid cat", "covid brexit", "a covidcat, brexit.", " covid  <tool> x", "Covid"]
    for text in texts:
        wanted = theirs(text, split_special_tokens=True)["input_ids"]
        assert ours.encode(text, special=True) == wanted, text
        assert ours.decode(wanted) == theirs.decode(wanted, skip_special_tokens=True), text
    assert {first, first + 2} <= set(ours.encode("covid brexit"))


def test_added_words_beside_a_sentencepiece_file_are_refused(tmp_path):
    piece_file(tmp_path, "tokenizer.model")
    added = {"900": {"content": "covid", "special": False}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    with pytest.raises(ValueError, match="its added word 'covid' is not read beside a Sentence"):
        read(tmp_path, SpecialIds(start=1, ends=frozenset({2}), padding=None), 1000)


def test_bytes_are_the_ids_of_byt5_and_decode_as_its_own(tmp_path):
    import transformers

    transformers.ByT5Tokenizer().save_pretrained(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ids = SpecialIds(start=0, ends=frozenset({1}), padding=0)
    ours = read(tmp_path, ids, 384)
    (tmp_path / "saved").mkdir()
    ours.save(tmp_path / "saved" / "tokenizer.json")
    again = read(tmp_path / "saved", ids, 384)
    for text in AWKWARD:
        wanted = theirs(text)["input_ids"]
        assert ours.source(ours.encode(text)) == again.source(again.encode(text)) == wanted
        for part in (wanted, wanted[1:-2], [260, *wanted]):
            assert ours.decode(part) == theirs.decode(part, skip_special_tokens=True)
        assert ours.whole(wanted).decode() == text
    with pytest.raises(ValueError, match="at least 259; got 61"):
        read(tmp_path, ids, 61)


def test_a_sentencepiece_file_of_another_class_is_refused(tmp_path):
    """PEGASUS counts its pieces from 105 on, and ALBERT frames texts otherwise than T5."""
    piece_file(tmp_path, "spiece.model")
    ids = SpecialIds(start=0, ends=frozenset({1}), padding=0)
    for name, content in (
        ("tokenizer_config.json", {"tokenizer_class": "PegasusTokenizer"}),
        ("config.json", {"model_type": "albert"}),
    ):
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(ValueError, match=r"its tokenizer_class is '.*'; what is read: \['T5"):
            read(tmp_path, ids, 200)
        (tmp_path / name).unlink()
    assert read(tmp_path, ids, 200).kind == "SentencePiece"


def test_words_that_config_json_calls_start_end_or_padding_stay_in_texts(tmp_path):
    """Start 1, end 2 and padding 3 are ! " and # of this vocabulary."""
    write(tmp_path, "llama", tokenizer=byte_level, pad_token_id=3)
    ours, theirs = transformer.load(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    rows = [[*range(9)], *([index, 40] for index in range(5))]
    for ids in rows:
        assert ours.tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    assert ours.config.padding_id is None
