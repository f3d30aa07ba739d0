"""The page's own components: `gr.HTML` with a fixed template and a script of its own.

Values go to the scripts as data and into the page by `textContent`; no text of a visitor or a
model ever enters a template. Factories and not subclasses, which would make Gradio write files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gradio as gr
import gradio.routes
import plotly
from jinja2 import ChoiceLoader, DictLoader

FOLDER = Path(__file__).parent
# Scripts of the page's head, in order.
SHARED = (
    "shared", "link", "plots", "tables", "values", "grid", "readout", "cursor", "between",
    "pictures", "choices", "connection", "changing", "edits", "board", "history",
)  # fmt: skip
REFERRER = '<meta name="referrer" content="no-referrer">'  # an address may hold a visitor's words
PAGE = "frontend/index.html"  # Gradio's template of a page
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def component(
    name: str, value: Any = None, functions: Sequence[Callable[..., Any]] = (), **props: Any
) -> gr.HTML:
    """The component of NAME.html and NAME.js, with elem_id NAME.

    value, props: JSON data for its script. functions: what the script may ask the server.
    """
    made = gr.HTML(
        value=value,
        html_template=_read(f"{name}.html"),
        js_on_load=_read(f"{name}.js"),
        apply_default_css=False,
        elem_id=name,
        server_functions=list(functions),
        **props,
    )
    # Gradio takes any quoted word of a script for an event of the component's; where it looks for a
    # parameter "self", the event would come into the page's configuration, which cannot be copied.
    vars(made)["self"] = None
    return made


def head() -> str:
    """For the page's head: what the scripts share, and where Plotly's own script is found."""
    scripts = "\n".join(_read(f"{name}.js") for name in SHARED)
    source = f"gradio_api/file={PLOTLY_JS.as_posix()}"
    about = f'<meta name="plotly-source" content="{source}">\n{REFERRER}'
    return f"{about}\n<script>\n{scripts}\n</script>"


def put_first() -> None:
    """Have Gradio's page begin with rest.js: what stands in `head` runs after Gradio's own scripts,
    which by then hold what rest.js replaces."""
    pages = gradio.routes.templates.env
    assert pages.loader is not None
    source = pages.loader.get_source(pages, PAGE)[0]
    script = f"<script>\n{_read('rest.js')}</script>"
    changed = DictLoader({PAGE: source.replace("<head>", f"<head>\n{script}", 1)})
    pages.loader = ChoiceLoader([changed, pages.loader])


def css() -> str:
    """The page's style sheet: what components share, then each one's own."""
    own = sorted(path.name for path in FOLDER.glob("*.css") if path.name != "page.css")
    return "\n".join(_read(name) for name in ("page.css", *own))


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
