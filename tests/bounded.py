"""app.py that may hold few files, and closes connections without a request sooner:
python tests/bounded.py [app.py's options]."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import app
from transformer.ui import gradio_patches

MOST_FILES = 256

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES - 56, MOST_FILES))
    vars(gradio_patches)["HEADERS_S"] = 2.0
    app.main()
