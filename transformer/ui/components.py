"""The page's own components: `gr.HTML` with a fixed template and a script of its own.

Values go to the scripts as data and into the page by `textContent`; no text of a visitor or a
model ever enters a template. Factories and not subclasses, which would make Gradio write files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from transformer import views
from transformer.ui.gradio_patches.template import begin_page
from transformer.ui.language import LOST
from transformer.ui.modules import MODULES, PAGE, STYLE
from transformer.views.declaration import View

FOLDERS = (Path(__file__).parent / "static", *Path(views.__file__).parent.glob("*/"))
REFERRER = '<meta name="referrer" content="no-referrer">'  # an address may hold a visitor's words
PLOTLY_JS = "ui/static/vendor/plotly-cartesian.min.js"
# Gradio runs this once a component stands on the page. What goes wrong is told in the status.
MOUNT = """
import(new URL("{page}", document.baseURI))
  .then(({{ modules }}) => modules["{name}"].mount({{ element, props, trigger, watch, server }}))
  .then(() => document.dispatchEvent(new CustomEvent("mounted", {{ detail: element }})))
  .catch((error) => {{
    console.error(error);
    document.querySelector("#first-look")?.remove();
    const problem = document.querySelector("#status .problem");
    if (!problem) return;
    problem.hidden = false;
    problem.firstElementChild.textContent =
      `{lost} (${{error.message}})`;
  }});
"""


def component(
    name: str,
    value: Any = None,
    functions: Sequence[Callable[..., Any]] = (),
    elem_id: str | None = None,
    **props: Any,
) -> gr.HTML:
    """The component of NAME.js; elem_id None: NAME.

    NAME.js exports mount({element, props, trigger, watch, server}), which Gradio 6.31 gives to a
    component's script; see web/part.js. Where it is no component of Preact's, NAME.html has its
    elements. value, props: JSON data for it. functions: what it may ask the server.
    """
    return gr.HTML(
        value=value,
        html_template=_template(name),
        js_on_load=MOUNT.format(
            page=MODULES.address(PAGE), name=_module_of(name), lost=LOST
        ).strip(),
        apply_default_css=False,
        elem_id=elem_id or name,
        server_functions=list(functions),
        **props,
    )


def panel(view: View, ask: Mapping[str, Callable[..., Any]]) -> gr.HTML:
    """A view without a script of its own, drawn from what it declares."""
    functions = [ask[picture.name] for picture in view.pictures]
    return component("panel", None, functions, elem_id=f"view-{view.name}", view=view.name)


def put_first(look: Callable[[], str]) -> None:
    """Have Gradio's page begin with the language that was chosen, with rest.js, which replaces what
    Gradio's own scripts then hold, and with our scripts, which are one file. look: makes the
    markup that is seen until they have run."""
    first = (_find(name).read_text(encoding="utf-8") for name in ("first_language.js", "rest.js"))
    style = f'<link rel="stylesheet" href="{MODULES.address(STYLE)}">'
    begin_page("".join(first), _head(), look, style)


def _head() -> str:
    """What our modules need in the page's head."""
    page, plotly = MODULES.address(PAGE), MODULES.address(PLOTLY_JS)
    lines = (
        REFERRER,
        f'<script type="module" src="{page}"></script>',
        f'<script type="application/json" id="view-schema">{_schema()}</script>',
        f'<link rel="preload" as="script" fetchpriority="low" href="{plotly}">',
    )
    return "\n".join(lines)


def _schema() -> str:
    """What the views declare, for the page's scripts; no text in it can end the element."""
    return json.dumps([view.schema() for view in views.VIEWS.values()]).replace("<", "\\u003c")


def _template(name: str) -> str:
    found = [folder / f"{name}.html" for folder in FOLDERS if (folder / f"{name}.html").is_file()]
    return found[0].read_text(encoding="utf-8") if found else "<div></div>"


def _module_of(name: str) -> str:
    return _find(f"{name}.js").relative_to(Path(__file__).parent.parent).as_posix()


def _find(name: str) -> Path:
    (path,) = (folder / name for folder in FOLDERS if (folder / name).is_file())
    return path
