"""What the project says: every sentence through the catalogue, in the language of the request."""

import ast
import itertools
import pickle
import re
from pathlib import Path

import pytest

from transformer import messages
from transformer.checks import InvalidRequest
from transformer.messages import (
    Catalogue,
    catalogue,
    languages,
    mark,
    negotiate_language,
    numeral,
    say,
    say_error,
    say_n,
    speaking,
)
from transformer.messages.sources import SAYING
from transformer.messages.templates import html_sentences, translate_html

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "transformer"
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE / "messages"]


def name_of(call):
    """ "say" for say(...)."""
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def wrongly_said(tree):
    """Calls of SAYING whose sentence and values do not fit, or that cannot be collected."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or name_of(node) not in SAYING:
            continue
        sentences = node.args[SAYING[name_of(node)]]
        texts = [given.value for given in sentences if isinstance(given, ast.Constant)]
        names = {keyword.arg for keyword in node.keywords}
        holes = {hole for text in texts for hole in re.findall(r"(?<!%)\{(.*?)\}", text)} - {"n"}
        marked = name_of(node) not in ("mark", "say_n") and not texts  # data that was marked
        spread = None in names and holes >= names - {None}  # **values hold the others
        fits = len(texts) == len(sentences) > 0 and (
            spread or holes == names - {"n"} or name_of(node) == "mark"
        )
        if not (marked or fits) or any(isinstance(one, ast.JoinedStr) for one in sentences):
            yield ast.unparse(node)


def quoted_whole(tree):
    """Values in the sentence of an error that may be of any length."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for part in ast.walk(node.exc):
                of_input = isinstance(part, ast.Call) and name_of(part) == "repr"
                if of_input or (isinstance(part, ast.FormattedValue) and part.conversion == 114):
                    yield ast.unparse(part)


@pytest.fixture
def shouted(tmp_path, monkeypatch):
    """A language, "pl", of two sentences."""
    po = tmp_path / "pl.po"
    po.write_text(
        'msgid ""\nmsgstr "Plural-Forms: nplurals=3; plural=n>4 ? 2 : n!=1;\\n"\n\n'
        'msgid "no {name}; got {got}"\nmsgstr "{got}: NOT {name}"\n\n'
        'msgid "{n} token"\nmsgid_plural "{n} tokens"\n'
        'msgstr[0] "ONE"\nmsgstr[1] "{n} FEW"\nmsgstr[2] "{n} MANY"\n'
    )
    monkeypatch.setattr("transformer.messages.FOLDER", tmp_path)
    languages.cache_clear(), catalogue.cache_clear()
    yield
    languages.cache_clear(), catalogue.cache_clear()


def test_a_sentence_is_itself_in_english_and_its_braces_are_filled_once():
    assert say("no {name}; got {got}", name="{got}", got=3) == "no {got}; got 3"
    assert say("put it in {} or {}") == "put it in {} or {}"
    assert [say_n("{n} token", "{n} tokens", n) for n in (0, 1, 1200)] == [
        "0 tokens", "1 token", "1,200 tokens",
    ]  # fmt: skip
    assert (numeral(1234567), numeral(0.25, "g"), mark("Text")) == ("1,234,567", "0.25", "Text")


def test_what_is_said_inside_is_in_the_language_and_outside_is_not(shouted):
    with speaking("pl"):
        assert messages.language() == "pl"
        assert say("no {name}; got {got}", name="a", got=3) == "3: NOT a"
        assert say("not translated {name}", name="yet") == "not translated yet"
        said = [say_n("{n} token", "{n} tokens", n) for n in (0, 1, 3, 5, 301, 1000)]
    assert said == ["0 FEW", "ONE", "3 FEW", "5 MANY", "301 MANY", "1\u00a0000 MANY"]
    assert say("no {name}; got {got}", name="a", got=3) == "no a; got 3"


def test_numbers_are_written_as_the_language_writes_them(shouted):
    with speaking("pl"):
        said = [numeral(value, form) for value, form in ((0.25, "g"), (1234567, ","), (0.5, ".1%"))]
        assert said == ["0,25", "1\u00a0234\u00a0567", "50,0%"]
        assert messages.signs() == ",\u00a0"
    spanish = messages.Catalogue(decimal=",", group=".", group_from=5)
    assert [spanish.number(text) for text in ("1,234.5", "12,345.6")] == ["1234,5", "12.345,6"]


def test_the_browser_chooses_the_language(shouted):
    headers = (
        "pl",
        "pl-CH,en;q=0.8",
        "fr, en;q=0.5, pl;q=0.7",
        "en-GB, pl;q=0.9",
        "fr",
        "",
        ";q=x",
        "fr;q=x, pl",  # what cannot be read is passed over
    )
    chosen = ["pl"] * 3 + ["en"] * 4 + ["pl"]
    assert [negotiate_language(header) for header in headers] == chosen


def test_a_sentence_has_a_value_for_each_placeholder():
    wrong = {str(one): [*wrongly_said(ast.parse(one.read_text(encoding="utf-8")))] for one in FILES}
    assert {path: found for path, found in wrong.items() if found} == {}


def test_what_an_error_quotes_is_shortened():
    found = {str(one): [*quoted_whole(ast.parse(one.read_text(encoding="utf-8")))] for one in FILES}
    assert {path: values for path, values in found.items() if values} == {}, "use shortened(...)"


def test_an_error_is_english_unless_translated_with_its_errors(shouted):
    inner = InvalidRequest("inner", "no {name}; got {got}", name="a", got=2000)
    copy = pickle.loads(pickle.dumps(inner))
    error = InvalidRequest("outer", "no {name}; got {got}", name=inner, got=copy)
    with speaking("pl"):
        assert str(error) == "no no a; got 2,000; got no a; got 2,000"
        assert say_error(error) == "2\u00a0000: NOT a: NOT 2\u00a0000: NOT a"
        assert say_error(ValueError("no a")) == "no a"


TEMPLATE = """<style>@media (x) { p > b { color: red; } }</style>
<script>if (a > 1 && b < 2) more("words > here");</script>
<h3 class="title">Edit the mask</h3>
<p> Rows: query;
    columns: key. </p>
<p>/*text*/</p><p>×</p><p>7</p>"""


def test_only_the_texts_of_a_template_are_translated(monkeypatch):
    said = ["Edit the mask", "Rows: query; columns: key."]
    assert list(html_sentences(TEMPLATE)) == said
    known = Catalogue(messages={sentence: f"⟦{sentence}⟧" for sentence in said})
    monkeypatch.setattr("transformer.messages.templates.catalogue", lambda _: known)
    found = translate_html(TEMPLATE, "xx")
    assert '<h3 class="title">⟦Edit the mask⟧</h3>' in found
    assert found.replace("⟦", "").replace("⟧", "").split() == TEMPLATE.split()


@pytest.mark.parametrize("width", [5, 8, 40])
def test_lines_are_as_long_as_they_may_be_and_lose_no_letter(width):
    text = "a bb ccc dddd eeeee unbreakables f"
    lines = messages.lines(text, width).split("<br>")
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert max(map(len, lines)) <= width
    for line, following in itertools.pairwise(lines):
        assert len(line) + 1 + len(following.split(" ")[0]) > width  # it would not have fitted
