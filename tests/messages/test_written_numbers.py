"""Numbers in translated texts: those of the English text, written as each language writes them.

The oracle for the signs is CLDR, through babel.
"""

import re
from decimal import Decimal

import pytest
from babel.messages.pofile import read_po
from babel.numbers import get_decimal_symbol, get_group_symbol

import transformer
from transformer.lessons import FOLDER as LESSONS
from transformer.lessons import read_folder
from transformer.messages.catalogues import FOLDER, glossary, languages

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
    for lesson in read_folder(LESSONS).values():
        for pair in zip(lesson.words["en"], lesson.words[language], strict=True):
            both = ([p.title, *p.says, p.task, *p.options, *p.hints] for p in pair)
            yield from (([english], said) for english, said in zip(*both, strict=True))


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


@pytest.mark.parametrize("language", languages()[1:])
@pytest.mark.parametrize("texts", [of_lessons, of_glossary, of_catalogue, of_cards])
def test_a_number_is_written_as_its_language_writes_it(texts, language):
    wrong = [
        (said, numbers(said, language))
        for english, said in texts(language)
        if numbers(said, language) not in [numbers(one, "en") for one in english]
    ]
    assert wrong == []
