"""The page as files that need no server: a folder for any web server, or one HTML file.

The network then runs in the visitor's browser (`browser/`). The layout is that of the server's
page, as Gradio describes it. Sentences are written as calls, see `said_later`: the browser says
them in its visitor's language. One file may open with a run in place of the model's example.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from transformer.checks import InvalidRequest, check_choice, check_names
from transformer.inference.model import Model
from transformer.messages import (
    catalogue,
    language_names,
    languages,
    mark,
    said_later,
    say,
    speaking,
)
from transformer.messages.templates import glossary, json_in_script, script_catalogue
from transformer.runs.head_data import head_view
from transformer.runs.run import Run
from transformer.server.fields import SETTINGS, cards, fields_schema, request_of_run
from transformer.server.kept.experiments import Experiments
from transformer.server.kept.page_models import (
    first_controls,
    html_of,
    model_card,
    offered_texts,
)
from transformer.server.kept.page_runs import run_facts
from transformer.server.kept.service import Service
from transformer.server.kept.store import RUNS
from transformer.server.learn.lessons import lesson, lesson_of, lessons, offered
from transformer.server.page.first_answers import first_answers
from transformer.server.page.in_browser import KERNEL, model_files, versioned
from transformer.server.page.layout import description
from transformer.server.page.modules import EAGER, LATER, MODULES, PAGE, PLOTLY_JS, SENTENCES, STYLE
from transformer.server.page.presses import example_page
from transformer.server.page.resources import written
from transformer.views.declaration import Answer
from transformer.views.export import MAX_EXPORT_BYTES, file_name
from transformer.views.export.bundle import bundle, read_module, read_style
from transformer.views.export.one_file import as_text, door, filled, opener
from transformer.views.registry import VIEWS

START, WORKER = "browser/page/start.js", "browser/page_worker.js"
IMPORTS = {PAGE: "page", LATER: "later", START: "start", WORKER: "worker"}  # of scripts
LATE = ("kernel.wasm", "plotly.js.gz")  # of one file: without them the page opens
OFFLINE = "browser/page/offline.js"
SCHEMA = "schema.json"
# What the page opens with, as browser/page/folder.js reads it: fetched while the page is still
# read, and packed, since a plain web server sends files as they are.
PACKED = (SCHEMA, STYLE, PAGE, START)
DOOR = """<script>
globalThis.later = "%s";
globalThis.texts = [`words/${spokenHere}.json.gz`, "site.json.gz", %s].map((name) => fetch(name));
</script>
"""
EVENTS = "browser/page/events.js"  # is no file
PAGE_STYLE = "browser/page/page.css"
SPOKEN = "speak(globalThis.spoken.words);\n"  # in place of a language's sentences
MOUNTED = re.compile(r'import\("(\w+)"\)\]\).*?modules\["([^"]+)"\]\.(mount[.\w]*)', re.DOTALL)
PROPERTIES = (
    "value", "label", "choices", "lines", "minimum", "maximum", "step", "container", "variant",
    "size", "interactive", "id", "props",
)  # fmt: skip
# Components in whose place a sentence says what they need.
NEEDS_SERVER = mark("only a server can show this, and this page has none")
VIEWS_OF_SERVER = ("view-corpus",)
LEARN = mark(
    "Training a network, a class, a checkpoint or a corpus of your own need a server. "
    "Its page is the same: make run starts it."
)
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Page:
    """The page of these models. Raises ValueError for models that no page can offer."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.service = Service(models, trainings=0)
        turns = self.service.shares["experiments"]
        self.service.queries = Experiments(self.service.model, turns, seconds=math.inf)
        self._models = self.service.models
        with said_later() as sentences:
            self._config = description(self.service)
            self._weights = dict(self._model_files())
            site = self._written(self._parts())
        self._sentences = frozenset(sentences)
        self._files = self._code | self._said(site, self._sentences)

    def write_folder(self, folder: Path) -> int:
        """Write the files in place of those of an earlier page; returns their bytes.

        Raises ValueError for a folder with other files, OSError if writing fails.
        """
        if folder.is_dir() and any(folder.iterdir()) and not (folder / "kernel.wasm").is_file():
            raise ValueError(f"{folder} holds other files; give a new folder")
        shutil.rmtree(folder, ignore_errors=True)
        files = {SCHEMA: self._schema().encode()} | self._files
        files |= {f"{name}.gz": _zipped(files.pop(name)) for name in PACKED}
        for name, content in (files | self._weights).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        fetched = DOOR % (LATER, ", ".join(f'"{name}.gz"' for name in PACKED))
        page = self._page(fetched, f"<script>\n{bundle('browser/page/folder.js')}</script>")
        (folder / "index.html").write_text(page, encoding="utf-8")
        (folder / "offline.js").write_text(_offline(page, files), encoding="utf-8")
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    def write_file(self, path: Path) -> int:
        """Write one HTML file; returns its bytes. Raises OSError if writing fails."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(), encoding="utf-8")
        return path.stat().st_size

    def text(self, run: Run | None = None, site: str = "", head: int = 0) -> str:
        """One HTML file.

        run: of the first model; the page opens with it in place of the model's example. site, head:
        the head that is shown of it, by default the model's first. Raises ValueError for a run of
        another model, for a site or head that it does not have.
        """
        files, typed = dict(self._files), {}
        if run is not None:
            check_choice("model", run.model, [next(iter(self._models))])
            typed = _settings_of_run(run)
            at = (
                {}
                if not site
                else {"site": str(head_view(run, site, head).site), "head": str(head)}
            )
            files |= self._opening_with(run, at)
        style = files.pop(STYLE).decode()
        texts = {name: as_text(content) for name, content in files.items()}
        later = {name: texts.pop(name) for name in LATE} | self._weights_as_text
        return self._page(door(style, self._schema(typed)), opener(texts, IMPORTS, later))

    def _opening_with(self, run: Run, head: Mapping[str, str]) -> dict[str, bytes]:
        """The contents of a page that opens with a run, by file."""
        name, model = next(iter(self._models.items()))
        key = self.service.store.put(run)
        with said_later() as sentences:
            facts = run_facts(run, key, model)
            facts |= {"example": True, "opening": facts["opening"] | head}
            site = self._written(self._parts(facts, _settings_of_run(run)), {key: f"run of {name}"})
        self.service.budget.discard(RUNS, key)
        return self._said(site, self._sentences | sentences)

    @cached_property
    def _weights_as_text(self) -> dict[str, str]:
        return {
            name: as_text(_without_neurons(content))
            if name.endswith("frames.json.gz")
            else as_text(content, is_float16=name.endswith(".safetensors"))
            for name, content in self._weights.items()
        }

    @cached_property
    def _code(self) -> dict[str, bytes]:
        """Scripts, style and kernel, by name."""
        scripts = {
            name: MODULES.scripts[name].text.replace(SENTENCES, SPOKEN, 1) for name in (PAGE, LATER)
        }
        held = re.findall(r'^  "([^"]+)": module\d+,$', scripts[PAGE], re.MULTILINE)
        scripts[START] = EAGER + bundle(START, read=self._read, base="page", held=held)
        scripts[WORKER] = bundle(WORKER)
        style = MODULES.asset(STYLE).plain.decode() + read_style(PAGE_STYLE)
        return {
            **{name: text.encode() for name, text in scripts.items()},
            STYLE: style.encode(),
            "kernel.wasm": KERNEL.read_bytes(),
            "plotly.js.gz": _zipped(read_module(PLOTLY_JS).encode()),
        }

    def _said(self, site: bytes, sentences: frozenset[str]) -> dict[str, bytes]:
        """The page's contents, and these sentences in each language."""
        spoken = {name: _json(self._spoken(name, sentences)) for name in languages()}
        return {
            "site.json.gz": _zipped(site),
            **{f"words/{name}.json.gz": _zipped(words) for name, words in spoken.items()},
        }

    def _read(self, name: str) -> str:
        return _events_of(self._config) if name == EVENTS else read_module(name)

    def _schema(self, typed: Mapping[str, Any] = NOTHING) -> str:
        """What the page's scripts read first. typed: what its controls hold."""
        schema = fields_schema() | {
            "cards": cards(self._models),
            "lessons": self._lessons(),
            "controls": first_controls(next(iter(self._models.values()))) | dict(typed),
        }
        return json_in_script(schema)

    def _page(self, door: str, opens: str) -> str:
        """index.html. door: what it needs first; opens: what starts it."""
        version = hashlib.sha256(b"".join(self._files.values())).hexdigest()[:16]
        parts = {
            "languages": json_in_script({language_names(lang)[0]: lang for lang in languages()}),
            "version": version,
            "door": door,
            "opens": opens,
        }
        return filled(parts)

    def _parts(
        self, run: Mapping[str, Any] = NOTHING, typed: Mapping[str, Any] = NOTHING
    ) -> dict[str, Any]:
        """The content that no language changes. run, typed: what the first model's page shows, and
        its controls hold, in place of the example."""
        pages = {name: example_page(self.service, "", name, {}) for name in self._models}
        first = pages[next(iter(pages))]
        first["run"], first["first"] = run or first["run"], first["first"] | dict(typed)
        for page in pages.values():
            page["controls"]["card"]["value"] = ""  # each language has its own
        texts, batches = offered_texts(self._models.values())
        return {
            "layout": _layout_of(self._config, typed),
            "models": {
                name: {
                    "page": page,
                    "files": {
                        file: len(content)
                        for file, content in self._weights.items()
                        if file.startswith(f"models/{name}/")
                    },
                }
                for name, page in pages.items()
            },
            "offered": sorted(texts),
            "batches": sorted(batches),
            "answers": first_answers(self.service, first["run"]),
        }

    def _written(self, parts: Mapping[str, Any], names: Mapping[str, str] = NOTHING) -> bytes:
        """As JSON; ids of stored runs, which are drawn anew each time, become names. names: of
        other ids."""
        named = dict(names)
        for name in self._models:
            run, batch = self.service.example(name)
            named |= {run: f"run of {name}", batch: f"batch of {name}"}
        text = _json(parts).decode()
        for key, name in named.items():
            text = text.replace(key, name)
        return text.encode()

    def _lessons(self) -> list[str]:
        """Those that show nothing of the tab Learn."""
        return [
            name
            for name in offered(self._models)
            if not any(step.state.get("tab") == "learn" for step in lesson_of(name).steps)
        ]

    def _spoken(self, name: str, sentences: frozenset[str]) -> dict[str, Any]:
        """What is said in a language, these sentences included."""
        with speaking(name):
            names = self._lessons()
            every = lessons(self.service, {})["lessons"]
            return {
                "tag": catalogue(name).tag,
                "words": script_catalogue(name, catalogue(name).scripts | sentences),
                "glossary": glossary(name),
                "cards": {key: html_of(model_card(model)) for key, model in self._models.items()},
                "lessons": [each for each in every if each["name"] in names],
                "decks": {name: lesson(self.service, {"name": name}) for name in names},
            }

    def _model_files(self) -> Iterator[tuple[str, bytes]]:
        for name in self._models:
            files = model_files(self.service, name, dtype="float16")
            for address, content in versioned(name, files).items():
                yield f"models/{address}", content


def _offline(page: str, files: Mapping[str, bytes]) -> str:
    """The service worker, which keeps these files and the page, index.html."""
    contents = b"".join([page.encode(), *files.values()])
    version = hashlib.sha256(contents).hexdigest()[:16]
    names = "".join(f", {json.dumps(name)}" for name in files)
    return read_module(OFFLINE).replace(" /*files*/", names).replace("/*version*/", version)


def _without_neurons(frames: bytes) -> bytes:
    """A file of frames without the neurons' sentences, a tenth of a megabyte."""
    return _zipped(json.dumps(json.loads(gzip.decompress(frames)) | {"neurons": None}).encode())


def _layout_of(config: Mapping[str, Any], typed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The components as browser/page/layout.js draws them. typed: what controls hold, by name."""
    every = {component["id"]: component for component in config["components"]}

    def described(node: Mapping[str, Any]) -> dict[str, Any]:
        component = _without_server(every[node["id"]])
        props = {
            name: component["props"][name]
            for name in PROPERTIES
            if component["props"].get(name) is not None
        }
        classes = component["props"].get("elem_classes") or ()
        if component["type"] != "html":
            names = [
                component["props"].get("elem_id"),
                *(it.removeprefix("setting-") for it in classes),
            ]
            for name in filter(typed.__contains__, names):
                props["value"] = typed[name]
        layout = {
            "type": component["type"],
            "id": node["id"],
            "name": component["props"].get("elem_id"),
            "classes": " ".join(classes),
            "props": props,
            "children": drawn(node),
        }
        if script := component["props"].get("js_on_load"):
            mounted = MOUNTED.search(script.replace('import("page"), ', "", 1))
            assert mounted is not None
            layout["script"] = dict(
                zip(("bundle", "module", "mount"), mounted.groups(), strict=True)
            )
        return layout

    def drawn(node: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [described(child) for child in node.get("children") or ()]

    return drawn(config["layout"])


def _without_server(component: Mapping[str, Any]) -> Mapping[str, Any]:
    """A component, or a sentence in place of what only a server can draw."""
    name = component["props"].get("elem_id")
    if name != "learn" and name not in VIEWS_OF_SERVER:
        return component
    says = say(LEARN)
    if name != "learn":
        title = say(VIEWS[name.removeprefix("view-")].title)
        says = say(
            "{sentence}.", sentence=say("{title}: {part}", title=title, part=say(NEEDS_SERVER))
        )
    return {
        "id": component["id"],
        "type": "html",
        "props": {"elem_id": name, "value": html_of(says)},
    }


def _events_of(config: Mapping[str, Any]) -> str:
    """A module with the page's events, all of which are scripts."""

    def written_event(event: Mapping[str, Any]) -> str:
        then = [
            following
            for following in config["dependencies"]
            if following["trigger_after"] == event["id"]
        ]
        lists = {name: event[name] for name in ("targets", "inputs", "outputs")}
        after = ", ".join(map(written_event, then))
        return f"{{ ...{json.dumps(lists)}, js: {event['js']}, then: [{after}] }}"

    first = [event for event in config["dependencies"] if event["trigger_after"] is None]
    return "export const events = [\n" + ",\n".join(map(written_event, first)) + ",\n];\n"


def _zipped(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


def _json(value: Any) -> bytes:
    """JSON; arrays as in `resources.numbers`."""
    return written(value)[0]


def _settings_of_run(run: Run) -> dict[str, Any]:
    """Values of the page's boxes and settings where a run is shown, by name."""
    return {
        name: value
        for name, value in request_of_run(run).items()
        if name == "text" or name in SETTINGS
    }


def page_maker(service: Service) -> Callable[[Mapping[str, Any]], Answer]:
    """Answer `offline_page`: {"name", "type", "text"} of a file with a kept run and its network.

    data: "run", and "site" and "head" that it opens on. Raises ValueError for a network of a visit
    and for one that is too large. The last network's page is kept.
    """
    lock = threading.Lock()
    pages: dict[str, Page] = {}

    def offline_page(data: Mapping[str, Any]) -> Answer:
        check_names("offline_page", data, ("run", "site", "head"))
        run = service.store.run(data.get("run"))
        check_choice("model", run.model, service.models)
        model = service.models[run.model]
        size = 2 * model.n_parameters  # bytes
        if size > MAX_EXPORT_BYTES:
            raise InvalidRequest(
                "too_large",
                "this network has {size} MB of weights; the page sends at most {most} MB: "
                "`run.to_html(path, model)` has no limit",
                size=size // 10**6,
                most=MAX_EXPORT_BYTES // 10**6,
            )
        with lock:
            if run.model not in pages:
                pages.clear()
                pages[run.model] = Page([model])
            text = pages[run.model].text(run, data.get("site", ""), data.get("head", 0))
        return {"name": file_name(run, "html"), "type": "text/html", "text": text}

    return offline_page
