"""A run that this server does not keep, made again from what the page knows of it.

A run is a pure function of its request: so a server that dropped it to make room, one that was
started anew and any replica beside it give the same answers as the one that made it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from transformer.inference import deadline
from transformer.interventions.descriptions import Intervention, to_dict
from transformer.messages import invalid
from transformer.runs.request import Settings, request_to_dict
from transformer.runs.run import Batch, Run
from transformer.ui.fair_scheduler import Busy
from transformer.ui.limits import MAX_SECONDS
from transformer.ui.service import Service
from transformer.ui.sessions import asker, current_session
from transformer.ui.store import RunExpired

MOST = 3  # runs and batches that one question is about
ID = re.compile(r"[\w-]{22}", flags=re.ASCII)  # as the store makes them


def request_of_run(run: Run) -> dict[str, Any]:
    """What makes it again, as plain values: its model, its text, and its settings or, of a text
    that was only read, its interventions."""
    request = run.reproducing_request
    settings = request_to_dict(request, defaults=False) | {"max_new_tokens": request.max_new_tokens}
    made = {"model": run.model, "text": settings.pop("text")}
    if run.stopped == "read":
        return made | {"interventions": settings.get("interventions", [])}
    return made | {"settings": settings}


def request_of_batch(batch: Batch, interventions: Sequence[Intervention] = ()) -> dict[str, Any]:
    """The same of a batch, which was read so altered."""
    altered = [to_dict(one) for one in interventions]
    return {"model": batch.model, "texts": list(batch.texts), "interventions": altered}


class Regenerator:
    """Makes what questions are about and the store does not have; each run once, whoever asks."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._guard = threading.Lock()
        self._under_way: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    def make(self, made: Any) -> None:
        """made: id -> request_of_run or request_of_batch. Raises ValueError for anything else, and
        if the client has left; RunExpired where too many are being made."""
        if not isinstance(made, Mapping) or len(made) > MOST:
            raise invalid("made must be an object of at most {most} runs", most=MOST)
        for key, again in made.items():
            if not isinstance(key, str) or not ID.fullmatch(key) or not isinstance(again, Mapping):
                raise invalid("made must name each run by its id, and say how it was made")
            if self._service.store.has(key):
                continue
            try:
                self._make_once(key, again)
            except Busy as busy:  # the page asks again
                raise RunExpired(str(busy)) from None

    def _make_once(self, key: str, again: Mapping[str, Any]) -> None:
        with self._guard:
            one = self._under_way.setdefault(key, threading.Lock())
        with one:
            if self._service.store.has(key):
                return
            with (
                self._service.shares.taken(
                    "model", asker(), lambda: not deadline.is_over()
                ) as place,
                deadline.renewed(MAX_SECONDS, place.step_aside),
            ):
                item = self._made(again)
                deadline.check()  # a part of a run is another run
            self._service.store.put(item, current_session.get(), key)

    def _made(self, again: Mapping[str, Any]) -> Run | Batch:
        model: Any = again.get("model")
        text: Any = again.get("text")
        altered = again.get("interventions") or ()
        if "texts" in again:
            return self._service.batch(model, again["texts"], altered)
        if "settings" not in again:
            return self._service.read(model, text, altered)
        settings, allowed = again["settings"], sorted(Settings.__annotations__)
        if not isinstance(settings, Mapping) or not settings.keys() <= set(allowed):
            raise invalid("settings must be an object of {allowed}", allowed=allowed)
        return self._service.generate(model, text, **settings)
