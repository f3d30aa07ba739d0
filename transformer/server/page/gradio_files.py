"""The files of Gradio's frontend that the page takes, known before Gradio asks for them.

Gradio's script imports its parts in turn, those of components last: four waves of requests. The
page names all of them at once, so that they are there by then. They are served packed, from memory,
and browsers keep them: a file's name says what is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import gradio as gr

from transformer.server.page.modules import TYPES, Asset

FRONTEND = Path(gr.__file__).parent / "templates" / "frontend"
FOLDER = "assets"
# In Gradio's own page: its script and its style sheet, whose names change with each version.
PAGE_TAGS = re.compile(rf'<(?:script|link)[^>]*"\./{FOLDER}/(index-[^"]*)"[^>]*>(?:</script>)?')
# How Vite writes what a script imports later: a list of files, and in each import the script's name
# and the places in the list of what it needs.
LISTED = re.compile(r"m\.f=\[([^\]]*)\]")
LATER = r"import\(`\./([\w-]+\.js)`\)[^\[\]]*?__vite__mapDeps\(\[([\d,]*)\]\)"
START, LAYOUT, COMPONENTS = "Index-", "Blocks-", "core-"


def page_tags() -> list[str]:
    """The tags of Gradio's script and style sheet. Raises RuntimeError where there are others."""
    tags = [match[0] for match in PAGE_TAGS.finditer(_page())]
    if len(tags) != 2:
        raise RuntimeError(f"Gradio's page has one script and one style sheet; got {tags}")
    return tags


def file_names(kinds: Iterable[str]) -> list[str]:
    """The names of all files that a page with components of these kinds takes, except those of
    `page_tags`, in the order in which Gradio asks for them."""
    tagged = PAGE_TAGS.findall(_page())
    script = next(name for name in tagged if name.endswith(".js"))
    names = list(_imported(script, START, COMPONENTS))
    start, components = (
        next(name for name in names if name.startswith(beginning) and name.endswith(".js"))
        for beginning in (START, COMPONENTS)
    )
    names += _imported(start, LAYOUT)
    for kind in kinds:
        names += _of_component(components, kind)
    return [name for name in dict.fromkeys(names) if name not in tagged]


def tags(names: Iterable[str]) -> str:
    """Tags that load these files, as Gradio's script would write them."""

    def tag(name: str) -> str:
        sort = "stylesheet" if name.endswith(".css") else "modulepreload"
        return f'<link rel="{sort}" crossorigin href="./{FOLDER}/{name}">'

    return "".join(map(tag, names))


def assets(names: Iterable[str]) -> Mapping[str, Asset]:
    """These files by their paths on the server."""
    return {
        f"/{FOLDER}/{name}": Asset(plain=_bytes(name), type=TYPES[Path(name).suffix])
        for name in (*PAGE_TAGS.findall(_page()), *names)
    }


def _page() -> str:
    return (FRONTEND / "index.html").read_text("utf-8")


def _bytes(name: str) -> bytes:
    return (FRONTEND / FOLDER / name).read_bytes()


def _imported(script: str, *beginnings: str) -> Iterator[str]:
    """The files whose names begin so that a script imports later, with all that they need."""
    for name, places in re.findall(LATER, _bytes(script).decode()):
        if name.startswith(beginnings):
            yield from (name, *_at(script, places))


def _of_component(script: str, kind: str) -> Iterator[str]:
    entry = re.search(rf"[{{,]{kind}:{{.*?component:\(\)=>.*?{LATER}", _bytes(script).decode())
    if entry:
        yield from (entry[1], *_at(script, entry[2]))


@cache
def _files_listed(script: str) -> list[str]:
    listed = LISTED.search(_bytes(script).decode())
    return re.findall(r'"\./([^"]+)"', listed[1]) if listed else []


def _at(script: str, places: str) -> Iterator[str]:
    return (_files_listed(script)[int(place)] for place in places.split(",") if place)
