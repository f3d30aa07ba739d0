"""Sentences in HTML templates: which they are, and the template in another language."""

import pytest

from transformer.messages import catalogues
from transformer.messages.catalogues import Catalogue
from transformer.messages.markup import sentences, translated

TEMPLATE = """<section>
  <h3 class="title">Edit the mask</h3>
  <p>
    Click <b>one</b> head;
    <span class="says"></span> stays.
  </p>
  <p><i class="open"></i>allowed <span>7</span></p>
  <label>Layer <select aria-label="Which layer"><option value="a">all</option></select></label>
  <p><span>one</span> <span>another</span></p>
  <button type="button" title="PNG">‹</button><dd data-field="key"></dd><p>×</p>
</section>"""


def test_texts_and_what_is_read_out_are_sentences_with_the_phrases_inside():
    assert list(sentences(TEMPLATE)) == [
        "Edit the mask",
        'Click <b>one</b> head; <span class="says"></span> stays.',
        "allowed <span>7</span>",
        "Layer",
        "all",
        "one",
        "another",
        "Which layer",
        "PNG",
    ]


def test_a_template_is_put_into_another_language_and_nothing_else_of_it_changes(monkeypatch):
    known = {sentence: f"⟦{sentence}⟧" for sentence in sentences(TEMPLATE)}
    known["Which layer"] = 'a "layer"'
    monkeypatch.setattr(
        "transformer.messages.markup.catalogue", lambda _: Catalogue(messages=known)
    )
    found = translated(TEMPLATE, "xx")
    assert '<h3 class="title">⟦Edit the mask⟧</h3>' in found
    assert "⟦Click <b>one</b> head; " in found
    assert 'aria-label="a &quot;layer&quot;"><option value="a">⟦all⟧</option>' in found
    back = found.replace("⟦", "").replace("⟧", "").replace("a &quot;layer&quot;", "Which layer")
    assert back.split() == TEMPLATE.split()


@pytest.mark.parametrize("language", ["en", "nowhere"])
def test_without_a_catalogue_a_template_stays_as_it_is(language):
    assert catalogues.catalogue(language).messages == {}
    assert translated(TEMPLATE, language) == TEMPLATE
