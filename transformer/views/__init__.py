"""What the page shows of a run: a folder for each question, with views that answer it.

    from transformer import views

    views.attention_heatmap(run, "decoder.0.self", 3).show()
    views.VIEWS["prediction"].help, views.PICTURES["lens"].parameters

To add a view: a folder here whose `__init__.py` has a `VIEW` or `VIEWS` (see `declaration.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformer.analysis.atlas import Atlas, atlas
from transformer.analysis.mask_removal import masks_of
from transformer.checks import shortened
from transformer.messages.catalogues import add_catalogues
from transformer.views.attention.alignment import alignment, alignment_links
from transformer.views.attention.attention_math import attention_math, row_arithmetic
from transformer.views.attention.grid import head_grid
from transformer.views.attention.head_metrics import head_metrics, metrics_figure
from transformer.views.attention.heatmap import (
    RANGES,
    SCALES,
    STAGES,
    attention_flow,
    attention_heatmap,
)
from transformer.views.attention.lines import query_lines, query_links
from transformer.views.declaration import Picture, View, find_views
from transformer.views.masks.masks import (
    MASKS,
    mask_figure,
    mask_heatmap,
    mask_removed,
    padded_batch,
)
from transformer.views.model.architecture import architecture
from transformer.views.positions.encodings import (
    position_curves,
    position_matrix,
    position_similarity,
)
from transformer.views.positions.inputs import input_strips, input_token
from transformer.views.positions.rotation import position_shift
from transformer.views.prediction.beams import beam_nodes, beam_tree
from transformer.views.prediction.lens import logit_lens
from transformer.views.prediction.prediction import candidates
from transformer.views.prediction.surprisal import surprisal
from transformer.views.runs.attention_difference import attention_difference
from transformer.views.runs.compare import candidates_compared, probability_difference
from transformer.views.whatif.ablation import importance, predicted
from transformer.views.whatif.contribution import contribution
from transformer.views.whatif.patching import patching

VIEWS: dict[str, View] = {}
PICTURES: dict[str, Picture] = {}


def add_views(folders: Sequence[str | Path]) -> None:
    """Take in the views of these folders, whose packages are named like views.

    Raises ValueError for a name that is taken, and for a VIEW that is no `View`.
    """
    places = [str(Path(folder)) for folder in folders]
    __path__.extend(place for place in places if place not in __path__)
    for view in find_views(__name__, places):
        taken = {picture.name for picture in view.pictures} & set(PICTURES)
        if view.name in VIEWS or taken:
            raise ValueError(
                f"the view {shortened(view.name)} and its pictures need names of their own"
            )
        VIEWS[view.name] = view
        add_catalogues(view.folder)
        PICTURES.update({picture.name: picture for picture in view.pictures})


def own_views() -> list[View]:
    """Those that came from other folders than this one."""
    return [view for view in VIEWS.values() if view.folder.parent != Path(__file__).parent]


add_views(list(__path__))

__all__ = [
    "MASKS", "PICTURES", "RANGES", "SCALES", "STAGES", "VIEWS", "Atlas", "Picture", "View",
    "add_views", "alignment", "alignment_links", "architecture", "atlas",
    "attention_difference", "attention_flow", "attention_heatmap", "attention_math",
    "beam_nodes", "beam_tree", "candidates", "candidates_compared", "contribution", "head_grid",
    "head_metrics", "importance", "input_strips", "input_token",
    "logit_lens", "mask_figure", "mask_heatmap", "mask_removed", "masks_of",
    "metrics_figure", "own_views", "padded_batch", "patching", "position_curves",
    "position_matrix", "position_shift", "position_similarity", "predicted",
    "probability_difference", "query_lines", "query_links", "row_arithmetic", "surprisal",
]  # fmt: skip
