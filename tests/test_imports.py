"""Imports go one way: model -> inference -> checkpoint -> figures -> ui -> app."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "transformer").rglob("*.py"))

# Which rooms of the package each room may import; a room may always import itself.
MAY_IMPORT = {
    "model": set(),
    "text": set(),
    "inference": {"model", "text"},
    "checkpoint": {"model", "text", "inference"},
    "adapters": {"model", "text", "inference", "checkpoint"},
    "training": {"model", "text", "inference", "checkpoint"},
    "figures": {"model", "inference"},
    "ui": {"model", "text", "inference", "checkpoint", "figures", ""},
    "__main__": {"model", "text", "inference", "checkpoint", "figures", ""},
    # transformer/__init__.py, the public face; it names what draws runs, for the first picture
    "": {"model", "text", "inference", "checkpoint", "figures"},
}
# Libraries that only some rooms may know.
KNOWN_BY = {
    "gradio": {"ui"},
    "spaces": {"ui"},
    "plotly": {"figures", "ui", "training", "__main__"},
    "tokenizers": {"text"},
    "safetensors": {"checkpoint", "adapters", "training"},
    "accelerate": {"training"},
    "datasets": {"training"},
    "transformers": set(),
}
# Figures know the network's types, never its modules.
# (model.masks, model.positions and model.shapes: for their pure functions alone.)
TYPES_ONLY = {
    "transformer.model.config",
    "transformer.model.masks",
    "transformer.model.positions",
    "transformer.model.shapes",
    "transformer.model.trace",
}


def room(path):
    first = path.relative_to(ROOT / "transformer").with_suffix("").parts[0]
    return "" if first == "__init__" else first


def imports(path):
    """Every module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import; needed: the full name"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                is_module = (ROOT / whole.replace(".", "/")).with_suffix(".py").is_file()
                yield whole if is_module or node.module == "transformer" else node.module


def room_of_module(name):
    """ "model" for transformer.model.trace; "" for the package itself and its public names."""
    parts = name.split(".")[1:]
    is_room = parts and (
        (ROOT / "transformer" / parts[0]).is_dir()
        or (ROOT / "transformer" / f"{parts[0]}.py").is_file()
    )
    return parts[0] if is_room else ""


def test_there_are_files_to_look_at_and_a_rule_for_each():
    assert len(FILES) > 10
    assert {room(path) for path in FILES} <= set(MAY_IMPORT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_what_its_room_may(path):
    here = room(path)
    for name in imports(path):
        library = name.split(".")[0]
        if library == "transformer":
            there = room_of_module(name)
            assert there == here or there in MAY_IMPORT[here], f"{here} must not import {name}"
            if here == "figures" and there == "model":
                assert name in TYPES_ONLY, f"figures must not import {name}"
        else:
            allowed = KNOWN_BY.get(library)
            assert allowed is None or here in allowed, f"{here} must not import {library}"


def test_the_rule_sees_every_way_of_importing(tmp_path):
    path = tmp_path / "sample.py"
    path.write_text(
        "import gradio as gr\n"
        "from transformer.model import trace\n"
        "from transformer import Run\n"
        "from transformer.text import Tokenizer\n"
        "def f():\n    import transformer.checkpoint\n"
    )
    found = list(imports(path))
    assert found == [
        "gradio",
        "transformer.model.trace",
        "transformer.Run",
        "transformer.text",
        "transformer.checkpoint",
    ]
    rooms = [room_of_module(name) for name in found[1:]]
    assert rooms == ["model", "", "text", "checkpoint"]
