"""The bytes that visits leave on the server are bounded, whatever session names they give."""

import gc
import time
from typing import Any

import pytest
from kit.client import visiting
from kit.serving import tiny_model

from transformer import Ablate, Model
from transformer.interventions.descriptions import Break
from transformer.model.trace import Trace
from transformer.runs.compact_trace import bytes_of
from transformer.server.http import limits
from transformer.server.kept import service as services
from transformer.server.kept.page_runs import example_facts
from transformer.server.kept.service import Service
from transformer.server.kept.store import MODELS, RECORDS, Limits
from transformer.server.learn.learning import adopt

pytestmark = pytest.mark.slow

TEXT = "The fox met a bird. Tom ran home to the dog"


@pytest.fixture(scope="module")
def model() -> Model:
    return tiny_model()


@pytest.fixture
def service(model: Model) -> Service:
    return Service([model])


def alive(kind: type) -> int:
    """How many objects of a kind there are in this process."""
    gc.collect()
    return sum(isinstance(one, kind) for one in gc.get_objects())


def adopted(service: Service, visitor: str) -> str:
    """The name of a recorded network that has become this visitor's model."""
    with visiting(visitor):
        return str(adopt(service, {"id": "recorded-copy", "at": None})["model"])


def test_models_of_ever_new_sessions_stay_within_their_share(
    service: Service,
) -> None:
    service.budget.kinds[MODELS] = Limits(most_bytes=1_500_000, most_own=4)
    before = alive(Model)
    names = [adopted(service, f"visitor {place}") for place in range(40)]
    held = service.budget.held()[MODELS]
    assert alive(Model) - before == held["count"] < 20
    assert 1_000_000 < held["bytes"] <= 1_500_000
    newest = service.model(names[-1], "visitor 39")
    assert (newest.name, newest.most_recorded_bytes) == (names[-1], limits.MAX_RECORDED_BYTES)
    with pytest.raises(ValueError, match="train one anew in the tab Learn"):
        service.model(names[0], "visitor 0")


def test_an_idle_visits_runs_are_evicted_before_its_model(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, now = adopted(service, "me"), time.monotonic()
    with visiting("me"):
        first, _ = example_facts(service, name)
    assert service.store.has(first["run"])
    monkeypatch.setattr(time, "monotonic", lambda: now + limits.SILENT_S + 1)
    service.sweep()
    assert {kind for kind, held in service.budget.held().items() if held["count"]} == {
        MODELS,
        RECORDS,
    }
    with visiting("me"):
        again, _ = example_facts(service, name)
    assert again["run"] != first["run"]
    assert again["labels"] == first["labels"]
    monkeypatch.setattr(time, "monotonic", lambda: now + limits.SILENT_S + limits.MAX_AGE_S + 2)
    service.sweep()
    with pytest.raises(ValueError, match="train one anew in the tab Learn"):
        service.model(name, "me")


def test_an_altered_batch_uses_no_more_memory_or_is_refused(
    service: Service, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(asked: Service, *altered: Any) -> int:
        """Bytes of the attention."""
        return bytes_of(Trace(records=asked.batch("tiny", [TEXT] * 8, altered).trace.records))

    assert read(service, Ablate("decoder", 0, [1])) == read(service)
    monkeypatch.setattr(services, "MAX_RECORDED_BYTES", read(service))
    limited = Service([model])
    read(limited)
    with pytest.raises(ValueError, match="choose shorter or fewer texts, or make fewer changes"):
        read(limited, Break("hard-attention"))
