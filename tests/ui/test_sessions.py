"""A request ends when its time is up, when it is stopped, and when its visitor leaves."""

import pytest

from transformer import Model
from transformer.ui import handlers, sessions
from transformer.ui.service import Service
from transformer.ui.sessions import Sessions


def test_the_page_says_that_the_time_was_up(
    tiny_model: Model, tiny_encoder_decoder: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions.Sessions.request.__wrapped__, "__defaults__", (None, 0.0))
    service, asked = Service([tiny_model, tiny_encoder_decoder]), {"max_new_tokens": 12}
    for model, settings in ((tiny_model, asked), (tiny_encoder_decoder, asked | {"beams": 3})):
        *_, last = handlers.generate(service, "visitor", model.name, "The fox", settings)
        facts, status, running = last
        assert facts is not None
        assert (facts["stopped"], facts["state"], running) == ("time", "done", False)
        one_step = model.generate("The fox", **settings | {"max_new_tokens": 1})
        assert facts["labels"] == list(one_step.labels)  # of a search, the hypotheses so far
        assert "It reached the 20 s that one request may take." in status["text"]


def test_leaving_or_stopping_ends_only_the_visitors_own_requests() -> None:
    told: list[str] = []
    here = Sessions(told.append)
    for end in (here.leave, here.stop):
        with here.request("a") as mine, here.request("b") as other:
            end("a")
            assert (mine.is_over(), other.is_over()) == (True, False)
    assert told == ["a"]
    here.leave("unknown")
    with here.request("") as patience:  # a tool's call, of no session
        here.leave("")
        assert not patience.is_over()
    assert here._flags == {}  # no name stays of who has left
