"""The site of the documents (`make docs`): Markdown by MyST, the reference from docstrings."""

import subprocess
import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

project = "Transformer Attention Visualizer"
copyright = "the Transformer Attention Visualizer authors, MIT licence"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "from_code"]
root_doc = "docs/index"
include_patterns = [
    "*.md", "docs/**.md", "deploy/README.md", "checkpoints/*/README.md",
    "transformer/web/README.md", "transformer/browser/README.md",
]  # fmt: skip
exclude_patterns = [".*", "build", "tests", "tools"]  # large folders without a document: not walked
html_theme = "furo"
html_title = project
html_copy_source = False
myst_heading_anchors = 3  # a heading's address as code hosts make it: serving/space.md#other-pages
default_role = "code"
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"


def write_first_pages(app: Sphinx, exception: Exception | None) -> None:
    """Make the folder's index.html lead to the first page, and write the page that it embeds."""
    if exception is None:
        page = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")
    if exception is None and app.config.live_example:
        example = Path(app.outdir) / "example.html"
        command = [sys.executable, "-m", "transformer.static", "--one-file", str(example)]
        subprocess.run(command, cwd=ROOT, check=True)


def setup(app: Sphinx) -> None:
    """Sphinx calls this once."""
    app.add_config_value("live_example", default=True, rebuild="", types=[bool])
    app.connect("build-finished", write_first_pages)
