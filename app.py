"""The page's entry on a Space and in a clone: python app.py [--help]."""

from __future__ import annotations

import os

# How long OpenMP's threads wait awake, as `serve.SPINCOUNT`: it is read when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

try:
    from spaces import GPU  # a Space with a lent accelerator; must come before torch uses CUDA
except ImportError:
    GPU = None

from transformer.serve import main

if __name__ == "__main__":
    main(GPU)
