"""Passages of many texts: where a head does most what it is named for, and where a neuron fires
most."""

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
from transformer.views.journey.feed_forward import LAYER
from transformer.views.parameters import ONE_HEAD, SITE, STACK, IntList

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


def answer_neuron_passages(
    models: ModelQueries,
    model: str,
    *,
    stack: Annotated[str, STACK],
    layer: Annotated[int, LAYER] = 0,
    neurons: Annotated[list[int], IntList(title="Neurons", default=(), use="request")],
) -> Answer:
    """The sentence in which each of these neurons of a feed-forward is most active, by index; None
    for one that never is. n_sentences: of how many; 0 where they were not recorded."""
    recorded = models.model(model).neurons or {"neurons": {}}
    of_layer = recorded["neurons"].get(f"{stack}.{layer}")
    if of_layer is None:
        return {"passages": {}, "n_sentences": 0}
    known = [index for index in neurons if 0 <= index < len(of_layer["sentence"])]
    return {
        "passages": {str(at): _passage(recorded["sentences"], of_layer, at) for at in known},
        "n_sentences": recorded["n_sentences"],
    }


def _passage(
    sentences: list[list[str]], of_layer: dict[str, list[Any]], index: int
) -> dict[str, Any] | None:
    """text: to be read again. before, token, after: it, or its translation, around the token."""
    number, start = of_layer["sentence"][index], of_layer["start"][index]
    if number < 0:
        return None
    text, shown = sentences[number][0], sentences[number][-1]
    end = start + of_layer["length"][index]
    parts = {"before": shown[:start], "token": shown[start:end], "after": shown[end:]}
    return {"text": text, **parts, "activation": of_layer["activation"][index]}
