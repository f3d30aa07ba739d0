"""Gradio's page begins with what must run before its own scripts.

What `launch` takes as `head` is put in by those scripts, after the page's first requests.
"""

from __future__ import annotations

import re

import gradio.routes
from jinja2 import ChoiceLoader, DictLoader
from markupsafe import Markup

from transformer.ui.language import page_of, sentences, tag

PAGE = "frontend/index.html"  # Gradio's template of a page
BASE = re.compile(r"<base [^>]*/>")  # what relative addresses of the template start from


def begin_page(first: str, head: str) -> None:
    """Put a script first of all, and markup as soon as relative addresses work."""
    pages = gradio.routes.templates.env
    assert pages.loader is not None
    source = pages.loader.get_source(pages, PAGE)[0]
    source = source.replace("<head>", f"<head>\n<script>\n{first}</script>", 1)
    source = source.replace('<html\n\tlang="en"', '<html\n\tlang="{{ tag() }}"', 1)
    source = source.replace("{{ config | toorjson }}", "{{ config | page_of | toorjson }}", 1)
    pages.filters["page_of"] = page_of
    pages.globals.update(tag=tag, sentences=lambda: Markup(sentences()))
    head = f"{{{{ sentences() }}}}\n{head}"
    changed = DictLoader({PAGE: BASE.sub(lambda base: f"{base[0]}\n{head}", source, count=1)})
    pages.loader = ChoiceLoader([changed, pages.loader])
