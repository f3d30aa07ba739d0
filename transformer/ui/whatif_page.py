"""The tab "What if?": what stands in it, and what each part may ask the server."""

from __future__ import annotations

from typing import Any

import gradio as gr

from transformer.ui.components import component
from transformer.ui.experiments import Experiments
from transformer.ui.views import patching, server_function, whatif


def whatif_tab(experiments: Experiments, ask: dict[str, Any]) -> None:
    """The tab with its parts. ask: the views of a kept run, by name.

    What needs the network is asked for only when a visitor wants it.
    """
    think = {
        view.__name__: server_function(experiments, view)
        for view in (*whatif.VIEWS, *patching.VIEWS)
    }
    with gr.Tab("What if?", id="whatif-tab"):
        component("effect", None, [think["next_token"], think["intact_text"]])
        component("branches", None, [ask["choices"], ask["kept"]])
        component("silence", None, [think["importance"]])
        component("maskedit", None, [ask["used_mask"]])
        component("breaks", None, [think["broken"], think["broken_text"]])
        of_two = ("kept", "compare", "outcomes", "weighed", "difference")
        component("compare", None, [ask[name] for name in of_two])
        component("patching", None, [think["other_text"], think["patching"]])
