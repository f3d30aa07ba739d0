"""Passages of the texts that a model's heads were measured over, in which a head does most what it
is named for."""

from __future__ import annotations

from typing import Annotated, Any

from transformer.analysis.head_measures import ALL
from transformer.analysis.model_queries import ModelQueries
from transformer.inference.model import Model
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
    measured = passages_of(models.model(item.model))
    passages = measured["heads"].get(f"{at} {head}", {}).get(metric)
    if metric is None or passages is None:
        return {"passages": [], "label": None, "title": "", "n_texts": measured["n_texts"]}
    label = ALL[metric].label
    return {
        "passages": [
            {"number": number, "text": measured["texts"][text]} for number, text in passages
        ],
        "label": label and say(label),
        "title": say(ALL[metric].title),
        "n_texts": measured["n_texts"],
    }


def passages_of(model: Model) -> dict[str, Any]:
    """Of the texts that a model's heads were measured over: "heads", by site and head, and there by
    metric, [number, text's name] of the passages where it is largest; "texts" by name; "n_texts".
    """
    measured = model.heads or {"heads": (), "texts": {}, "n_texts": 0}
    texts = measured["texts"]
    heads = {
        "{0}.{layer}.{1} {head}".format(*head["kind"].split("."), **head): {
            name: [
                [number, str(text)]
                for number, text in metric["strongest"][:N_PASSAGES]
                if str(text) in texts
            ]
            for name, metric in head["metrics"].items()
            if ALL[name].label
        }
        for head in measured["heads"]
    }
    used = {
        text for metrics in heads.values() for passages in metrics.values() for _, text in passages
    }
    return {
        "heads": heads,
        "texts": {name: text for name, text in texts.items() if name in used},
        "n_texts": measured["n_texts"],
    }
