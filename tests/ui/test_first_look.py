"""What stands on the page before its scripts run shows the stored example's own weights."""

import base64
import io
import re

import numpy as np
import pytest
from kit.serving import tiny_model
from PIL import Image

from transformer.ui.examples import first_head
from transformer.ui.handlers import example
from transformer.ui.page import first_look
from transformer.ui.service import Service
from transformer.views.attention.grid import palette


@pytest.fixture(scope="module")
def service() -> Service:
    return Service([tiny_model()])


def picture(markup: str, title: str) -> np.ndarray:
    """Palette places of the image below a caption."""
    found = re.search(rf'{re.escape(title)}</figcaption><img[^>]* src="data:([^"]+)"', markup)
    assert found is not None
    kind, body = found[1].split(";base64,")
    image = Image.open(io.BytesIO(base64.b64decode(body)))
    assert (kind, image.mode) == ("image/png", "P")
    assert bytes(image.getpalette() or b"") == palette().tobytes()
    return np.asarray(image)


def test_both_pictures_are_of_the_stored_runs_weights(service):
    run = service.store.run(service.examples["tiny"][0])
    site, head = first_head(example(service, "tiny")[0])
    weights = run.trace.records[site].pattern[0].numpy()
    assert weights.shape[-1] <= 64  # a longer text would be shown reduced
    markup = first_look(service)()
    large = picture(markup, f"Decoder self-attention, layer {site.layer}, head {head}")
    allowed = np.tril(np.ones_like(weights[head], dtype=bool))
    assert (large[~allowed] == 0).all()  # see-through
    shown = (large[allowed] / 255.0) ** 2
    assert np.abs(shown - weights[head][allowed]).max() < 0.005
    heads = picture(markup, "Every head")
    height, width = weights.shape[-2:]
    gap = (heads.shape[1] - weights.shape[0] * width) // (weights.shape[0] - 1)
    left = head * (width + gap)
    top = site.layer * (height + gap)
    small = heads[top : top + height, left : left + width].astype(int)
    assert ((small == 0) == (large == 0)).all()
    assert (abs(small - large.astype(int)) < 32).all()  # eight colours
