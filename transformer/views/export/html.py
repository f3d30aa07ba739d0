"""Runs as one HTML file that needs nothing else: the page's own parts, which draw the numbers of a
run in place of asking a server or a network.

The numbers (`recorded.py`) answer the page's questions by the functions of a page without a server
(browser/questions), in the same figures (`views/frames.py`). Token text is in the compressed data
only and is shown through `textContent` and as escaped Plotly labels. All words are said in the
page, in the language of its reader.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from transformer.messages import (
    language_names,
    languages,
    said_later,
    say,
)
from transformer.messages.sources import of_script
from transformer.messages.templates import json_in_script, script_catalogue
from transformer.model.positions import POSITIONS
from transformer.runs.batch import Batch
from transformer.runs.external_attention import GIVEN
from transformer.runs.head_data import head_view
from transformer.runs.run import Run
from transformer.views.declaration import View, tab_name, tabs
from transformer.views.drawing.style import dark_colours
from transformer.views.export.bundle import bundle, read_module, read_style
from transformer.views.export.one_file import as_text, door, filled, opener
from transformer.views.export.packing import LEVEL, Pack
from transformer.views.export.recorded import as_batch, batch_content, content, drawn_by_default
from transformer.views.frames import recorded_frames
from transformer.views.parameters import SELECTION, Choice, Text
from transformer.views.registry import VIEWS, own_views

SCRIPT = "views/export/static/saved.js"
PANEL = "web/view.js"  # of views without a script
NUMBERS = "run.pack"  # the file's name in the page
STYLES = (
    "web/theme.css",
    "server/static/pictures.css",
    "server/static/page.css",
    "server/static/tokens.css",
    "server/static/header.css",
    "views/attention/attention.css",
    "views/masks/masks.css",
    "views/model/model.css",
    "views/positions/positions.css",
    "views/prediction/prediction.css",
)
PAGE_STYLES = ("browser/page/page.css", "views/export/static/saved.css")
PLOTLY = "server/static/vendor/plotly-cartesian.min.js"
# The views that a run's numbers are enough for; of other folders, all.
DEFAULT_VIEWS = (
    "attention", "head_metrics", "attention_math", "future", "masks", "positions", "prediction",
    "architecture",
)  # fmt: skip
ROOT = re.compile("^:root(?= )", re.MULTILINE)  # a rule of the whole page


def write(item: Run | Batch, path: Path) -> None:
    """Save the page. Raises OSError if the file cannot be written."""
    path.write_text(page(item), encoding="utf-8")


def page(item: Run | Batch, site: str = "", head: int = 0) -> str:
    """The whole page as text; of a batch it shows the text that is chosen.

    site, head: the head that it opens with; by default the first. Raises ValueError for a site or
    head that the run does not have.
    """
    pack, runs = Pack(), [item] if isinstance(item, Run) else list(item)
    views = _views_of(runs)
    with said_later() as sentences:
        texts = [content(run, pack, str(row)) for row, run in enumerate(runs)]
        batch = as_batch(item) if isinstance(item, Run) else item
        numbers = {
            "texts": texts,
            "batch": batch_content(batch, texts, pack),
            "frames": recorded_frames(runs[0], batch),
        }
        layout = [_column("left", [_script("tokens")]), _column("right", [_tabs(views)])]
        named = [language_names(lang) for lang in languages()]
        header = _script("header", languages=named)
        site_text = json.dumps({"layout": [header, _row("columns", layout)]})
    for run, text in zip(runs, texts, strict=True):
        if site:
            at = head_view(run, site, head).site
            text["run"]["opening"] = {"site": str(at), "head": str(head)}
    schema = json_in_script(_schema(views))
    sentences |= {json.loads(text) for text in re.findall(r'"(?:[^"\\]|\\.)*"', schema)}
    said, script = _script_of(tuple(_module_of(view) for view in views))
    words = {
        f"words/{name}.json.gz": _zipped(
            {"words": script_catalogue(name, said | sentences), "glossary": {}}
        )
        for name in languages()
    }
    site_file = gzip.compress(site_text.encode(), mtime=0)
    files = {NUMBERS: pack.whole(numbers), "site.json.gz": site_file, **words}
    packed = {name: as_text(content, level=LEVEL) for name, content in files.items()}
    held = {"plotly.js": _plotly(), SCRIPT: script} | packed
    parts = {
        "languages": json_in_script({language_names(lang)[0]: lang for lang in languages()}),
        "version": hashlib.sha256("".join(held.values()).encode()).hexdigest()[:16],
        "door": door(_style(), schema),
        "opens": opener(held, {SCRIPT: "start"}),
    }
    return filled(parts)


def _zipped(value: Any) -> bytes:
    return gzip.compress(json.dumps(value, sort_keys=True).encode(), mtime=0)


# ---- what the page is made of ----


def _views_of(runs: list[Run]) -> list[View]:
    """The views that these runs have something for, in the page's order."""
    config = runs[0].config
    foreign = runs[0].stopped == GIVEN
    lacks = {
        "positions": not (runs[0].trace.embed and POSITIONS[config.positions].adds),
        "prediction": foreign or config.head != "tokens",
        "architecture": foreign,
    }
    names = [name for name in DEFAULT_VIEWS if not lacks.get(name)]
    names += [view.name for view in own_views() if drawn_by_default(view, runs[0])]
    every = tabs(view for name, view in VIEWS.items() if name in names)
    return [view for group in every.values() for view in group]


def _is_own(view: View) -> bool:
    return view.name not in DEFAULT_VIEWS


def _schema(views: list[View]) -> dict[str, Any]:
    names = {tab_name(tab): tab for tab in tabs(views)}
    tab = Choice(name="tab", options=names, default=next(iter(names)))
    page_fields = (tab, *SELECTION, Text(name="more"))
    # a view of another folder is drawn by its defaults
    plain = {"script": False, "controls": {}}
    return {
        "views": [view.schema() | (plain if _is_own(view) else {}) for view in views],
        "page": {field.name: field.schema() for field in page_fields},
        "dark": dark_colours(),
    }


def _node(kind: str, name: str, children: list[Any], **more: Any) -> dict[str, Any]:
    """A component as browser/page/layout.js draws it."""
    return {
        "type": kind, "id": name, "name": name, "classes": "", "props": {}, "children": children
    } | more  # fmt: skip


def _column(name: str, children: list[Any]) -> dict[str, Any]:
    return _node("column", name, children)


def _row(name: str, children: list[Any]) -> dict[str, Any]:
    return _node("row", name, children)


def _script(
    name: str, module: str = SCRIPT, mount: str | None = None, **props: Any
) -> dict[str, Any]:
    """The component that a module exports as `mount`, or as one of several."""
    of = "mount" if mount == "" else f"mount.{mount or name}"
    script = {"bundle": "start", "module": module, "mount": of}
    return _node("html", name, [], props={"props": props}, script=script)


def _tabs(views: list[View]) -> dict[str, Any]:
    items = []
    for tab, group in tabs(views).items():
        parts = [_script("steps")] if any(view.name == "prediction" for view in group) else []
        parts += [_view(view) for view in group]
        name = tab_name(tab)
        items.append(_node("tabitem", f"tab {name}", parts, props={"id": name, "label": say(tab)}))
    return _node("tabs", "tabs", items)


def _view(view: View) -> dict[str, Any]:
    folded = view.name if view.folded else ""
    if _module_of(view) == PANEL:
        own = {"view": view.name, "folded": folded}
        return _script(f"view-{view.name}", PANEL, "panel", **own)
    options = {"folded": folded, "predicts": view.predicts}
    return _script(view.name, _module_of(view), "", **options)


def _module_of(view: View) -> str:
    has_script = view.has_script() and not _is_own(view)
    return f"views/{view.folder.name}/{view.name}.js" if has_script else PANEL


_SAID = """\
import { speak } from "./messages.js";
speak(globalThis.spoken.words);
"""


@cache
def _script_of(modules: tuple[str, ...]) -> tuple[set[str], str]:
    """The sentences that the page's scripts say, and the scripts as the text of a file."""
    text = bundle(SCRIPT, *modules, said=_SAID, with_exports=True)
    said = {sentence if isinstance(sentence, str) else sentence[0] for sentence in of_script(text)}
    return said, as_text(text.encode(), level=LEVEL)


@cache
def _plotly() -> str:
    return as_text(read_module(PLOTLY).encode())


@cache
def _style() -> str:
    """As modules.py makes it: three times :root makes a rule outweigh those of PAGE_STYLES."""
    rules = ROOT.sub("&", "\n".join(map(read_style, STYLES)))
    return "\n".join([f":root:root:root {{\n{rules}\n}}", *map(read_style, PAGE_STYLES)])
