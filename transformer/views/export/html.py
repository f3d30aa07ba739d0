"""Runs as one HTML file that needs nothing else: numbers, plotly.js and our scripts are inside.

Of each head the file holds its queries and keys (half the size of the scores); the page works out
scores and weights from them, as the network did. A head whose recorded scores or weights differ
from that, after an intervention, is stored as recorded. The modules of the server's page draw
everything. Token text is in the compressed data only and is shown through `textContent` and as
escaped Plotly labels. All words are said in the page, in the language that its reader chooses.
"""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch

from transformer.interventions.descriptions import to_dict
from transformer.messages import (
    capital,
    language,
    language_names,
    languages,
    mark,
    said_later,
    say,
    say_list,
    say_n,
)
from transformer.messages.sources import of_script
from transformer.messages.templates import json_in_script, script_catalogue, translate_page
from transformer.model.functional import masked_softmax
from transformer.model.positions import POSITIONS
from transformer.model.trace import AttentionRecord
from transformer.network_words import attention_name, depth_in_words, stack_name
from transformer.runs.batch import Batch
from transformer.runs.external_attention import GIVEN
from transformer.runs.head_data import (
    HeadView,
    array,
    head_view,
    records_of,
    sites_of,
    weights_read,
)
from transformer.runs.request import method_words
from transformer.runs.run import Run
from transformer.runs.steps import GenerationStep
from transformer.views.attention.head_metrics import answer_metrics
from transformer.views.attention.heatmap import mask_answer
from transformer.views.drawing.style import dark_colours
from transformer.views.export.bundle import bundle, read_module, read_style
from transformer.views.export.gallery import gallery
from transformer.views.export.packing import Pack, packed, rounded
from transformer.views.frames import attention_frames
from transformer.views.masks.masks import mask_heatmap
from transformer.views.parameters import SELECTION, Choice, Int
from transformer.views.positions import encodings
from transformer.views.registry import PICTURES, VIEWS

TEMPLATE = "views/export/static/page.html"
OPEN, SCRIPT = "views/export/static/open.js", "views/export/static/page.js"
STYLES = (
    "web/theme.css",
    "server/static/pictures.css",
    "server/static/tokens.css",
    "views/attention/attention.css",
    "views/export/static/page.css",
)
PLOTLY = "server/static/vendor/plotly-cartesian.min.js"
_WORKED_OUT = ("similarity", "inputs")  # views whose last trace's cells follow from other numbers
CLOSE = 2e-5  # of the largest score: worked-out scores this near are taken for the recorded ones


def write(item: Run | Batch, path: Path) -> None:
    """Save the page. Raises OSError if the file cannot be written."""
    path.write_text(page(item), encoding="utf-8")


def page(item: Run | Batch, site: str = "", head: int = 0) -> str:
    """The whole page as text; of a batch it shows the text that is chosen.

    site, head: the head that it opens on; by default the first. Raises ValueError for a site or
    head that the run has not.
    """
    pack, runs = Pack(), [item] if isinstance(item, Run) else list(item)
    with said_later() as sentences:
        texts = [content(run, pack) | {"typed": run.request.text} for run in runs]
        frames = attention_frames(runs[0])
    for row, (run, text) in enumerate(zip(runs, texts, strict=True)):
        text["run"]["run"] = str(row)
        if site:
            at = head_view(run, site, head).site
            text["run"]["opening"] = {"site": str(at), "head": str(head)}
    return _filled(
        pack.text({"model": item.model, "texts": texts, "frames": frames}), sentences, len(texts)
    )


def _filled(data: str, sentences: set[str], n_texts: int) -> str:
    """The template with its parts. data: a pack's text, which says these sentences."""
    several = [Int(name="row", default=0, most=n_texts - 1, use="place")] if n_texts > 1 else []
    names = {name: language_names(name)[1] for name in languages()}
    spoken = Choice(name="lang", title=mark("Language"), default=language(), options=names)
    selection = {one.name: one.schema() for one in (spoken, *several, *SELECTION)}
    view = VIEWS["attention"].schema()
    schema = json_in_script({"views": [view], "page": selection, "dark": dark_colours()})
    said = {json.loads(text) for text in re.findall(r'"(?:[^"\\]|\\.)*"', schema)}
    parts = {
        "style": "\n".join(map(read_style, STYLES)),
        "schema": schema,
        "data": data,
        "plotly": _plotly(),
        "script": packed(_script(sentences | said).encode()),
        "open": bundle(OPEN),
    }
    # Split once, so that nothing inside a part is taken for a marker.
    template = translate_page(read_module(TEMPLATE), language())
    pieces = re.split(r"/\*(style|schema|data|plotly|script|open)\*/", template)
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


_SAID = """\
import { speak } from "./messages.js";
const languages = /*languages*/;
speak(languages[new URLSearchParams(location.hash.slice(1)).get("lang")] ?? languages["/*saved*/"]);
"""


def _script(sentences: set[str]) -> str:
    """The page's script, with its own and these sentences in every language."""
    said, text = _bundled()
    known = {name: script_catalogue(name, said | sentences) for name in languages()}
    text = text.replace("/*saved*/", language(), 1)
    return text.replace("/*languages*/", json_in_script(known), 1)


@cache
def _bundled() -> tuple[set[str], str]:
    """The script without its languages, and the sentences that it says."""
    text = bundle(SCRIPT, said=_SAID)
    return {one if isinstance(one, str) else one[0] for one in of_script(text)}, text


@cache
def _plotly() -> str:
    return packed(read_module(PLOTLY).encode(), level=9)


def content(run: Run, pack: Pack) -> dict[str, Any]:
    """All that the page shows, as plain JSON values; arrays go to the pack."""
    return {
        "summary": summary(run),
        "positions": _position_figures(run, pack),  # first: later arrays are parts of these
        "run": {  # of what the page's scripts know of a run, what they need without a server
            "state": "done",
            "stack": "encoder" if run.config.family == "encoder" else "decoder",
            "trace_start": run.trace_start,
            "n_prompt": run.n_prompt,
            "labels": list(run.labels),
            "source_labels": list(run.source_labels),
            **run.special_positions(),
            "probabilities": [step.chosen.probability for step in run.steps],
            "n_heads": run.config.n_heads,
            "heads_per_key": run.config.heads_per_key,
            "interventions": [{"is": to_dict(one)} for one in run.request.interventions],
            "kinds": [_attention(run, stack, kind, pack) for stack, kind in run.trace.kinds()],
        },
        "steps": [_step(run, step) for step in run.steps],
        "masks": _mask_figures(run, pack),
        "more": _more_figures(run, pack),
    }


def summary(run: Run) -> str:
    """The model's shape and the run's settings in one line."""
    config = run.config
    layers = depth_in_words(config.n_layers, config.output_n_layers)
    heads = say_n("{n} head", "{n} heads", config.n_heads)
    if run.stopped == GIVEN:
        return say("{layers} × {heads} of attention made elsewhere", layers=layers, heads=heads)
    parts = [
        say(
            "{family}, {layers} × {heads} × {d_model}",
            family=stack_name(config.family),
            layers=layers,
            heads=heads,
            d_model=config.d_model,
        )
    ]
    if run.steps:
        parts.append(
            say_n(
                "{request}; seed {seed}; {n} token generated",
                "{request}; seed {seed}; {n} tokens generated",
                len(run.steps),
                request=method_words(run.request),
                seed=run.request.seed,
            )
        )
    if run.request.interventions:
        changes = say_list(map(str, run.request.interventions))
        parts.append(say("altered: {interventions}", interventions=changes))
    return say_list(parts, ";")


def _attention(run: Run, stack: str, kind: str, pack: Pack) -> dict[str, Any]:
    records = records_of(run, stack, kind)
    masks = [mask_answer(record.allowed[0].cpu().numpy()) for record in records]
    return {
        "stack": stack,
        "kind": kind,
        "n_layers": len(records),
        "shape": masks[0]["shape"],
        "masks": [pack.array(mask["allowed"]) for mask in masks],
        "metrics": answer_metrics(run, stack=stack, kind=kind),
        "layers": [heads_of(_read(run, record), pack) for record in records],
    }


def _read(run: Run, record: AttentionRecord) -> AttentionRecord:
    """The record with the weights of switched-off heads set to 0."""
    return dataclasses.replace(record, pattern=weights_read(run, record.site, record.pattern))


def heads_of(record: AttentionRecord, pack: Pack) -> dict[str, Any]:
    """One layer's heads, in as few numbers as give all of them back.

    queries and keys (H, T, D) where the scores are their products, with dimension 0 of the values
    (H, Tk) for the arithmetic of a row; else scores (H, Tq, Tk). And weights (H, Tq, Tk) where they
    are not the masked softmax of the scores.
    """
    scores, weights = array(record.scores[0]), array(record.pattern[0])
    softmax = array(masked_softmax(record.scores[0].cpu(), record.allowed[0].cpu()))
    found = {"scores": scores}
    if record.q is not None and record.k is not None:
        q, k = array(record.q[0]), array(record.k[0])
        largest = max(1.0, float(np.abs(scores).max()))
        if np.abs(_products(q, k) - scores).max() <= CLOSE * largest:
            rough = rounded(q), rounded(k)  # if that changes no weight
            products = torch.from_numpy(_products(*rough))
            again = array(masked_softmax(products, record.allowed[0].cpu()))
            q, k = rough if np.abs(again - softmax).max() <= CLOSE / 2 else (q, k)
            found = {"queries": q, "keys": k}
            if record.v is not None:
                found["values"] = rounded(array(record.v[0])[..., 0])
    if np.abs(softmax - weights).max() > CLOSE:
        found["weights"] = weights
    return {name: pack.array(values) for name, values in found.items()}


def _products(q: Any, k: Any) -> Any:
    return q @ k.swapaxes(1, 2) / np.sqrt(np.float32(q.shape[-1]))


def _step(run: Run, step: GenerationStep) -> dict[str, Any]:
    return {
        "token": step.token,
        "window": list(step.window),
        "n_kept": step.n_kept,
        "candidates": [
            {
                "id": candidate.id,
                "label": run.candidate_labels[candidate.id],
                "probability": candidate.probability,
                "sampling_probability": candidate.sampling_probability,
            }
            for candidate in step.candidates
        ],
    }


def _mask_figures(run: Run, pack: Pack) -> list[dict[str, Any]]:
    result = []
    for stack, kind in run.trace.kinds():
        views = [head_view(run, site, 0) for site in sites_of(run, stack, kind)]
        alike: dict[bytes, list[HeadView]] = {}
        for view in views:
            alike.setdefault(view.allowed.tobytes(), []).append(view)
        for view, *others in alike.values():
            title = say("Mask: {attention}", attention=attention_name(stack, kind))
            if len(alike) > 1:
                listed = say_list(str(one.site.layer) for one in (view, *others))
                n_alike = 1 + len(others)
                layers = say_n("layer {listed}", "layers {listed}", n_alike, listed=listed)
                title = say_list([title, layers])
            figure = mask_heatmap(view.query_labels, view.key_labels, view.allowed, title)
            result.append(_drawn(figure, pack, title))
    return result


def _position_figures(run: Run, pack: Pack) -> list[dict[str, Any]]:
    result = []
    added = run.position_matrices if POSITIONS[run.config.positions].adds else {}
    for stack, matrix in added.items():
        size = matrix.shape[1]
        shown = sorted({0, 1, size // 8, size // 4, size // 2, size - 1})
        matrix_title, curves_title = (
            _titled(name, stack_name(stack)) for name in ("positions", "curves")
        )
        result.append(_drawn(encodings.position_matrix(run, stack), pack, matrix_title))
        result.append(_drawn(encodings.position_curves(run, shown, stack), pack, curves_title))
    return result


def _more_figures(run: Run, pack: Pack) -> list[dict[str, Any]]:
    result = []
    for view, figure, part in gallery(run):
        if view in _WORKED_OUT:  # in the page
            figure.data[-1].z = None
        title = _titled(view, part)
        one = _drawn(figure, pack, title) | {"view": view}
        if view == "similarity":
            stack = figure.layout.meta["stack"]
            one["data"][0]["z"] = {
                "cosine": pack.array(rounded(array(run.position_matrices[stack])))
            }
        if view == "inputs":
            token, position, both = (trace for trace in one["data"])
            both["z"] = {"sum": [token["z"], position["z"]]}
        result.append(one)
    return result


def _titled(view: str, part: str) -> str:
    title = capital(say(PICTURES[view].title))
    return say("{title}: {part}", title=title, part=part) if part else title


def _drawn(figure: go.Figure, pack: Pack, title: str) -> dict[str, Any]:
    """A figure as the page draws it, below this title."""
    plain: dict[str, Any] = json.loads(figure.to_json())
    plain["layout"].pop("title", None)
    return {
        "title": title,
        "data": pack.plain(plain["data"]),
        "layout": pack.plain(plain["layout"]),
    }
