"""Share links for tests: what they hold, compressed, and opened as the page does."""

from __future__ import annotations

import base64
import zlib
from typing import Any

from transformer.ui import connect as opening
from transformer.ui.link import SETTINGS
from transformer.ui.service import Service

# What stands in the page's controls when it opens.
CONTROLS = dict(zip(SETTINGS, ("sample", 0.7, 40, 1, 4, 1, 40, 3), strict=True))
SILENCED = {"type": "ablate", "stack": "decoder", "layer": 1, "heads": [0]}
FORBIDDEN = {"type": "mask", "stack": "decoder", "forbid": [[2, 1], [3, None]]}


def deflated(state: bytes) -> str:
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(state) + packer.flush()
    return f"z={base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


def opened(service: Service, query: Any) -> list[dict[str, Any]]:
    return list(opening.opened(service, "visitor", query, CONTROLS))
