"""A patch map as a picture, the other text that it starts from, and what the page is answered."""

import json

import numpy as np
import pytest
import torch
from kit.client import asking
from kit.serving import tiny_translator

from transformer.analysis.patching import PatchEffect, variant
from transformer.server.kept.service import Service
from transformer.views.whatif.patching import paired_labels, patching

CHANGE = torch.tensor([[0.0, -1.5, 0.25], [0.5, 3.0, 0.0]])
FOUND = PatchEffect(target=7, before=-4.0, other=-0.5, change=CHANGE)
TEXT, OTHER = "The fox said hello", "The bird sang hello"


@pytest.fixture(scope="module")
def experiments() -> Service:
    return Service([tiny_translator()])


def test_the_map_has_layers_down_places_across_and_zero_in_the_middle():
    figure = patching(FOUND, ["a", "cat", "sat", "x"], ["a", "dog"], "end")
    cells, layout, meta = figure.data[0], figure.layout, figure.layout.meta
    np.testing.assert_array_equal(cells.z, CHANGE)
    assert (cells.zmin, cells.zmax, meta["limit"]) == (-3, 3, 3)
    assert meta["row_labels"] == ["layer 0", "layer 1"]
    assert meta["column_labels"] == ["a", "cat ← dog", "sat ← –"]  # as many as the map has
    assert layout.yaxis.range[0] > layout.yaxis.range[1]  # layer 0 on top
    assert "cat ← dog" in cells.hovertext[1][1]
    assert "ln p is -4.00 here and -0.50 in the other run" in layout.title.subtitle.text


def test_a_variant_is_as_long_and_differs_in_one_word(tiny_model):
    for text in ("My mom ran. My mom sat.", "A black bird", "Tom ran. Tom sat."):
        found = variant(tiny_model, text)
        assert found is not None
        assert found != text
        assert len(tiny_model.prepare(text).ids) == len(tiny_model.prepare(found).ids)
    assert len(tiny_model.prepare("fox").ids) != len(tiny_model.prepare("bear").ids)
    for text in ("Once upon a time", "concatenate", "fox"):  # no part of a word, nor longer
        assert variant(tiny_model, text) is None


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_a_translators_map_is_of_the_token_whose_probability_falls_most(experiments, stack):
    model = experiments.model("tiny-translator")
    run = experiments.generate("tiny-translator", TEXT, max_new_tokens=5)
    there = model.prepare(OTHER).source

    def drop(place: int) -> float:
        results = []
        for source in (run.source_ids, there):
            with torch.inference_mode():
                logits = model.network(torch.tensor([source]), torch.tensor([run.ids[:place]]))
            results.append(float(logits[0, -1].log_softmax(-1)[run.ids[place]]))
        return results[0] - results[1]

    data = {"run": experiments.store.put(run), "other": OTHER, "stack": stack}
    answer = asking(experiments, "patching")(data)
    assert answer["position"] == max(range(1, len(run.ids)), key=drop)
    meta = json.loads(answer["figure"])["layout"]["meta"]
    if stack == "encoder":
        labels = model.tokenizer.labels(there)
        n = min(len(run.source_labels), len(labels))
        assert meta["column_labels"] == paired_labels(run.source_labels, labels)[:n]
    else:
        assert meta["column_labels"] == list(run.labels[: answer["position"]])
