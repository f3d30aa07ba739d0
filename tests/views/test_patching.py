"""A patch map as a picture, the other text that it starts from, and what the page is answered."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from asking import asking
from serving import tiny_translator

from transformer import Model
from transformer.analysis.patching import PatchEffect, most_changed
from transformer.ui.service import Service
from transformer.views.patching.patching import (
    TEACHING,
    paired_labels,
    patching,
    text_before,
    variant,
)

CHANGE = torch.tensor([[0.0, -1.5, 0.25], [0.5, 3.0, 0.0]])
FOUND = PatchEffect(target=7, before=-4.0, other=-0.5, change=CHANGE)
TEXT, OTHER = "The fox said hello", "The bird sang hello"


@pytest.fixture(scope="module")
def experiments(tiny_model: Model, tiny_encoder: Model) -> Service:
    return Service([tiny_model, tiny_translator(), tiny_encoder])


@pytest.fixture(scope="module")
def story(experiments: Service) -> str:
    """The id of a run of the text generator."""
    run = experiments.generate("tiny", TEXT, max_new_tokens=5)
    return experiments.store.put(run)


@pytest.fixture(scope="module")
def translation(experiments: Service) -> str:
    """The id of a run of the translator."""
    run = experiments.generate("tiny-translator", TEXT, max_new_tokens=5)
    return experiments.store.put(run)


def ask(experiments: Service, view: str, **data: Any) -> dict[str, Any]:
    """As the page asks."""
    return asking(experiments, view)(data)


# --- the picture ----------------------------------------------------------------------------------


def test_the_map_has_layers_down_places_across_and_zero_in_the_middle():
    figure = patching(FOUND, ["a", "cat", "sat", "x"], ["a", "dog"], "end")
    cells, layout, meta = figure.data[0], figure.layout, figure.layout.meta
    np.testing.assert_array_equal(cells.z, CHANGE)
    assert (cells.zmin, cells.zmax, meta["limit"]) == (-3, 3, 3)
    assert meta["row_labels"] == ["layer 0", "layer 1"]
    assert meta["column_labels"] == ["a", "cat ← dog", "sat ← –"]  # as many as the map has
    assert layout.yaxis.range[0] > layout.yaxis.range[1]  # layer 0 on top
    text = cells.hovertext[1][1]
    assert "ln p +3.0000: -4.0000 → -1.0000" in text
    assert f"p {math.exp(-4):.4f} → {math.exp(-1):.4f}" in text
    assert "ln p is -4.00 here and -0.50 in the other run" in layout.title.subtitle.text


# --- where another source changes a translation ---------------------------------------------------


def test_the_most_changed_token_is_the_one_whose_probability_falls_most():
    model = tiny_translator()
    run = model.generate(TEXT, max_new_tokens=6)

    def told(text: str, place: int) -> float:
        source = torch.tensor([model.prepare(text).source])
        with torch.inference_mode():
            logits = model.network(source, torch.tensor([run.ids[:place]]))[0, -1]
        return float(logits.log_softmax(-1)[run.ids[place]])

    drops = {place: told(TEXT, place) - told(OTHER, place) for place in range(1, len(run.ids))}
    assert most_changed(model, run, OTHER) == max(drops, key=lambda place: drops[place])


# --- another text to start from -------------------------------------------------------------------


def test_a_variant_is_as_long_and_differs_in_one_word(tiny_model):
    for text in ("My mom ran. My mom sat.", "A black bird", "Tom ran. Tom sat."):
        found = variant(tiny_model, text)
        assert found is not None
        assert found != text
        ids, other = tiny_model.prepare(text).ids, tiny_model.prepare(found).ids
        assert len(ids) == len(other)
    assert variant(tiny_model, "Once upon a time") is None
    assert variant(tiny_model, "concatenate") is None  # a word, and not a part of one
    assert len(tiny_model.prepare("fox").ids) != len(tiny_model.prepare("bear").ids)
    assert variant(tiny_model, "fox") is None


def test_a_later_token_has_all_of_the_text_before_it_as_its_text(experiments, story, translation):
    for key, place in ((story, None), (story, 9), (translation, 2)):
        run = experiments.store.run(key)
        model = experiments.model(run.model)
        text = text_before(model, run, run.n_prompt if place is None else place)
        if run.source_ids:
            assert text == TEXT
        else:
            assert text == model.tokenizer.decode(run.ids[1 : place or run.n_prompt])
            assert text.startswith(TEXT)
        answer = ask(experiments, "other_text", run=key, position=place)
        assert answer["variant"] == variant(model, text)
        assert answer["teaching"] == TEACHING[run.config.family]


# --- what the page is answered --------------------------------------------------------------------


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_a_translators_map_is_of_the_token_that_the_other_source_changes_most(
    experiments, translation, stack
):
    run = experiments.store.run(translation)
    model = experiments.model(run.model)
    answer = ask(experiments, "patching", run=translation, other=OTHER, stack=stack)
    assert answer["position"] == most_changed(model, run, OTHER)
    meta = json.loads(answer["figure"])["layout"]["meta"]
    if stack == "encoder":
        there = model.tokenizer.labels(model.prepare(OTHER).source)
        n = min(len(run.source_labels), len(there))
        assert meta["column_labels"] == paired_labels(run.source_labels, there)[:n]
    else:
        assert meta["column_labels"] == list(run.labels[: answer["position"]])
