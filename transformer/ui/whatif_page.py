"""The tab "What if?": what stands in it, and what each part may ask the server."""

from __future__ import annotations

import gradio as gr

from transformer.ui.components import component
from transformer.ui.language import wording
from transformer.ui.view_functions import Ask


def whatif_tab(ask: dict[str, Ask]) -> None:
    """The tab with its parts. ask: the views of a kept run, by name.

    The one that appears with a change stands last, so that nothing moves under the pointer.
    What needs the network is asked for only when a visitor wants it.
    """
    introduction = wording(
        "Each section changes the network for your text alone; the model itself "
        "stays as it is. What is changed is listed at the bottom of the window, with "
        "the text before and after."
    )
    gr.Markdown(introduction, elem_id="whatif-introduction")
    component("branches", None, [ask["choices"], ask["kept"]])
    component("silence", None, [ask["importance"]])
    component("contribution", None, [ask["contribution"]])
    component("maskedit", None, [ask["used_mask"]])
    component("breaks", None, [ask["broken"], ask["broken_text"]])
    of_two = ("kept", "compare", "outcomes", "weighed", "difference")
    component("compare", None, [ask[name] for name in of_two])
    component("patching", None, [ask["other_text"], ask["patching"]])
    component("effect", None, [ask["next_token"], ask["intact_text"]])
