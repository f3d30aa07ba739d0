"""Gradio's page begins with what must run before its own scripts.

What `launch` takes as `head` is put in by those scripts, after the page's first requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import gradio.routes
from jinja2 import ChoiceLoader, DictLoader
from markupsafe import Markup

from transformer.ui.language import page_of, sentences, tag

PAGE = "frontend/index.html"  # Gradio's template of a page
BASE = re.compile(r"<base [^>]*/>")  # what relative addresses of the template start from


def begin_page(first: str, head: str, look: Callable[[], str], last: str) -> None:
    """Put a script first of all, markup as soon as relative addresses work, what `look` makes for
    each visitor at the begin of what is seen, and markup behind all. What stands there keeps
    nothing from being seen before it has come, and no script of the page runs before."""
    pages = gradio.routes.templates.env
    assert pages.loader is not None
    source = pages.loader.get_source(pages, PAGE)[0]
    source = source.replace("<head>", f"<head>\n<script>\n{first}</script>", 1)
    source = source.replace('<html\n\tlang="en"', '<html\n\tlang="{{ tag() }}"', 1)
    source = source.replace("config | toorjson", "config | without_api | page_of | toorjson", 1)
    source = source.replace("<gradio-app", "{{ first_look() }}<gradio-app", 1)
    source = source.replace("</body>", f"{last}</body>", 1)
    pages.filters.update(page_of=page_of, without_api=without_api)
    pages.globals.update(
        tag=tag, sentences=lambda: Markup(sentences()), first_look=lambda: Markup(look())
    )
    head = f"{{{{ sentences() }}}}\n{head}"
    changed = DictLoader({PAGE: BASE.sub(lambda base: f"{base[0]}\n{head}", source, count=1)})
    pages.loader = ChoiceLoader([changed, pages.loader])


def without_api(config: dict[str, Any]) -> dict[str, Any]:
    """Gradio's description of the page without the inputs and outputs of `gr.api`: nothing of them
    is seen, and its scripts would make something of each, which is near half of all that there is.
    Programs ask for the whole description elsewhere."""
    unseen = {one["id"] for one in config["components"] if one["type"] == "api"}

    def seen(node: dict[str, Any]) -> dict[str, Any]:
        children = [seen(one) for one in node.get("children", ()) if one["id"] not in unseen]
        return node | {"children": children} if "children" in node else node

    components = [one for one in config["components"] if one["id"] not in unseen]
    pages = {
        name: one
        | {
            "components": [number for number in one["components"] if number not in unseen],
            "layout": seen(one["layout"]),
        }
        for name, one in config["page"].items()
    }
    return config | {"components": components, "layout": seen(config["layout"]), "page": pages}
