"""A run as one HTML file that needs nothing else: numbers and drawing script are inside.

Of each head the file holds its queries and keys (exact float32, half the size of the scores); the
page works out scores and weights from them, as the network did. A head whose recorded scores or
weights are something else, because somebody intervened, travels as it was recorded. Figures are
Plotly's, drawn by a small script of our own: Plotly itself would be twice the rest. Token text
stands in the compressed data only and is shown through `textContent` and canvas text.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer.figures import VIEWS, attention, masks, positions, style
from transformer.figures.darkness import in_the_dark
from transformer.figures.data import array, head_view, records_of
from transformer.figures.gallery import gallery
from transformer.figures.packing import Pack
from transformer.figures.prediction import how
from transformer.inference.run import Run
from transformer.model.trace import AttentionRecord

_PARTS = Path(__file__).parent / "export"
SCRIPTS = ("pack", "numbers", "ink", "frame", "marks", "around", "draw", "rows", "gallery", "page")
CLOSE = 2e-5  # of the largest score: worked-out scores this near are taken for the recorded ones
_LEFT_OUT = ("template", "title", "modebar", "hoverlabel", "font", "meta")  # of a figure's layout


def write(run: Run, path: Path) -> None:
    """Save the page. Raises OSError if the file cannot be written."""
    path.write_text(page(run), encoding="utf-8")


def page(run: Run) -> str:
    """The whole page as text."""
    pack = Pack()
    parts = {
        "style": (_PARTS / "page.css").read_text(encoding="utf-8"),
        "data": pack.text(content(run, pack)),
        "script": "\n".join(
            (_PARTS / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS
        ),
    }
    template = (_PARTS / "page.html").read_text(encoding="utf-8")
    # Split once, so that nothing inside a part is taken for a marker.
    pieces = re.split(r"/\*(style|data|script)\*/", template)
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def content(run: Run, pack: Pack) -> dict[str, Any]:
    """All that the page shows, as plain JSON values; arrays go to the pack."""
    return {
        "model": run.model,
        "summary": summary(run),
        "text": run.text,
        "tokens": _tokens(run),
        "source": list(run.source_labels),
        "trace_start": run.trace_start,
        "positions": _position_figures(run, pack),  # first: later arrays are parts of these
        "attention": [_attention(run, stack, kind, pack) for stack, kind in run.trace.kinds()],
        "styles": _styles(),
        "colours": in_the_dark(),
        "steps": [_step(run, index) for index in range(len(run.steps))],
        "masks": _mask_figures(run, pack),
        "more": _more_figures(run, pack),
    }


def summary(run: Run) -> str:
    """The model's shape and the run's settings in one line."""
    config = run.config
    changed = f"; altered: {', '.join(map(str, run.request.interventions))}"
    return (
        f"{config.family}, {config.n_layers} layers × {config.n_heads} heads × {config.d_model}; "
        f"{how(run.request)}; seed {run.request.seed}; {len(run.steps)} tokens generated"
        + (changed if run.request.interventions else "")
    )


def _tokens(run: Run) -> list[dict[str, Any]]:
    given = [{"label": text, "step": None} for text in run.labels[: run.n_prompt]]
    made = [
        {"label": text, "step": step.index, "probability": step.chosen.probability}
        for text, step in zip(run.labels[run.n_prompt :], run.steps, strict=True)
    ]
    return given + made


def _attention(run: Run, stack: str, kind: str, pack: Pack) -> dict[str, Any]:
    records = records_of(run, stack, kind)
    view = head_view(run, records[0].site, 0)
    figure = attention.attention_heatmap(run, records[0].site, 0, hover=False)
    return {
        "stack": stack,
        "kind": kind,
        "query_labels": list(view.query_labels),
        "key_labels": list(view.key_labels),
        "allowed": pack.array(view.allowed.astype(np.uint8)),
        "n_heads": run.config.n_heads,
        "layers": [heads_of(record, pack) for record in records],
        "figure": {"layout": _drawn(figure.update_traces(z=None), pack)["layout"]},
    }


def heads_of(record: AttentionRecord, pack: Pack) -> dict[str, Any]:
    """One layer's heads, in as few numbers as give all of them back.

    queries and keys (H, T, D) where the scores are their products, else scores (H, Tq, Tk);
    and weights (H, Tq, Tk) where they are not the masked softmax of the scores.
    """
    scores, weights = array(record.scores[0]), array(record.weights[0])
    found = {}
    if record.queries is not None and record.keys is not None:
        q, k = array(record.queries[0]), array(record.keys[0])
        products = q @ k.swapaxes(1, 2) / np.sqrt(np.float32(q.shape[-1]))
        if np.abs(products - scores).max() <= CLOSE * max(1.0, float(np.abs(scores).max())):
            found = {"queries": pack.array(q), "keys": pack.array(k)}
    found = found or {"scores": pack.array(scores)}
    if np.abs(_softmax(scores, record.allowed[0].cpu().numpy()) - weights).max() > CLOSE:
        found["weights"] = pack.array(weights)
    return found


def _softmax(scores: Any, allowed: Any) -> Any:
    """(H, Tq, Tk) over the allowed keys; a row that may read nothing is uniform."""
    masked = np.where(allowed, scores.astype(np.float64), np.finfo(np.float32).min)
    powers = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _styles() -> dict[str, Any]:
    """How cells are coloured: "score", or a scale of the weights."""
    score = {"colorscale": style.diverging(), "colorbar": style.colorbar("score")}
    return {"score": score} | {scale: attention.weight_colours(scale) for scale in attention.SCALES}


def _step(run: Run, index: int) -> dict[str, Any]:
    step = run.steps[index]
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
        view = head_view(run, records_of(run, stack, kind)[0].site, 0)
        title = f"Mask of the {stack}'s {kind}-attention"
        figure = masks.mask_heatmap(view.query_labels, view.key_labels, view.allowed, title)
        result.append(_drawn(figure, pack))
    return result


def _position_figures(run: Run, pack: Pack) -> list[dict[str, Any]]:
    result = []
    for stack, matrix in run.position_matrices.items():
        size = matrix.shape[1]
        shown = sorted({0, 1, size // 8, size // 4, size // 2, size - 1})
        result.append(_drawn(positions.position_matrix(run, stack), pack))
        result.append(_drawn(positions.position_curves(run, shown, stack), pack))
    return result


def _more_figures(run: Run, pack: Pack) -> list[dict[str, Any]]:
    result = []
    for view, figure in gallery(run):
        if view == "similarity":  # worked out in the page
            figure.data[0].z = None
        one = _drawn(figure, pack) | {"help": VIEWS[view].help}
        one["title"] = one["title"] or VIEWS[view].title
        if view == "similarity":
            stack = figure.layout.meta["stack"]
            one["data"][0]["z"] = {"cosine": pack.array(array(run.position_matrices[stack]))}
        if view == "inputs":
            token, position, both = (trace for trace in one["data"])
            both["z"] = {"sum": [token["z"], position["z"]]}
        result.append(one)
    return result


def _drawn(figure: go.Figure, pack: Pack) -> dict[str, Any]:
    """A figure as the page's script draws it, its title and subtitle as words."""
    plain: dict[str, Any] = json.loads(figure.to_json())
    title = plain["layout"].get("title", {})
    layout = {key: part for key, part in plain["layout"].items() if key not in _LEFT_OUT}
    return {
        "title": title.get("text", ""),
        "subtitle": re.sub(r"<br>", "; ", title.get("subtitle", {}).get("text", "")),
        "data": pack.plain(plain["data"]),
        "layout": pack.plain(layout),
    }
