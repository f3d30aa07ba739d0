"""Passages of the texts that a model's heads were measured over, in which a head does most what it
is named for."""

from __future__ import annotations

from typing import Annotated

from transformer.analysis.head_measures import ALL
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import say
from transformer.model.sites import Site
from transformer.runs.run import Run
from transformer.views.attention.head_metrics import metrics_of
from transformer.views.declaration import Answer
from transformer.views.parameters import ONE_HEAD, SITE

N_PASSAGES = 3


def answer_passages(
    models: ModelQueries,
    item: Run,
    *,
    site: Annotated[str, SITE],
    head: Annotated[int, ONE_HEAD] = 0,
) -> Answer:
    """The texts in which the head's metric, the one that it is named after in this run, is largest;
    none for a head without a name, and where the model's heads were not measured."""
    at = Site.parse(site)
    named = {
        (scored.layer, scored.head): scored for scored in metrics_of(item, at.stack, at.kind).heads
    }
    metric = named[at.layer, head].named_after if (at.layer, head) in named else None
    measured = models.model(item.model).heads or {"heads": (), "texts": {}, "n_texts": 0}
    place = {"kind": f"{at.stack}.{at.kind}", "layer": at.layer, "head": head}
    dossier = next((entry for entry in measured["heads"] if place.items() <= entry.items()), None)
    numbers = dossier["metrics"].get(metric) if dossier is not None else None
    if metric is None or numbers is None:
        return {"passages": [], "label": None, "title": "", "n_texts": measured["n_texts"]}
    label, texts = ALL[metric].label, measured["texts"]
    return {
        "passages": [
            {"number": number, "text": texts[str(text)]}
            for number, text in numbers["strongest"][:N_PASSAGES]
            if str(text) in texts
        ],
        "label": label and say(label),
        "title": say(ALL[metric].title),
        "n_texts": measured["n_texts"],
    }
