"""Typed text is read as the training text was written, and unknown language is reported."""

import dataclasses
import json

import pytest

import transformer
from transformer import Model
from transformer.__main__ import main
from transformer.plain_text import PLAIN_ENGLISH, plain, sentences, warnings
from transformer.server.kept.service import Service
from transformer.server.page import presses

SAMPLE = json.loads(
    (transformer.checkpoint.BUNDLED / "translate-en-fr" / "sample.json").read_text("utf-8")
)["texts"]
TYPED = {
    "a phone's apostrophe": lambda text: text.replace("'", "’"),
    "doubled spaces": lambda text: text.replace(" ", "  "),
    "a line break at its end": lambda text: f"{text}\n",
    "spaces around": lambda text: f" \t{text}  ",
    "a hard space": lambda text: text.replace(" ", "\u00a0"),
}


@pytest.fixture(scope="module")
def translator() -> Model:
    return transformer.load("translate-en-fr")


@pytest.fixture
def plain_reader(tiny_encoder_decoder: Model) -> Model:
    return dataclasses.replace(tiny_encoder_decoder, metadata={"source_text": PLAIN_ENGLISH})


@pytest.mark.parametrize("way", TYPED)
def test_a_translation_is_the_same_however_it_is_typed(translator, way):
    for source, _ in SAMPLE[:6]:
        as_learned, typed = (translator.generate(s) for s in (source, TYPED[way](source)))
        assert typed.ids == as_learned.ids
        assert typed.source_ids == as_learned.source_ids
        assert as_learned.read_as is None
        assert typed.read_as in (source, None)
        assert (typed.read_as is None) == (TYPED[way](source) == source)
        assert typed.request.text == TYPED[way](source)


def test_a_text_of_unseen_characters_alone_is_refused(translator):
    with pytest.raises(ValueError, match="the text is empty"):
        translator.generate("\u200b\u00ad")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Go on.", ["Go on."]),
        ("Hello! How are you? I'm fine.", ["Hello!", "How are you?", "I'm fine."]),
        ("Mr. Brown met J. Smith at Mt. Fuji. So did I. Why?",
         ["Mr. Brown met J. Smith at Mt. Fuji.", "So did I.", "Why?"]),
        ("It costs 3.50 dollars, e.g. in the U.S. Army.",
         ["It costs 3.50 dollars, e.g. in the U.S. Army."]),
        ('"May I park here?" "No, you can’t."', ['"May I park here?"', '"No, you can\'t."']),
        ("A list\nof  two lines\n\n", ["A list", "of two lines"]),
        ("Wait ... what? (Nothing.)", ["Wait ... what?", "(Nothing.)"]),
    ],
)  # fmt: skip
def test_a_text_is_cut_into_its_sentences(text, parts):
    assert sentences(text) == parts
    for source, _ in SAMPLE:
        assert (plain(source), sentences(source)) == (source, [source])


def test_several_sentences_are_translated_one_by_one_and_joined(translator):
    (one, first), (two, second) = ((s, translator.generate(s).text) for s, _ in SAMPLE[:2])
    assert translator.translate(f"{one}  {two}\n") == f"{first} {second}"
    assert translator.translate(one, beams=2) == translator.generate(one, beams=2).text
    with pytest.raises(ValueError, match="needs an encoder-decoder; stories is decoder"):
        transformer.load("stories").translate("Hello.")


def test_another_language_and_capitals_are_doubted_and_english_is_not():
    stories = [text for (text,) in transformer.load("stories").sample.texts]
    short = ["OK.", "NASA", "Tom!", "I", "7", "A B C?", "Déjà vu", "The [MASK] [MASK]."]
    for text in (*stories, *short, *(source for source, _ in SAMPLE)):
        assert not warnings(text), text
    assert sum(bool(warnings(target)) for _, target in SAMPLE) >= 0.8 * len(SAMPLE)
    for text in (
        "Je ne sais pas où il est.", "Der Hund schläft auf dem Bett.", "El gato está en la mesa.",
        "Non so che cosa fare.", "Ik weet het niet.", "Eu não sei onde ela está.",
        "Кошка спит.", "猫が寝ています。", "القطة نائمة",
    ):  # fmt: skip
        assert "does not look like English" in "".join(warnings(text)), text
    assert "capitals" in "".join(warnings("WHERE IS THE STATION?"))


def test_a_saved_run_says_how_its_text_was_read(plain_reader):
    run = plain_reader.generate("THE  FOX MET A BIRD.", max_new_tokens=1)
    found = json.loads(run.to_json())
    assert run.warnings == warnings(found["read_as"]) != ()
    assert found["read_as"] == "THE FOX MET A BIRD."
    again = transformer.from_json(json.dumps(found))
    assert (again.read_as, again.warnings) == (run.read_as, run.warnings)


def test_the_command_translates_sentence_by_sentence(translator, tmp_path, capsys):
    (one, first), (two, second) = ((s, translator.generate(s).text) for s, _ in SAMPLE[:2])
    command = [f"{one}  {two}", "--model", "translate-en-fr", "--json", str(tmp_path / "run.json")]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{first} {second}\n"
    assert "read as 2 sentences, each alone" in printed.err
    for place, expected in ((1, first), (2, second)):
        saved = transformer.from_json((tmp_path / f"run-{place}.json").read_text("utf-8"))
        assert saved.text == expected


def test_the_page_says_how_a_text_was_read(plain_reader):
    service = Service([plain_reader])
    settings = {"max_new_tokens": 3, "seed": 0}
    *_, last = presses.generate(
        service, "visitor", plain_reader.name, "LE  CHAT EST LA.\nIT  IS.", settings
    )
    joined = plain_reader.translate("LE CHAT EST LA. IT IS.", **settings)
    assert f"Translated one sentence at a time, as in training: {joined}" in last["status"]["text"]
    assert "Read as: LE CHAT EST LA. IT IS." in last["status"]["text"]
    assert "in capitals" in last["status"]["text"]
