"""What Enter does for each family of models, and which texts the page may replace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from links import CONTROLS
from serving import tiny_translator

from transformer import Model
from transformer.messages import catalogues, speaking
from transformer.runs.request import Request
from transformer.ui import handlers
from transformer.ui.page_data import how_chosen
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


@pytest.fixture
def turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A language, "pl", that puts names last and writes another colon."""
    sentences = {
        "{name} must be a whole number from {lowest} to {highest}; got {got}":
            "{lowest}–{highest}, {got} : {name}",
        "Top-k": "ile K",
        "greedy": "zachłannie",
        "greedy: the likeliest is taken": "zachłannie：najlepszy",
    }  # fmt: skip
    lines = "".join(f'\nmsgid "{one}"\nmsgstr "{other}"\n' for one, other in sentences.items())
    po = tmp_path / "pl.po"
    po.write_text(f'msgid ""\nmsgstr "Plural-Forms: nplurals=1; plural=0;\\n"\n{lines}')
    monkeypatch.setattr(catalogues, "FOLDER", tmp_path)
    catalogues.languages.cache_clear(), catalogues.catalogue.cache_clear()
    yield
    catalogues.languages.cache_clear(), catalogues.catalogue.cache_clear()


@pytest.mark.usefixtures("turned")
def test_no_sentence_is_cut_where_english_would_be(service: Service) -> None:
    with speaking("pl"), pytest.raises(ValueError, match="0 : top_k") as refused:
        Request(text="a", top_k=0, temperature=1.0)
    with speaking("pl"):
        assert handlers.problem(refused.value)["text"].endswith("0 : ile K")
        run = service.model("tiny").generate("The fox", max_new_tokens=1)
        assert how_chosen(run) == "zachłannie"
    assert how_chosen(run) == "greedy"
    assert handlers.problem(ValueError("seed of a flower"))["text"] == "seed of a flower"
