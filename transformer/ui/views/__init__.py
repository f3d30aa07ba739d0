"""What the page's scripts ask the server for: pictures of a kept run, as JSON.

Each takes one dict from the browser and gives one back; a mistake gives {"error": sentence}.
None of them runs the network.
"""

from transformer.ui.views.answers import server_function
from transformer.ui.views.attention import alignment, atlas, heatmap
from transformer.ui.views.masks import mask, padded
from transformer.ui.views.positions import positions
from transformer.ui.views.prediction import candidates, tree

VIEWS = (atlas, heatmap, mask, padded, alignment, positions, candidates, tree)

__all__ = ["VIEWS", "atlas", "heatmap", "server_function"]
