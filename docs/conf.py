"""The site of the documents (`make docs`): Markdown by MyST, the reference from docstrings."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

project = "Transformer Attention Visualizer"
copyright = "the Transformer Attention Visualizer authors, MIT licence"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = [
    "*.md", "docs/*.md", "docs/reference/*.md", "deploy/README.md", "checkpoints/*/README.md",
    "transformer/web/README.md", "transformer/browser/README.md",
]  # fmt: skip
html_theme = "furo"
html_title = project
html_copy_source = False
myst_heading_anchors = 3  # a heading's address as code hosts make it: serve.md#privacy
default_role = "code"
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"


def open_index(app: Sphinx, exception: Exception | None) -> None:
    """Make the folder's index.html lead to the first page."""
    if exception is None:
        page = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Sphinx calls this once."""
    app.connect("build-finished", open_index)
