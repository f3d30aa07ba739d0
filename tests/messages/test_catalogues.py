"""The texts of every language: catalogues, glossary, model cards, and the numbers in them.

The oracle for the signs of numbers is CLDR, through babel."""

import re
from decimal import Decimal

import pytest
from babel.messages.pofile import read_po
from babel.numbers import get_decimal_symbol, get_group_symbol

import transformer
from transformer import Ablate
from transformer.lessons import FOLDER as LESSONS
from transformer.lessons import read_folder
from transformer.messages import FOLDER, catalogue, language_names, languages, speaking
from transformer.messages.sources import problems, sentences, sources, updated
from transformer.messages.templates import glossary, late_terms
from transformer.server.kept.page_models import model_card
from transformer.views.export.recorded import summary
from transformer.views.registry import VIEWS

PATHS = sorted(FOLDER.glob("*.po"))
SAME = 0.05  # the share of sentences that may be as in English: names of the field, formulas


def test_the_page_exists_in_five_languages():
    assert languages() == ("en", "de", "es", "fr", "zh")
    names = ["English", "Deutsch", "Español", "Français", "简体中文"]
    assert [language_names(language)[1] for language in languages()] == names


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_catalogue_has_every_sentence_and_fits_it(path):
    assert list(problems(path)) == [], "run: python -m transformer.messages update, and translate"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_catalogue_is_as_update_writes_it_without_what_is_gone(path, tmp_path):
    text, copy = path.read_text(encoding="utf-8"), tmp_path / path.name
    copy.write_text(f'{text}\nmsgid "gone"\nmsgstr "fort"\n', encoding="utf-8")
    assert updated(copy) == text


@pytest.mark.parametrize("language", languages()[1:])
def test_hardly_a_sentence_is_left_in_english(language):
    said = catalogue(language).messages
    same = [one for one, text in said.items() if text == one and " " in one]
    assert len(same) < SAME * len(said), same


COUNTED = re.compile(
    r"(?<!× )\{(\w+)\} (?:first |other )?"
    r"(cells|heads|keys|layers|phones|queries|rows|runs|sentences|texts|tokens)\b"
)
NEVER_ONE = {  # limits, totals, what is said of two or more
    "count heads", "count texts", "max_len tokens", "most phones", "most texts", "n runs",
    "n texts", "n_heads heads", "n_read tokens", "n_tokens tokens", "rows rows", "rows tokens",
    "there tokens", "total keys", "vocab rows", "vocab tokens",
}  # fmt: skip


def test_what_may_be_one_has_a_singular():
    """No "1 tokens": its sentence has plural forms, which every language fills."""
    with (FOLDER / "de.po").open("rb") as file:
        without_forms = [message.id for message in read_po(file) if isinstance(message.id, str)]
    found = {(" ".join(each), one) for one in without_forms for each in COUNTED.findall(one)}
    assert [one for counted, one in found if counted not in NEVER_ONE] == []


@pytest.mark.parametrize(("language", "of_english"), [("fr", r"[^\u202f];"), ("zh", "[,;] ")])
def test_a_list_and_a_family_are_in_the_language(language, of_english, tiny_encoder_decoder):
    changes = [Ablate("encoder", 0, [1]), Ablate("decoder", 1, [0])]
    run = tiny_encoder_decoder.generate(
        "the fox", max_new_tokens=2, temperature=0.7, top_k=5, interventions=changes
    )
    with speaking(language):
        said = summary(run)
    assert re.findall(f"{of_english}|(?:en|de)coder", said) == []


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


# The field's words, independent of the glossary: one that the page uses needs an entry.
FIELD = """accuracy alignment attention batch beam bias candidate
    cross-attention decoder dimension dropout embedding encoder entropy epoch feed-forward gradient
    greedy head hypothesis induction intervention key layer logit loss mask norm padding parameter
    patch perplexity position prompt query residual rollout rotary sampled score seed
    self-attention ablation sinusoidal softmax stack surprisal temperature token tokenizer top-k
    top-p value vector vocabulary weight""".split()  # noqa: SIM905
ROOMS = {  # what the page says
    "analysis", "interventions", "learning", "lessons", "model", "network_words.py", "runs",
    "server", "views",
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


# Code, addresses, places to fill in, and numbers that are names: of a paper, a licence, a section.
NAMES = re.compile(
    r"```.*?```|`[^`]*`|<[^<>]*>|\]\([^)]*\)|https?://\S+|%?\{[^}]*\}|\b[\w/-]+\.(?:py|md|toml|png)\b"
    r"|arXiv \S+|(?:CDLA|GPT|CC[ -]BY)[ -][\w.-]*\d|Python \d\.\d+"
    r"|(?:[Ss]ection|Abschnitt|sección|第)\s?\d\.\d",
    re.DOTALL,
)
NUMBER = re.compile(
    r"(?<![A-Za-z_\d])(?<![A-Za-z\d][-.,])(\d+(?:[.,\u202f\u00a0]\d+)*)(e-?\d+)?"
    r"(?=(\s?(?:[Mm]illi?on|万))?)(?![A-Za-z_\d])"
)
TIMES = {"万": 10**4, "": 1}


def numbers(text, language):
    """Their values, but for whole ones below 10, which may be words elsewhere; what is no number
    in this language stays as it is written, with a question mark."""
    group, decimal = get_group_symbol(language), get_decimal_symbol(language)
    written = rf"(\d+|\d{{1,3}}(?:{re.escape(group)}\d{{3}})+)(?:{re.escape(decimal)}(\d+))?"
    found = set()
    for sign, power, unit in NUMBER.findall(NAMES.sub(" ", text)):
        parts = re.fullmatch(written, sign)
        if parts is None:
            found.add(f"{sign}?")
            continue
        value = Decimal(f"{parts[1].replace(group, '')}.{parts[2] or 0}{power}")
        value *= TIMES.get(unit.strip(), 10**6)
        if value >= 10 or value % 1:
            found.add(f"{value.normalize():f}")
    return found


def of_lessons(language):
    for lessons in read_folder(LESSONS).values():
        if lessons["en"].of_others or language not in lessons:
            continue
        english, said = (read_by_visitors(lessons[one]) for one in ("en", language))
        yield from (([one], other) for one, other in zip(english, said, strict=True))


def read_by_visitors(lesson):
    yield from (lesson.title, lesson.about)
    for step in lesson.steps:
        for one in step.texts.values():
            yield from [one] if isinstance(one, str) else one


def of_glossary(language):
    for term, entry in glossary(language).items():
        yield [glossary("en")[term]["says"]], entry["says"]


def of_catalogue(language):
    with (FOLDER / f"{language}.po").open("rb") as file:
        for message in read_po(file):
            forms = ([one] if isinstance(one, str) else one for one in (message.id, message.string))
            english, said = forms
            yield from ((english, one) for one in said if message.id)


def of_cards(language):
    for name in transformer.bundled_names():
        model = transformer.load(name)
        both = (card.split("\n## ") for card in (model.card, model.cards[language]))
        yield from (([english], said) for english, said in zip(*both, strict=True))


@pytest.mark.parametrize("texts", [of_lessons, of_glossary, of_catalogue, of_cards])
def test_french_signs_have_a_narrow_no_break_space(texts):
    plain = re.compile(r"^(?!python|\|).* [;:?!»]|« ", re.MULTILINE)
    assert [said for _, said in texts("fr") if plain.search(said)] == []


@pytest.mark.parametrize("language", languages()[1:])
@pytest.mark.parametrize("texts", [of_lessons, of_glossary, of_catalogue, of_cards])
def test_a_number_is_written_as_its_language_writes_it(texts, language):
    wrong = [
        (said, numbers(said, language))
        for english, said in texts(language)
        if numbers(said, language) not in [numbers(one, "en") for one in english]
    ]
    assert wrong == []


def test_a_term_whose_english_has_changed_since_is_named(monkeypatch, tmp_path):
    (tmp_path / "en.toml").write_text('[head]\nwords = ["head"]\nsays = "New."\n')
    entry = '[head]\nwords = ["Kopf"]\nsays = "Alt."\nmade_from = "{}"\n'
    (tmp_path / "de.toml").write_text(entry.format("0000"))
    monkeypatch.setattr("transformer.messages.templates.GLOSSARIES", tmp_path)
    glossary.cache_clear()
    try:
        (late,) = late_terms("de")
        assert late.startswith('glossary, head: made_from = "')
        (tmp_path / "de.toml").write_text(entry.format(late[-5:-1]))
        assert [*late_terms("de")] == []
        assert glossary("de") == {"head": {"words": ["Kopf"], "says": "Alt."}}
    finally:
        glossary.cache_clear()
