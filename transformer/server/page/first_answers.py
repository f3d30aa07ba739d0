"""What the page asks about the run that it opens with, answered in the page itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson

from transformer.model.sites import sites_of
from transformer.server.kept.page_runs import first_head
from transformer.server.kept.service import Service
from transformer.server.page.resources import answer, written
from transformer.views.declaration import Answer
from transformer.views.registry import PICTURES

MAX_AT_START = 5e10  # operations: about 0.3 s of two cores


def first_answers(service: Service, run: Mapping[str, Any], *, most: float = math.inf) -> list[Any]:
    """[name, question, answer] each, to be written as JSON.

    run: an example's facts. most: operations; for a run that would take more, as with each head
    switched off in turn, only the small pictures of its heads.
    """
    answers: list[Any] = []

    def ask(name: str, data: dict[str, Any]) -> Answer:
        answered = answer(service, PICTURES[name], data)
        answers.append([name, data, orjson.Fragment(written(answered)[0])])
        return answered

    of, opening = {"run": run["run"]}, run["opening"]
    site, head = first_head(run)
    kind = of | {"stack": site.stack, "kind": site.kind}
    ask("atlas", kind)
    model = service.model(run["model"])
    n_variants = len(sites_of(model.config)) * model.config.n_heads
    n_read = len(run["labels"]) + len(run["source_labels"])
    if run["head"] != "tokens" or 2.0 * model.n_parameters * n_variants * n_read > most:
        return answers
    ask("metrics", kind)
    read = opening.get("read")  # which it names, or leaves to the answer
    place = of | {"position": run["last_read"] if read is None else read}
    ask("journey", of if read is None else place)
    where = {"site": str(site), "head": int(head)}
    ask("heatmap", of | where | {"numbers": True})
    ask("without_head", place | where)
    if run["stack"] == "decoder":
        texts = [ask("continuation", data)["labels"] for data in (place, place | where)]
        if texts[0] and texts[0][0] != texts[1][0]:
            ask("deciding", place)
    return answers
