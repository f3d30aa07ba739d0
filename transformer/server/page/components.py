"""The page's components, `gr.HTML` with a fixed template and a script each, and what its controls
call in these scripts.

Values go to the scripts as data and into the page by `textContent`; no text of a visitor or a
model ever enters a template. Factories and not subclasses, which would make Gradio write files.

controls: everything on the page that is read or changed, by name; a setting's is that of a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr

from transformer.messages import language, say
from transformer.messages.templates import translate_html
from transformer.server.fields import SETTINGS
from transformer.server.page.modules import PACKAGE, is_later
from transformer.views.declaration import View

STATIC = "server/static"
Controls = Mapping[str, Any]
# Those whose values the page's script knows, see web/store.js.
KEPT_CONTROLS = ("model", "text", "lines", *SETTINGS)
# What scripts set, the chips besides.
SET_CONTROLS = (
    "model", "headline", "card", "table", "lines", *SETTINGS, "text", "start",
    "stop",
)  # fmt: skip
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
CLIENT_EVENT: dict[str, Any] = PRIVATE | {"trigger_mode": "multiple"}
# Gradio runs this once a component is on the page. The status line shows any error.
MOUNT = """
Promise.all([import("page"), import("{bundle}")])
  .then(([page, {{ modules }}]) => page.modules["server/static/first_look.js"]
    .place("{name}", modules["{module}"].{mount}, {{ element, props, trigger }}))
  .then(() => document.dispatchEvent(new CustomEvent("mounted", {{ detail: element }})))
  .catch((error) => {{
    console.error(error);
    document.querySelector("#first-look")?.remove();
    const problem = document.querySelector(
      "#status .problem, #status .html-container:not(:has(.problem))");
    if (!problem) return;
    Object.assign(problem, {{ hidden: false, role: "alert" }}).classList.add("problem");
    problem.firstElementChild.textContent = `{lost} (${{error.message}})`;
  }});
"""


def component(
    name: str,
    value: Any = None,
    elem_id: str | None = None,
    folder: str = STATIC,
    script: str = "",
    **props: Any,
) -> gr.HTML:
    """The component of FOLDER/NAME.js, or one of several of FOLDER/SCRIPT.js; elem_id None: NAME.

    NAME.js exports mount({element, props, trigger}): what Gradio 6.31 gives to a
    component's script; see web/part.js. Where it is no component of Preact's,
    NAME.html has its elements. value, props: JSON data for it.
    """
    template = PACKAGE / folder / f"{name}.html"
    markup = template.read_text("utf-8") if template.is_file() else "<div></div>"
    module = f"{folder}/{script or name}.js"
    return gr.HTML(
        value=value,
        html_template=translate_html(markup, language()),
        js_on_load=MOUNT.format(
            name=elem_id or name,
            bundle="later" if is_later(module) else "page",
            module=module,
            mount=f"mount.{name}" if script else "mount",
            lost=say("A part of the page could not be loaded; reload the page."),
        ).strip(),
        apply_default_css=False,
        elem_id=elem_id or name,
        **props,
    )


def view_component(view: View) -> gr.HTML:
    """A view with its component, or drawn by the page from what it declares."""
    folded = view.name if view.folded else ""
    if not view.has_script():
        place = {"folder": "web", "script": "view", "elem_id": f"view-{view.name}"}
        return component("panel", **place, view=view.name, folded=folded)
    folder = f"views/{view.folder.name}"
    return component(view.name, folder=folder, folded=folded, predicts=view.predicts)


def calling(module: str, call: str, *arguments: str) -> str:
    """The `js` of an event of Gradio's that calls what a module exports; arguments: the
    names of the event's values in the call."""
    then = f'({{ modules }}) => {{ modules["{module}"].{call}; }}'
    return f'({", ".join(arguments)}) => import("page").then({then})'


def giving(module: str, call: str, *arguments: str) -> str:
    """Like `calling`; the outputs are the result of the call."""
    then = f'({{ modules }}) => modules["{module}"].{call}'
    return f'({", ".join(arguments)}) => import("page").then({then})'


def connect_buttons(controls: Controls) -> None:
    """Connect what generates (Enter and the button), what stops it, and what reads the batch, with
    its padding mask or without."""
    for triggers, call in (
        ([controls["text"].submit, controls["start"].click], "generate()"),
        ([controls["stop"].click], "stop()"),
        ([controls["show"].click], "readBatch()"),
        ([controls["bare"].click], "toggleMask()"),
    ):
        gr.on(triggers, None, None, None, js=calling("server/static/presses.js", call), **PRIVATE)


def connect_state(controls: Controls) -> None:
    """Send the page's script each control's changes, and set the controls that it changes.

    Gradio 6.31 reports a change of the model also where the list was left without a choice.
    """
    module = "server/static/gradio.js"
    for name in KEPT_CONTROLS:
        listener = calling(module, f"controlChanged({name!r}, value)", "value")
        controls[name].change(None, controls[name], None, js=listener, **CLIENT_EVENT)
    choose = calling("server/static/link.js", "chooseModel(model)", "model")
    controls["model"].input(None, controls["model"], None, js=choose, **PRIVATE)
    header = controls["share"]  # the component whose event carries what is set
    names = [*SET_CONTROLS, *(name for name in controls if name.startswith("chip "))]
    outputs = [controls[name] for name in names]
    setting = header.input(
        None,
        header,
        outputs,
        js=giving(module, f"outputsOf(changes, {names})", "changes"),
        **CLIENT_EVENT,
    )
    setting.then(None, None, None, js=calling(module, "controlsSet()"), **CLIENT_EVENT)
