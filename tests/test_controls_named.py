"""Controls that prose names: *Write on* in a document, a card of the tour or a lesson is a sentence
of the page, in the page's language, so that a renamed button is renamed everywhere."""

import re
from functools import cache

import pytest
from babel.messages.pofile import read_po
from kit.documents import DOCUMENTS, ROOT, document_name

from transformer.lessons import FOLDER as LESSONS
from transformer.messages import FOLDER, languages
from transformer.messages.sources import sentences, sources

NAMED = re.compile(r"(?<!\*)\*([A-ZÄÖÜÉÀ¿][^*]*)\*(?!\*)")
CODE = re.compile(r"```.*?```|`[^`]*`", re.S)
# What a lesson says to press, open or choose, of its own page; a word of a text is named otherwise.
PRESSED = re.compile(r"\b(?i:press|open|choose|under|tab|switch)\s+\*([A-Z][^*…]*)\*")
# Emphasis of a document that names no control: findings, and tokens of an example.
NO_CONTROL = {
    "docs/teaching/findings.md": re.compile(r"(A head that|Without (positions|cross-)|One vector)"),
    "docs/page/index.md": re.compile(r"Lo$"),
    "docs/library/server.md": re.compile(r"Python$"),
}  # fmt: skip


@cache
def said_by_page() -> set[str | tuple[str, ...]]:
    """Without a class's phones, which have a page of their own: a control that only they still call
    so is no control of the page."""
    paths = (path for path in sources() if path.name != "phone.js")
    return {sentence for path in paths for sentence in sentences(path)}


@cache
def catalogue_of(language: str) -> dict[str, str]:
    """What a control is called, by its English name: without its sign, in small letters."""
    with (FOLDER / f"{'de' if language == 'en' else language}.po").open("rb") as file:
        messages = [one for one in read_po(file) if isinstance(one.id, str) and one.id]
    messages = [one for one in messages if one.id in said_by_page()]
    texts = {one.id: one.id if language == "en" else str(one.string) for one in messages}
    return {plain(one): plain(text) for one, text in texts.items()}


def plain(name: str) -> str:
    return " ".join(name.removesuffix(" ★").split()).rstrip(".").lower()


@pytest.fixture(scope="module")
def english() -> dict[str, str]:
    return catalogue_of("en")


@pytest.mark.parametrize("path", DOCUMENTS, ids=document_name)
def test_a_document_names_controls_as_the_page_does(path, english):
    if re.fullmatch(r"README\.\w\w\.md|CHANGELOG\.md|SECURITY\.md", path.name):
        return  # in another language, of former versions, or of another site
    text = CODE.sub("", path.read_text(encoding="utf-8"))
    usual = NO_CONTROL.get(document_name(path))
    controls = [words for words in NAMED.findall(text) if not (usual and usual.match(words))]
    assert [words for words in controls if plain(words) not in english] == []


@pytest.mark.parametrize("language", languages())
def test_a_card_of_the_tour_names_controls_as_the_page_does(language):
    said = catalogue_of(language)
    cards = (ROOT / "transformer/server/tour.toml").read_text(encoding="utf-8").lower()
    named = [one for one in said if "*" in one and one in cards]
    assert named
    for one in named:
        names, own = (re.findall(r"\*([^*]+)\*", text) for text in (one, said[one]))
        assert own == [said[plain(name)] for name in names]


def test_lessons_name_what_is_pressed_as_the_page_does(english):
    pressed = set()
    for path in sorted(LESSONS.glob("*/en.md")):
        found = {" ".join(name.split()) for name in PRESSED.findall(path.read_text("utf-8"))}
        assert [name for name in sorted(found) if plain(name) not in english] == [], path
        pressed |= {(path.parent, name) for name in found}
    assert {"Write on", "Train"} <= {name for _, name in pressed}
    for language in languages()[1:]:
        said = catalogue_of(language)
        for folder, name in pressed:
            text = " ".join((folder / f"{language}.md").read_text("utf-8").lower().split())
            words = said[plain(name)]
            assert f"*{words}*" in text, (language, folder.name, name, words)
