import json
import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as BPETokenizer
from tokenizers import models, pre_tokenizers, trainers

from transformer import Tokenizer
from transformer.tokenizer import END, PADDING, SPECIALS, START
from transformer.tokenizer.labels import show

NASTY = [
    "", " ", "\n\r\t\x0b\x0c", "\x00\x01\x1f\x7f\x80\x9f", "  two  spaces  ",
    "naïve café — « ça »", "cafe\u0301 against café", "🦊💃🏽👩‍👩‍👧‍👦🇫🇷❤️",
    "日本語 العربية עברית हिन्दी",
    "\u202eright to left\u202c \u200b\u200e\ufeff", "\ufffd\ufffe\uffff\U0010ffff",
    "<script>alert(1)</script> {{value}} ${alert(1)}", " ".join(SPECIALS),
    "<|endoftext|><|padding|><|start|>", "a" * 3_000,
    "Ġhello Ċ Ã©",  # the byte-level alphabet itself
]  # fmt: skip
BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@settings(max_examples=40)
@given(texts=st.lists(st.text()))
@example(texts=NASTY)
def test_every_text_is_decoded_exactly_alone_and_in_a_batch(tokenizer, texts):
    found = tokenizer.encode_batch(texts)
    assert found == [tokenizer.encode(text) for text in texts]
    assert [tokenizer.decode(ids) for ids in found] == texts
    assert [tokenizer.to_bytes(ids) for ids in found] == [text.encode() for text in texts]
    assert all(3 <= index < tokenizer.vocab_size for ids in found for index in ids)


def test_the_special_ids_come_first_and_stand_for_no_text(tokenizer):
    assert (tokenizer.padding_id, tokenizer.start_id, tokenizer.end_id) == (0, 1, 2)
    assert tokenizer.labels([0, 1, 2]) == [PADDING, START, END]
    assert tokenizer.decode([1, *tokenizer.encode("fox"), 2, 0, 0]) == "fox"
    with_mask = tokenizer.with_mask()
    assert with_mask.label(with_mask.mask_id) == "<|mask|>"
    assert with_mask.decode([with_mask.mask_id]) == ""


@pytest.mark.parametrize("text", ["\ud800", "ab\udfff", "x\udc80y"])
def test_half_of_a_surrogate_pair_gets_a_sentence(tokenizer, text):
    with pytest.raises(ValueError, match=r"half of a surrogate pair at character \d, .*; allowed:"):
        tokenizer.encode(text)


def test_labels_show_white_space_and_parts_of_characters():
    assert show(b" the\n\t") == "␣the⏎⇥"
    assert show("€".encode()) == "€"
    assert show("€".encode()[:2]) == "‹E2 82›"
    assert show("€".encode()[2:]) == "‹AC›"
    assert show(b"\xac a\xe2\x82") == "‹AC›␣a‹E2 82›"
    assert show(b"\x80") + show(b"\xff") == "‹80›‹FF›"
    assert show(b"\x00\x1b") == "‹U+0000›‹U+001B›"
    assert show("\u202ea\u200b\u00a0".encode()) == "‹U+202E›a‹U+200B›‹U+00A0›"
    assert show("\ufffd".encode()) == "‹U+FFFD›"


def assert_harmless(label):
    assert label != ""
    for character in re.sub(r"‹[0-9A-F]{2}( [0-9A-F]{2})+›", "", label):
        assert character not in BIDI
        assert character != "\ufffd"
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}


def test_the_label_of_every_token_is_harmless(tokenizer):
    labels = tokenizer.labels(range(tokenizer.vocab_size))
    for label in labels:
        assert_harmless(label)
    assert len(set(labels)) == len(labels)


@given(raw=st.binary(min_size=1))
def test_any_bytes_have_a_harmless_label(raw):
    assert_harmless(show(raw))


def test_a_vocabulary_below_all_bytes_is_an_error():
    assert Tokenizer.train(["aa"], 259).vocab_size == 259
    with pytest.raises(ValueError, match="vocab_size must be at least 259; got 258"):
        Tokenizer.train(["aa"], 258)


def test_a_foreign_tokenizer_is_refused_with_what_it_lacks(tmp_path):
    path = tmp_path / "tokenizer.json"

    def error(foreign):
        foreign.save(str(path))
        with pytest.raises(ValueError, match="is not a tokenizer of this project") as caught:
            Tokenizer.load(path)
        return str(caught.value)

    assert PADDING in error(BPETokenizer(models.WordLevel({"fox": 0, "bird": 1}, unk_token="fox")))
    names = {name: at for at, name in enumerate([*SPECIALS, "fox", "b"])}
    words = error(BPETokenizer(models.WordLevel(names)))
    assert "'fox' is no character; needed: single characters" in words
    bpe = BPETokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=50, special_tokens=list(SPECIALS), show_progress=False)
    bpe.train_from_iterator(["日本 fox"], trainer)
    assert "is not byte-level; needed: a byte-level BPE" in error(bpe)


def test_a_tokenizer_whose_ids_have_gaps_is_refused(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    content = json.loads(path.read_text())
    name = max(content["model"]["vocab"], key=content["model"]["vocab"].get)
    content["model"]["vocab"][name] = 9_999
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="ids must count up from 0; highest: 9999"):
        Tokenizer.load(path)


# --- characters -----------------------------------------------------------------------------------

VERSES = ["First Citizen:\nBefore we proceed, hear me speak.\n", "All:\nSpeak, speak!\n"]


@pytest.fixture
def characters() -> Tokenizer:
    return Tokenizer.of_characters(VERSES)


def test_each_character_of_the_texts_is_one_token(characters):
    known = sorted(set("".join(VERSES)))
    assert characters.vocab_size == len(known) + len(SPECIALS)
    for text in VERSES:
        found = characters.encode(text)
        assert found == [known.index(letter) + len(SPECIALS) for letter in text]
        assert characters.decode(found) == text
    assert characters.encode_batch(VERSES) == [characters.encode(text) for text in VERSES]
    assert characters.labels(characters.encode("k,\n")) == ["k", ",", "⏎"]
    assert characters.labels([0, 1, 2]) == list(SPECIALS)


def test_a_special_tokens_name_is_ordinary_characters():
    characters = Tokenizer.of_characters(["<|endoftext|>é🦊 "])
    text = "<|endoftext|> é🦊"
    assert characters.end_id not in characters.encode(text)
    assert characters.decode(characters.encode(text)) == text
    assert characters.to_bytes([characters.encode("🦊")[0]]) == "🦊".encode()


def test_an_unknown_character_is_named_in_the_error(characters):
    with pytest.raises(ValueError, match="holds 'é', which this model never learned; allowed: the"):
        characters.encode("Before é")
    with pytest.raises(ValueError, match="holds 'Q'"):
        characters.encode_batch(["All", "Q"])


def test_what_can_be_read_of_a_text_is_its_known_characters(characters, tokenizer):
    assert characters.readable("Été: speak, Fox!") == "t: speak, Fo!"
    assert characters.readable("日本 語") == "!"
    assert tokenizer.readable("日本 語") == "日本 語"
