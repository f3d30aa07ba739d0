"""The self-contained page: numbers are the trace's, text stays text, and it needs no network."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import struct
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from pictured import SCRIPTED

import transformer
from transformer import with_lens
from transformer.views import PICTURES
from transformer.views.export import html
from transformer.views.export.gallery import gallery
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


def unpacked(page: Path, name: str) -> bytes:
    """What the script element of that id holds."""
    (text,) = [text for attributes, text in parsed(page).scripts if attributes.get("id") == name]
    return gzip.decompress(base64.b64decode(text))


def data_of(page: Path) -> dict[str, Any]:
    """The page's content, with a numpy array in the place of each packed one."""
    raw = unpacked(page, "data")
    length = struct.unpack("<I", raw[:4])[0]
    said, arrays, at = json.loads(raw[4 : 4 + length]), [], 4 + length
    for kind, count in said["arrays"]:
        size = int(kind[1:])
        planes = np.frombuffer(raw[at : at + count * size], np.uint8).reshape(size, count)
        arrays.append(np.frombuffer(planes.T.tobytes(), f"<{kind}"))
        at += count * size
    assert at == len(raw)

    def whole(value: Any) -> Any:
        if isinstance(value, list):
            return [whole(part) for part in value]
        if not isinstance(value, dict):
            return value
        if "array" in value:
            flat = arrays[value["array"]][: int(np.prod(value["shape"]))]
            return flat.reshape(value["shape"])
        return {key: whole(part) for key, part in value.items()}

    return whole(said["content"])


# --- the page's content ---------------------------------------------------------------------------


def test_the_page_holds_the_numbers_of_the_trace(scripted_page, scripted):
    (found,) = data_of(scripted_page)["run"]["kinds"]
    for layer, heads in enumerate(found["layers"]):
        record = scripted.trace["decoder", layer, "self"]
        np.testing.assert_array_equal(found["allowed"], record.allowed[0].numpy())
        np.testing.assert_allclose(heads["queries"], record.q[0].numpy(), rtol=2**-17)
        np.testing.assert_allclose(heads["keys"], record.k[0].numpy(), rtol=2**-17)
        assert heads.keys() == {"queries", "keys"}
    assert found["labels"]["query"] == list(scripted.queries("decoder"))


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


def test_an_altered_run_says_so_and_shows_what_was_recorded(tiny_model, tmp_path):
    uniform = [{"type": "break", "what": "uniform-attention"}]
    run = tiny_model.generate("the fox", max_new_tokens=3, interventions=uniform)
    html.write(run, tmp_path / "altered.html")
    found = data_of(tmp_path / "altered.html")
    assert "altered: " in found["summary"]
    for layer, heads in enumerate(found["run"]["kinds"][0]["layers"]):
        weights = run.trace["decoder", layer, "self"].pattern[0].numpy()
        np.testing.assert_array_equal(heads["weights"], weights)
    assert "altered" not in html.summary(tiny_model.trace("the fox"))


def test_the_page_holds_tokens_and_candidates(scripted_page, scripted):
    found = data_of(scripted_page)
    assert found["run"]["labels"] == list(scripted.labels)
    assert found["run"]["n_prompt"] + len(found["steps"]) == len(scripted.labels)
    for shown, step in zip(found["steps"], scripted.steps, strict=True):
        assert shown["token"] == step.token
        assert [c["probability"] for c in shown["candidates"]] == [
            c.probability for c in step.candidates
        ]


def test_token_text_cannot_leave_the_data(scripted_page):
    source = scripted_page.read_text(encoding="utf-8")
    assert "document.title='broken'" not in source
    found = parsed(scripted_page)
    assert [attributes.get("id") or attributes.get("type") for attributes, _ in found.scripts] == [
        None, "data", "plotly", "module",
    ]  # fmt: skip
    assert found.addresses == []
    assert data_of(scripted_page)["text"].startswith(SCRIPTED)


def test_an_encoder_decoder_has_its_three_kinds_in_the_page(tiny_encoder_decoder, tmp_path):
    run = tiny_encoder_decoder.generate("the fox said", max_new_tokens=4)
    html.write(run, tmp_path / "cross.html")
    found = data_of(tmp_path / "cross.html")
    kinds = [(part["stack"], part["kind"]) for part in found["run"]["kinds"]]
    assert kinds == run.trace.kinds()
    cross = found["run"]["kinds"][kinds.index(("decoder", "cross"))]
    assert cross["labels"]["key"] == list(run.source_labels) == found["run"]["source_labels"]
    keys = run.trace["decoder.1.cross"].k[0].numpy()
    np.testing.assert_allclose(cross["layers"][1]["keys"], keys, rtol=2**-17)


def test_the_page_of_six_layers_eight_heads_and_128_tokens_is_small(tmp_path):
    model = transformer.load("stories")
    run = model.generate("Once upon a time", max_new_tokens=123, temperature=0.8, top_k=40, seed=3)
    assert (model.config.n_layers, model.config.n_heads, len(run.labels)) == (6, 8, 128)
    html.write(run, tmp_path / "long.html")
    assert (tmp_path / "long.html").stat().st_size < LARGEST


def test_every_picture_that_needs_no_choice_is_inside_and_named(tiny_model):
    run = with_lens(tiny_model, tiny_model.generate("the fox said", max_new_tokens=4))
    shown = html.content(run, Pack())["more"]
    assert [one["title"] for one in shown] == [
        picture.figure.layout.title.text for picture in gallery(run)
    ]
    assert {"architecture", "surprisal", "lens", "attention_math", "rollout", "inputs"} <= {
        picture.view for picture in gallery(run)
    }
    assert all(one["help"] for one in shown)


def test_the_gallery_has_what_each_family_has(tiny_encoder, tiny_encoder_decoder):
    run = tiny_encoder.trace("the fox")
    assert {"lens", "surprisal"}.isdisjoint(picture.view for picture in gallery(run))
    read = {picture.view for picture in gallery(with_lens(tiny_encoder, run))}
    assert "lens" in read
    assert "surprisal" not in read
    searched = tiny_encoder_decoder.generate("the fox", beams=2, max_new_tokens=4)
    searched = with_lens(tiny_encoder_decoder, searched)
    views = {picture.view for picture in gallery(searched)}
    assert {"alignment", "beams", "surprisal", "shift"} <= views
    assert views <= set(PICTURES)
