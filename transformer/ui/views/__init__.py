"""What the page's scripts ask the server for: pictures of a kept run, as JSON.

Each takes one dict from the browser and gives one back; a mistake gives {"error": sentence}.
None of them runs the network.
"""

from typing import Any

from transformer.ui.store import RunStore
from transformer.ui.views.answers import server_function
from transformer.ui.views.attention import alignment, atlas, flow, heatmap, lines
from transformer.ui.views.branches import choices, kept
from transformer.ui.views.compare import compare, difference, outcomes, weighed
from transformer.ui.views.exports import export
from transformer.ui.views.masks import mask, padded, removal
from transformer.ui.views.metrics import metric_map, metrics
from transformer.ui.views.model import architecture
from transformer.ui.views.positions import inputs, positions, shift
from transformer.ui.views.prediction import candidates, lens, surprise, tree
from transformer.ui.views.unhurried import unhurried
from transformer.ui.views.whatif import used_mask
from transformer.ui.views.worked import worked

VIEWS = (
    atlas, heatmap, mask, padded, alignment, positions, candidates, tree,
    flow, lines, worked, removal, inputs, shift,
    surprise, lens, architecture, export, used_mask,
    choices, kept, compare, difference, outcomes, weighed,
)  # fmt: skip
UNHURRIED = (metrics, metric_map)  # they take long, and nobody waits for them

__all__ = ["VIEWS", "atlas", "export", "functions", "heatmap", "server_function"]


def functions(store: RunStore) -> dict[str, Any]:
    """Every view by its name, as the page's components ask for it."""
    quick = {view.__name__: server_function(store, view) for view in VIEWS}
    return quick | {view.__name__: unhurried(store, view) for view in UNHURRIED}
