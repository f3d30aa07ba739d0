"""The self-contained page: numbers are the trace's, text stays text, and it needs no network."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser
from pathlib import Path

import transformer
from transformer.views.export import html
from transformer.views.export.packing import Pack

LARGEST = 3_000_000  # bytes of the page of a run of 6 layers x 8 heads x 128 tokens


class Scripts(HTMLParser):
    """Collects the script elements, and every address that the page could load from."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.addresses: list[str | None] = []
        self._open = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._open = tag == "script"
        if self._open:
            self.scripts.append((dict(attributes), ""))
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_data(self, text: str) -> None:
        if self._open:
            attributes, sofar = self.scripts[-1]
            self.scripts[-1] = (attributes, sofar + text)

    def handle_endtag(self, tag: str) -> None:
        self._open = False


def parsed(page: Path) -> Scripts:
    result = Scripts()
    result.feed(page.read_text(encoding="utf-8"))
    return result


# --- the page's content ---------------------------------------------------------------------------


def test_heads_that_were_changed_travel_as_recorded(scripted):
    record = scripted.trace["decoder.1.self"]
    other = dataclasses.replace(record, scores=record.scores + 1)
    assert html.heads_of(other, Pack()).keys() == {"scores"}
    other = dataclasses.replace(record, pattern=record.pattern.flip(-1))
    assert html.heads_of(other, Pack()).keys() == {"queries", "keys", "weights"}
    far = record.q * 1e4  # the scores are no longer right to within CLOSE of a softmax
    other = dataclasses.replace(record, q=far)
    assert html.heads_of(other, Pack()).keys() == {"scores"}
    other = dataclasses.replace(record, q=None)
    assert html.heads_of(other, Pack()).keys() == {"scores"}


def test_token_text_cannot_leave_the_data(scripted_page):
    source = scripted_page.read_text(encoding="utf-8")
    assert "document.title='broken'" not in source
    found = parsed(scripted_page)
    assert [attributes.get("id") or attributes.get("type") for attributes, _ in found.scripts] == [
        None, "view-schema", "data", "plotly", "module",
    ]  # fmt: skip
    assert found.addresses == []


def test_the_page_of_six_layers_eight_heads_and_128_tokens_is_small(tmp_path):
    model = transformer.load("stories")
    run = model.generate("Once upon a time", max_new_tokens=123, temperature=0.8, top_k=40, seed=3)
    assert (model.config.n_layers, model.config.n_heads, len(run.labels)) == (6, 8, 128)
    html.write(run, tmp_path / "long.html")
    assert (tmp_path / "long.html").stat().st_size < LARGEST
