"""What Enter does for each family of models, and which texts the page may replace."""

from __future__ import annotations

import pytest
from links import CONTROLS
from serving import tiny_translator

from transformer import Model
from transformer.ui import handlers
from transformer.ui.page_request import settings_of
from transformer.ui.service import Service


@pytest.fixture(scope="module")
def service(tiny_model: Model, tiny_encoder: Model) -> Service:
    return Service([tiny_model, tiny_encoder, tiny_translator()])


def test_an_encoder_reads_what_is_entered(service: Service) -> None:
    (only,) = handlers.generate(service, "visitor", "tiny-encoder", "The fox", {})
    facts, status, running = only
    assert facts is not None
    assert facts["stack"] == "encoder"
    assert facts["labels"] == list(service.model("tiny-encoder").trace("The fox").labels)
    assert (status["kind"], running) == ("done", False)


def test_a_search_shows_its_source_first_and_its_best_text_at_the_end(service: Service) -> None:
    settings = settings_of(CONTROLS | {"method": "beam", "beams": 3, "penalty": 1.5, "length": 8})
    asked = handlers.generate(service, "visitor", "tiny-translator", "The fox", settings)
    started, finished = asked
    model = service.model("tiny-translator")
    run = model.generate("The fox", beams=3, length_penalty=1.5, max_new_tokens=8)
    assert started[0] is not None
    assert started[0]["source_labels"] == list(run.source_labels)
    assert finished[0] is not None
    assert finished[0]["labels"] == list(run.labels)
    assert run.search is not None
    assert [h["text"] for h in finished[0]["hypotheses"]] == list(run.search.texts)
