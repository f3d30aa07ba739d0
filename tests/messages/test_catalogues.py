"""The catalogues: each whole, and its tabs told apart."""

import re

import pytest

import transformer
from transformer.messages import speaking
from transformer.messages.catalogues import FOLDER, catalogue, languages
from transformer.messages.sources import problems
from transformer.ui.page_data import model_card
from transformer.views.registry import VIEWS

PATHS = sorted(FOLDER.glob("*.po"))
SAME = 0.05  # the share of sentences that may be as in English: names of the field, formulas


def test_the_page_exists_in_five_languages():
    assert languages() == ("en", "de", "es", "fr", "zh")
    names = ["English", "Deutsch", "Español", "Français", "简体中文"]
    assert [catalogue(language).name for language in languages()] == names


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_catalogue_has_every_sentence_and_fits_it(path):
    assert list(problems(path)) == [], "run: python -m transformer.messages update, and translate"


@pytest.mark.parametrize("language", languages()[1:])
def test_hardly_a_sentence_is_left_in_english(language):
    said = catalogue(language).messages
    same = [one for one, text in said.items() if text == one and " " in one]
    assert len(same) < SAME * len(said), same


@pytest.mark.parametrize("language", languages()[1:])
def test_a_tab_is_identified_by_its_name(language):
    known = catalogue(language)
    for tab in {view.tab for view in VIEWS.values()}:  # as messages.js looks it up
        assert next(one for one in sorted(known.scripts) if known.one(one) == known.one(tab)) == tab


@pytest.mark.parametrize("language", languages()[1:])
def test_the_readmes_agree_in_every_language(language):
    """Its pictures, commands and figures are the English one's."""
    root = FOLDER.parent.parent
    english = (root / "README.md").read_text(encoding="utf-8")
    assert f"](docs/README.{language}.md)" in english
    first = english.partition("# Transformer Attention")[2].partition("## In Python")[0]
    other = (root / "docs" / f"README.{language}.md").read_text(encoding="utf-8")
    assert re.findall(r"```.*?```", other, re.DOTALL) == re.findall(r"```.*?```", first, re.DOTALL)
    for figures in (r"\d+(?:[.,]\d+)*", r"\w+\.png"):
        assert re.findall(figures, other) == re.findall(figures, first)


@pytest.mark.parametrize("language", languages()[1:])
@pytest.mark.parametrize("name", transformer.bundled_names())
def test_a_model_card_has_the_same_content_in_every_language(name, language):
    """Its commands and tables are the English one's, and the page shows it to who reads it."""
    model = transformer.load(name)
    english, other = model.card, model.cards[language]
    for what in (r"```.*?```", r"`[^`\n]+`", r"(?m)^\|"):
        ours, theirs = (sorted(re.findall(what, one, re.DOTALL)) for one in (english, other))
        assert theirs == ours
    with speaking(language):
        assert model_card(model) == other
    assert model_card(model) == english
