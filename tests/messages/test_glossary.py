"""The glossary: the field's words on the page have a sentence, in every language."""

import re

import pytest

from transformer.messages.catalogues import catalogue, glossary, languages
from transformer.messages.sources import sentences, sources

# The field's words, independent of the glossary: one that the page uses needs an entry.
FIELD = """accuracy alignment attention batch beam bias candidate
    cross-attention decoder dimension dropout embedding encoder entropy epoch feed-forward gradient
    greedy head hypothesis induction intervention key layer logit loss mask norm padding parameter
    patch perplexity position prompt query residual rollout rotary sampled score seed
    self-attention ablation sinusoidal softmax stack surprisal temperature token tokenizer top-k
    top-p value vector vocabulary weight""".split()  # noqa: SIM905
ROOMS = {  # what the page says
    "analysis", "interventions", "learning", "lessons", "model", "network_words.py", "runs", "ui",
    "views",
}  # fmt: skip
SAYS = 260  # characters of a sentence, or of two


@pytest.fixture(scope="module")
def words_of():
    """What the page and its pictures say in a language, each sentence a line."""
    said = (one for path in sources() if ROOMS & {*path.parts} for one in sentences(path))
    keys = {one if isinstance(one, str) else one[0] for one in said}

    def words(language):
        known = catalogue(language).messages
        forms = (known.get(key, key) for key in keys)
        return "\n".join(form if isinstance(form, str) else "\n".join(form) for form in forms)

    return words


def stands(word, text):
    return re.search(rf"(?<![^\W\d_]){re.escape(word)}(?![^\W\d_])", text, re.IGNORECASE)


def test_every_technical_term_on_the_page_has_an_entry(words_of):
    text = words_of("en")
    known = {word.lower() for entry in glossary("en").values() for word in entry["words"]}
    assert {word for word in FIELD if stands(word, text)} - known == set()


@pytest.mark.parametrize("language", languages())
def test_every_entry_exists_is_used_on_the_page_and_is_short(language, words_of):
    text, entries = words_of(language), glossary(language)
    assert entries.keys() == glossary("en").keys()
    assert (language == "en") == (entries == glossary("en"))
    words = [word.lower() for entry in entries.values() for word in entry["words"]]
    assert sorted(words) == sorted(set(words))  # each belongs to one entry
    for term, entry in entries.items():
        assert entry["words"], term
        words = (*entry["words"], *entry.get("other", ()))
        assert all(re.fullmatch(r"[\w ’-]+", word) for word in words), "terms.js makes patterns"
        # between Chinese signs a word has no end
        assert any(
            word.lower() in text.lower() if language == "zh" else stands(word, text)
            for word in words
        ), term
        assert entry["says"].strip().endswith((".", "。")), term
        assert len(entry["says"]) < SAYS, term
