"""A run as one HTML file that needs nothing else: Plotly, numbers and script are all inside.

The page's data is one JSON text. Per kind of attention it holds the scores (exact float32, little
endian, base64, one text a head) and the mask; the page works out the weights from them by the
softmax, as the network did. Token text stands in the JSON only and is shown through `textContent`.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.offline import get_plotlyjs

from transformer.figures import VIEWS, attention, masks, positions, style, thumbnails
from transformer.figures.data import array, head_view, records_of
from transformer.figures.gallery import gallery
from transformer.figures.prediction import how
from transformer.inference.run import Run

_PARTS = Path(__file__).parent / "export"


def write(run: Run, path: Path) -> None:
    """Save the page. Raises OSError if the file cannot be written."""
    path.write_text(page(run), encoding="utf-8")


def page(run: Run) -> str:
    """The whole page as text."""
    parts = {
        "style": (_PARTS / "page.css").read_text(encoding="utf-8"),
        "plotly": _in_script(get_plotlyjs()),
        "data": safe_json(content(run)),
        "script": (_PARTS / "page.js").read_text(encoding="utf-8"),
    }
    template = (_PARTS / "page.html").read_text(encoding="utf-8")
    # Split once, so that nothing inside a part is taken for a marker.
    pieces = re.split(r"/\*(style|plotly|data|script)\*/", template)
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def safe_json(value: Any) -> str:
    """JSON that may stand in a script element: no <, > or & in it, so no tag can end it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _in_script(code: str) -> str:
    """JavaScript whose strings cannot end the script element that it stands in."""
    return re.sub(r"</(?=script)", r"<\\/", code, flags=re.IGNORECASE)


def content(run: Run) -> dict[str, Any]:
    """All that the page shows, as plain JSON values."""
    return {
        "model": run.model,
        "summary": summary(run),
        "text": run.text,
        "tokens": _tokens(run),
        "source": list(run.source_labels),
        "trace_start": run.trace_start,
        "attention": [_attention(run, stack, kind) for stack, kind in run.trace.kinds()],
        "styles": _styles(run),
        "palette": _base64(thumbnails.palette()),
        "steps": [_step(run, index) for index in range(len(run.steps))],
        "masks": _mask_figures(run),
        "positions": _position_figures(run),
        "more": _more_figures(run),
    }


def summary(run: Run) -> str:
    """The model's shape and the run's settings in one line."""
    config = run.config
    return (
        f"{config.family}, {config.n_layers} layers × {config.n_heads} heads × {config.d_model}; "
        f"{how(run.request)}; seed {run.request.seed}; {len(run.steps)} tokens generated"
    )


def _tokens(run: Run) -> list[dict[str, Any]]:
    given = [{"label": text, "step": None} for text in run.labels[: run.n_prompt]]
    made = [
        {"label": text, "step": step.index, "probability": step.chosen.probability}
        for text, step in zip(run.labels[run.n_prompt :], run.steps, strict=True)
    ]
    return given + made


def _attention(run: Run, stack: str, kind: str) -> dict[str, Any]:
    records = records_of(run, stack, kind)
    view = head_view(run, records[0].site, 0)
    small = thumbnails.atlas(run, stack, kind)
    return {
        "stack": stack,
        "kind": kind,
        "query_labels": list(view.query_labels),
        "key_labels": list(view.key_labels),
        "allowed": _base64(view.allowed.astype(np.uint8)),
        "scores": [[_base64(array(head)) for head in record.scores[0]] for record in records],
        "thumbnails": {
            "shape": list(small.pixels.shape),
            "pixels": _base64(small.pixels),
            "masked": _base64(small.masked),
        },
        "layout": {mode: _layout(run, records[0].site, mode) for mode in ("light", "dark")},
    }


def _layout(run: Run, site: Any, mode: str) -> dict[str, Any]:
    figure = attention.attention_heatmap(run, site, 0, dark=mode == "dark", hover=False)
    return _plain(figure.update_layout(meta=None, title=None))["layout"]


def _styles(run: Run) -> dict[str, Any]:
    """How cells are coloured: by mode, then "score" or a scale of the weights."""
    return {
        mode: {
            "score": {
                "colorscale": style.diverging(mode == "dark"),
                "colorbar": style.colorbar("score"),
            },
            **{scale: attention.weight_colours(scale) for scale in attention.SCALES},
        }
        for mode in ("light", "dark")
    }


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


def _mask_figures(run: Run) -> list[dict[str, Any]]:
    result = []
    for stack, kind in run.trace.kinds():
        view = head_view(run, records_of(run, stack, kind)[0].site, 0)
        title = f"Mask of the {stack}'s {kind}-attention"
        both = [
            masks.mask_heatmap(view.query_labels, view.key_labels, view.allowed, title, dark=dark)
            for dark in (False, True)
        ]
        result.append(_in_both_modes(*both))
    return result


def _position_figures(run: Run) -> list[dict[str, Any]]:
    result = []
    for stack, matrix in run.position_matrices.items():
        size = matrix.shape[1]
        shown = sorted({0, 1, size // 8, size // 4, size // 2, size - 1})
        matrices = [positions.position_matrix(run, stack, dark=dark) for dark in (False, True)]
        curves = [positions.position_curves(run, shown, stack, dark=dark) for dark in (False, True)]
        result += [_in_both_modes(*matrices), _in_both_modes(*curves)]
    return result


def _more_figures(run: Run) -> list[dict[str, Any]]:
    result = []
    for light, dark in zip(gallery(run), gallery(run, dark=True), strict=True):
        text = light.figure.layout.title.text or VIEWS[light.view].title
        words = {"title": text, "help": VIEWS[light.view].help}
        result.append(words | _in_both_modes(light.figure, dark.figure))
    return result


def _in_both_modes(light: go.Figure, dark: go.Figure) -> dict[str, Any]:
    """A figure's data once, with what differs in the dark: the layout and parts of each trace."""
    bright, dim = _plain(light), _plain(dark)
    pairs = zip(bright["data"], dim["data"], strict=True)
    return {
        "data": bright["data"],
        "layout": {"light": bright["layout"], "dark": dim["layout"]},
        "dark": [{k: v for k, v in dim.items() if was.get(k) != v} for was, dim in pairs],
    }


def _plain(figure: go.Figure) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(figure.to_json())
    return plain


def _base64(values: NDArray[Any]) -> str:
    raw = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()
    return base64.b64encode(raw).decode("ascii")
