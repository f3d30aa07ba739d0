"""Imports go one way: command_line, checks, messages -> model -> interventions -> runs -> inference
-> analysis -> views -> server: http -> kept -> learn -> page -> classroom, programs."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "transformer").rglob("*.py"))

WORDS = {"messages", "checks", "command_line"}
NETWORK = {"model", "interventions", "network_words"} | WORDS
LOADED = NETWORK | {"runs", "tokenizer", "plain_text", "inference"}
KEPT = LOADED | {"analysis", "views", "checkpoint", "learning", "server/fields", "server/http"}
SERVER_ROOMS = ("http", "kept", "learn", "page", "classroom", "programs")
# Which rooms of the package each room may import; a room may always import itself.
MAY_IMPORT = {
    "messages": {"checks", "command_line"},
    "command_line": set(),
    "checks": set(),
    "model": {"checks", "messages"},
    "network_words": {"messages"},
    "interventions": {"model", "network_words"} | WORDS,
    "tokenizer": WORDS,
    "plain_text": WORDS,
    "runs": NETWORK,
    "checkpoint": NETWORK | {"tokenizer"},
    "inference": NETWORK | {"runs", "tokenizer", "checkpoint", "plain_text"},
    "analysis": LOADED,
    "corpus command": LOADED | {"analysis", "training"},
    "training": LOADED | {"checkpoint"},
    "views": LOADED | {"analysis"},
    "learning": LOADED | {"analysis", "training", "checkpoint"},
    "lessons": LOADED | {"analysis", "learning"},
    "server/fields": LOADED | {"views"},
    "server/http": LOADED | {"views", "server/fields"},
    "server/kept": KEPT,
    "server/learn": KEPT | {"lessons", "server/kept"},
    "server/page": KEPT | {"server/kept", "server/learn"},
    "server/classroom": KEPT | {"lessons", "server/kept", "server/learn", "server/page"},
    "server/programs": KEPT | {"server/kept", "server/page"},
    "server": LOADED | {f"server/{name}" for name in SERVER_ROOMS},
    "check_lessons": KEPT | {"lessons", "server/kept", "server/learn"},
    "serve": KEPT | {"lessons", "server", "server/kept", "server/page", "server/programs"},
    "static": LOADED | {"checkpoint", "serve", "server/page"},
    "__main__": LOADED | {"analysis", "checkpoint", ""},
    # transformer/__init__.py, the public face; it names what draws runs, for the first picture
    "": LOADED | {"analysis", "views", "checkpoint"},
}
# The methods of a run that draw it import what they draw with, each when it is called.
LAZY = ROOT / "transformer/runs/drawing.py"
# The views of a folder are imported by their names.
BY_NAME = {ROOT / "transformer/views/registry.py"}
IMPORTS_BY_NAME = {"import_module", "__import__", "find_spec", "run_module"}
# Libraries that only some rooms may know.
KNOWN_BY = {
    "babel": {"messages"},
    "gradio": {"server/page", "server/programs"},
    "jinja2": {"tokenizer"},
    "plotly": {"views", "training"},
    "tokenizers": {"tokenizer"},
    "sentencepiece": {"tokenizer"},
    "huggingface_hub": {"checkpoint", "training"},
    "safetensors": {"checkpoint", "training"},
    "accelerate": {"training"},
    "datasets": {"training"},
    "ray": {"analysis"},
    "transformers": set(),
}


def room(path):
    parts = path.relative_to(ROOT / "transformer").with_suffix("").parts
    if parts == ("analysis", "corpus", "__main__"):  # it reads what a training reads
        return "corpus command"
    return "" if parts[0] == "__init__" else _room(parts)


def _room(parts):
    """server/http for its modules: of the server each folder is a room, elsewhere all of them."""
    inside = len(parts) > 1 and parts[0] == "server" and parts[1] != "__init__"
    return "/".join(parts[:2]) if inside else parts[0]


def module_of(path):
    """transformer.model.trace for its file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name):
    place = ROOT / name.replace(".", "/")
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


@cache
def imports(path):
    """Every module that a file imports, wherever in it; of LAZY only what it begins with."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return tuple(_imports(path, tree.body if path == LAZY else ast.walk(tree)))


def _imports(path, nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import; needed: the full name"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if is_module(whole) or node.module == "transformer" else node.module


def room_of_module(name):
    """ "model" for transformer.model.trace; "" for the package itself and its public names."""
    parts = name.split(".")[1:]
    return _room(parts) if parts and is_module(f"transformer.{parts[0]}") else ""


def offences(path):
    """Imports of a file that its room may not have, or that are hidden from the reader."""
    here, source = room(path), path.read_text(encoding="utf-8")
    if "TYPE_CHECKING" in source and path != LAZY:
        yield "TYPE_CHECKING"
    if path not in BY_NAME:
        yield from by_name(source)
    for name in imports(path):
        library = name.split(".")[0]
        if library == "transformer":
            there = room_of_module(name)
            if there != here and there not in MAY_IMPORT[here]:
                yield name
        elif here not in KNOWN_BY.get(library, {here}):
            yield name


def by_name(source):
    """Functions in a source that import a module by its name in a string."""
    for node in ast.walk(ast.parse(source)):
        name = getattr(node, "id", None) or getattr(node, "attr", None)
        if isinstance(node, ast.ImportFrom):
            yield from IMPORTS_BY_NAME & {alias.name for alias in node.names}
        elif name in IMPORTS_BY_NAME:
            yield name


# Whose modules each folder's scripts may import; the first folder that a script is in counts.
SCRIPTS = {
    "web": ("web",),
    "views/export/static": ("web", "views", "browser"),  # pages of their own, which no other opens
    "views": ("web", "views"),
    "browser": ("web", "browser"),
}


def test_a_views_scripts_never_import_the_pages_own():
    package = ROOT / "transformer"
    for path in (
        path for room in ("web", "views", "browser") for path in package.glob(f"{room}/**/*.js")
    ):
        allowed = next(
            them for room, them in SCRIPTS.items() if path.is_relative_to(package / room)
        )
        for name in re.findall(r'from "(\..*?)"', path.read_text(encoding="utf-8")):
            there = (path.parent / name).resolve().relative_to(package)
            assert there.parts[0] in allowed, f"{path} imports {name}"


def test_imports_follow_the_rooms_and_form_no_cycle():
    found = {str(path): [*offences(path)] for path in FILES}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}
    edges = {module_of(path): {*imports(path)} - {"transformer"} for path in FILES}
    for graph in (edges, MAY_IMPORT):
        TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize(
    "source",
    ["importlib.import_module('a')", "__import__('a')", "from importlib import import_module as f"],
)
def test_an_import_by_a_string_is_seen(source):
    assert [*by_name(source)]
    assert not [*by_name("import importlib.metadata")]
