"""How a Run draws itself without knowing how: the package hands in what does.

Runs belong to `inference`, figures are built on them. So a run's drawing methods ask for a
`Pictures`, which `transformer/__init__.py` names and which is imported when first drawn with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from transformer.messages import say


class Pictures(Protocol):
    """What draws a run."""

    def draw(self, run: Any, view: str, *choices: Any, **look: Any) -> Any:
        """The figure of a view. Raises ValueError, listing the views, for an unknown one."""

    def html(self, run: Any) -> str:
        """A piece of HTML that shows the run in a notebook."""

    def save_page(self, run: Any, path: Any) -> None:
        """Write the self-contained page of the run."""

    def csv(self, run: Any, site: Any, head: Any, stage: str) -> str:
        """One head's attention as comma-separated values."""


_load: Callable[[], Pictures] | None = None


def draw_with(load: Callable[[], Pictures]) -> None:
    """Say what draws runs; `load` is called at the first picture, as it may take a while."""
    global _load
    _load = load


def pictures() -> Pictures:
    """What draws runs. Raises RuntimeError if nothing was said."""
    if _load is None:
        raise RuntimeError(say("nothing draws runs yet; needed: `import transformer`"))
    return _load()


class Drawable:
    """Drawing methods; figures are Plotly's, and show themselves in a notebook."""

    __slots__ = ()

    def draw(self, view: str, *choices: Any, **look: Any) -> Any:
        """Any of `transformer.views.PICTURES` by its name: run.draw("lens"), for one.

        choices, look: what that view's function takes after the run. Raises ValueError for an
        unknown view, or for what the view does not allow.
        """
        return pictures().draw(self, view, *choices, **look)

    def attention(self, site: Any, head: Any, **look: Any) -> Any:
        """One head large: run.attention("decoder.2.self", 3, stage="scores", scale="log")."""
        return self.draw("heatmap", site, head, **look)

    def heads(self, stack: str = "decoder", kind: str = "self", **look: Any) -> Any:
        """Every head of one kind of attention, small."""
        return self.draw("atlas", stack, kind, **look)

    def alignment(self, layer: Any = "mean", head: Any = "mean", **look: Any) -> Any:
        """Which source token each target token read; for an encoder-decoder."""
        return self.draw("alignment", layer, head, **look)

    def attention_csv(self, site: Any, head: Any, stage: str = "weights") -> str:
        """One head as comma-separated values, tokens named in the first line and column."""
        return pictures().csv(self, site, head, stage)
