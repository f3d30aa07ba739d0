"""The page's entry on a Space and in a clone: python app.py [--help]."""

from __future__ import annotations

import gc
import os

# How long OpenMP's threads wait awake, as `serve.SPINCOUNT`: it is read when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

gc.disable()  # while all is imported: a fifth of the start; the server sets it going

from transformer.serve import main  # noqa: E402

if __name__ == "__main__":
    main()
