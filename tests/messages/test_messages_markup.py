"""Sentences in HTML templates: which they are, and the template in another language."""

import pytest

from transformer.messages import catalogues
from transformer.messages.catalogues import Catalogue
from transformer.messages.markup import sentences, translated

TEMPLATE = """<!doctype html>
<title>Every head</title>
<style>@media (x) { p > b { color: red; } }</style>
<script>if (a > 1 && b < 2) more("words > here");</script>
<section>
  <h3 class="title">Edit the mask</h3>
  <p>
    Rows: query;
    columns: key.
  </p>
  <p>/*text*/</p><p>×</p><p>7</p>
</section>"""


def test_texts_are_sentences_and_scripts_styles_and_numbers_are_not():
    assert list(sentences(TEMPLATE)) == [
        "Every head",
        "Edit the mask",
        "Rows: query; columns: key.",
    ]


def test_a_template_is_put_into_another_language_and_nothing_else_of_it_changes(monkeypatch):
    known = {sentence: f"⟦{sentence}⟧" for sentence in sentences(TEMPLATE)}
    monkeypatch.setattr(
        "transformer.messages.markup.catalogue", lambda _: Catalogue(messages=known)
    )
    found = translated(TEMPLATE, "xx")
    assert '<h3 class="title">⟦Edit the mask⟧</h3>' in found
    assert found.replace("⟦", "").replace("⟧", "").split() == TEMPLATE.split()


@pytest.mark.parametrize("language", ["en", "nowhere"])
def test_without_a_catalogue_a_template_stays_as_it_is(language):
    assert catalogues.catalogue(language).messages == {}
    assert translated(TEMPLATE, language) == TEMPLATE
