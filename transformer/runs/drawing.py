"""The drawing methods of a Run and of a Batch.

This file alone imports views, and each method only what it draws with: Plotly and the views take
longer to import than a text takes to generate.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from transformer.checks import check_choice
from transformer.model.sites import SiteLike

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from transformer.inference.model import Model

MAX_CELLS = 400  # on a side of a heatmap: 4 MB in a notebook
Head = int | Literal["mean"]  # its number, or the mean of all
Stage = Literal["scores", "masked", "weights"]
Scale = Literal["linear", "sqrt", "log"]
ColourRange = Literal["fixed", "own"]


class Drawable:
    """Methods that return Plotly figures, which a notebook shows, or write files."""

    __slots__ = ()

    def draw(self: Any, view: str, *arguments: Any, **options: Any) -> go.Figure:
        """Any picture by its name in `transformer.views.registry.PICTURES`: run.draw("lens").

        arguments, options: those of the picture's function, after the run. Raises ValueError,
        listing the pictures, for an unknown name.
        """
        from transformer.views.registry import PICTURES

        figures = {
            name: picture.figure for name, picture in PICTURES.items() if picture.figure is not None
        }
        check_choice("view", view, tuple(figures))
        figure = figures[view]
        try:
            inspect.signature(figure).bind(self, *arguments, **options)
        except TypeError as error:
            _, *parameters = inspect.signature(figure).parameters.values()
            needed = ", ".join(str(each.replace(annotation=each.empty)) for each in parameters)
            raise ValueError(f"the picture {view} takes ({needed}); {error}") from error
        return figure(self, *arguments, **options)

    def attention(
        self: Any,
        site: SiteLike,
        head: Head = "mean",
        *,
        stage: Stage = "weights",
        scale: Scale = "linear",
        range_: ColourRange = "fixed",
        row: int = 0,
    ) -> go.Figure:
        """One head, large: run.attention("decoder.2.self", 3, stage="scores").

        site: where in the network, "STACK.LAYER.KIND"; a layer's number is the self-attention of
        the last stack. head: its number, or "mean" of all heads.
        stage: "scores" before the mask, "masked" scores, or "weights" after the softmax.
        scale: how weights become colours, "linear", "sqrt" or "log".
        range_: colours span "fixed", 0 to 1, or "own", 0 to this head's largest weight.
        row: which text of a Batch. With more than MAX_CELLS tokens, each cell is the largest of a
        square of them.
        Raises ValueError, listing what is allowed, for any other value.
        """
        from transformer.views.attention.heatmap import attention_heatmap

        return attention_heatmap(
            self, site, head, stage=stage, scale=scale, range_=range_, row=row, most=MAX_CELLS
        )

    def heads(
        self: Any, stack: str | None = None, kind: str = "self", *, row: int = 0
    ) -> go.Figure:
        """Every head of one kind of attention, small: layers across, heads down.

        stack: "encoder" or "decoder"; None = the last one. kind: "self" or "cross". row: which text
        of a Batch. Raises ValueError, listing what there is, for any other value.
        """
        from transformer.views.attention.grid import head_grid

        stack = self.trace.sites[-1].stack if stack is None else stack
        return head_grid(self, stack, kind, row=row)

    def alignment(
        self: Any,
        layer: Head = "mean",
        head: Head = "mean",
        *,
        row: int = 0,
        by: Literal["written", "read"] = "written",
    ) -> go.Figure:
        """Which source token each target token read most; for an encoder-decoder.

        layer, head: a number, or "mean" of all. row: which text of a Batch.
        by: "written" draws the query that predicted a token, "read" the token's own query.
        Raises ValueError for a run without cross-attention, and for any other value.
        """
        from transformer.views.attention.lines import alignment

        return alignment(self, layer, head, row=row, by=by)

    def attention_csv(
        self: Any, site: SiteLike, head: Head = "mean", *, stage: Stage = "weights", row: int = 0
    ) -> str:
        """One head as comma-separated values; the first line and column name the tokens.

        site, head, stage, row: as in `attention`, with its errors. Cells that the mask forbids are
        empty, except in "scores".
        """
        from transformer.runs.head_data import head_csv

        return head_csv(self, site, head, stage=stage, row=row)

    def to_html(self: Any, path: str | Path, model: Model | None = None) -> None:
        """Save the page with the numbers of all texts, which works offline.

        model: of one text alone, as a run has it. Raises ValueError for a batch with its model,
        OSError if the page cannot be written.
        """
        from transformer.views.export.html import write

        if model is not None:
            raise ValueError(
                f"a page with its network opens with one text; got a batch of {len(self)}: "
                "save one of them, batch[0].to_html(path, model)"
            )
        write(self, Path(path))

    def embed(self: Any, height: int = 600, theme: Literal["light", "dark"] | None = None) -> str:
        """The page of `to_html` as HTML for another page, in a frame that cannot reach it:
        `gr.HTML(run.embed(height=600))`, or Streamlit's `components.html(run.embed(), height=620)`.

        height: px. theme: None = light or dark like the visitor's system. Raises ValueError for a
        height outside of 100 to 10,000, and for another theme.
        """
        from transformer.views.export.notebook import embedded

        return embedded(self, height, theme)

    def _repr_html_(self: Any) -> str:
        """The HTML that a notebook shows."""
        from transformer.views.export.notebook import html

        return html(self)


class DrawableRun(Drawable):
    """The methods that a Batch lacks."""

    __slots__ = ()

    def to_html(self: Any, path: str | Path, model: Model | None = None) -> None:
        """Save the page, which works offline: by default with the run's numbers, 1 MB and more.

        model: the run's; its network is in the file too and runs in the browser
        (`docs/serving/static.md` says which do), so that everything can be tried, for as many bytes
        more as it has weights in float16. Raises ValueError for another model, OSError if the file
        cannot be written.
        """
        if model is None:
            return super().to_html(path)
        from transformer.server.page.static_page import Page

        Path(path).write_text(Page([model]).text(self), encoding="utf-8")
        return None

    def logit_lens(self: Any, *, first: int = 0, count: int | None = None) -> go.Figure:
        """Each layer's prediction, for a run that `transformer.with_lens` returned.

        first: the first traced token shown. count: how many tokens; None shows all. Raises
        ValueError for a run without its lens, and for tokens that it does not have.
        """
        from transformer.views.prediction.lens import logit_lens

        return logit_lens(self, first=first, count=count)
