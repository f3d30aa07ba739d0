"""What the page shows before its scripts have run: the stored example and its heads, as pictures.

A phone needs seconds until Gradio's controls stand. Until then the visitor sees pictures made here
from the stored run's weights, and views/attention takes them away.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from transformer.analysis.atlas import atlas
from transformer.messages import language
from transformer.messages.markup import translated
from transformer.runs.head_data import head_view
from transformer.ui.handlers import example
from transformer.ui.service import Service
from transformer.ui.tour import first_head
from transformer.views.attention.grid import data_url, mosaic, tiles
from transformer.views.attention.heatmap import head_title

TEMPLATE = Path(__file__).parent / "static" / "first_look.html"
FEW_COLOURS = 0xE0  # eight: the picture of all heads then takes a third of the bytes
HOLE = re.compile(r"/\*(text|title|heads|head)\*/")


def first_look(service: Service) -> Callable[[], str]:
    """Makes the markup in the language of the request; the pictures are made once."""
    template = TEMPLATE.read_text(encoding="utf-8")
    name = next(iter(service.models))
    run = service.store.run(service.example(name)[0])
    site, head = first_head(example(service, name)[0])
    small = atlas(run, site.stack, site.kind)
    few = np.bitwise_and(small.pixels, FEW_COLOURS, dtype=np.uint8)
    heads = data_url(mosaic(small._replace(pixels=few)))
    large = data_url(tiles(small)[site.layer, head])
    view = head_view(run, site, head)

    def markup() -> str:
        words = {"text": run.text, "title": head_title(view)}
        parts = {name: html.escape(text) for name, text in words.items()}
        parts |= {"heads": heads, "head": large}
        return HOLE.sub(lambda found: parts[found[1]], translated(template, language()))

    return markup
