"""Write another tool's page for an attention tensor; runs in the peers' own environment.

    python benchmarks/peer_pages.py {bertviz,circuitsvis,inspectus} WEIGHTS.npy OUT.html

WEIGHTS.npy: (L, H, T, T) float32. Imports nothing of this project. Ends with a MemoryError rather
than take more than MEMORY_BYTES.
"""

from __future__ import annotations

import argparse
import resource
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

MEMORY_BYTES = 16 * 2**30


def bertviz(weights: Any, tokens: list[str]) -> str:
    """Its view of all layers and heads. The page itself fetches three libraries from elsewhere."""
    import torch
    from bertviz import model_view

    layers = [torch.from_numpy(layer)[None] for layer in weights]
    return str(model_view(layers, tokens, html_action="return").data)


def circuitsvis(weights: Any, tokens: list[str]) -> str:
    """Its grid of heads, all layers in one list, with its script inside."""
    from circuitsvis.attention import attention_heads

    return str(attention_heads(weights.reshape(-1, *weights.shape[2:]), tokens).local_src)


def inspectus(weights: Any, tokens: list[str]) -> str:
    """Its default charts, with its script and style inside."""
    import inspectus as tool

    shown: list[str] = []
    with patch("IPython.display.display", lambda part: shown.append(str(part.data))):
        tool.attention(weights, tokens)
    return "".join(shown)


TOOLS = {"bertviz": bertviz, "circuitsvis": circuitsvis, "inspectus": inspectus}


def main() -> None:
    """Write one page."""
    parser = argparse.ArgumentParser(prog="python benchmarks/peer_pages.py", description=__doc__)
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    weights = np.load(asked.weights)
    tokens = [f"t{place}" for place in range(weights.shape[-1])]
    page = TOOLS[asked.tool](weights, tokens)
    content = f'<!doctype html><meta charset="utf-8"><body>{page}</body>'
    asked.out.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
