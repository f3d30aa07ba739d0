"""Modules as one text: they run as they do apart, and what cannot be put so is refused."""

from __future__ import annotations

import re
import subprocess

import node
import pytest

from transformer.views.export import html, lesson, notebook
from transformer.views.export.bundle import PACKAGE, bundle, needed_by, read_module

PARTS = {
    "a/start.js": """import "./effect.js";
import {
  double as twice,
  Box,
} from "../b/sums.js";

const count = 1; // another module's name
console.log(twice(count + 20), new Box().size, globalThis.effects);
""",
    "a/effect.js": """import { double } from "../b/sums.js";
globalThis.effects = (globalThis.effects ?? 0) + double(1);
""",
    "b/sums.js": """const count = 2;
export const double = (one) => count * one;
export function unused() {}
export class Box {
  size = 3;
}
""",
}


def ran(script: str) -> str:
    command = [str(node.find()), "--input-type=module", "-"]
    done = subprocess.run(
        command, input=script, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_a_bundle_does_what_its_modules_do_and_each_runs_once():
    assert needed_by("a/start.js", read=PARTS.__getitem__) == [
        "b/sums.js",
        "a/effect.js",
        "a/start.js",
    ]
    assert ran(bundle("a/start.js", read=PARTS.__getitem__)) == "42 3 2\n"


def test_a_bundle_may_give_what_each_of_its_modules_exports():
    text = bundle("a/start.js", "b/sums.js", read=PARTS.__getitem__, with_exports=True)
    look = 'console.log(Object.keys(modules).join(), modules["b/sums.js"].double(4));'
    assert ran(text + look) == "42 3 2\nb/sums.js,a/effect.js,a/start.js 8\n"


@pytest.mark.parametrize(
    "line",
    [
        'import * as all from "./x.js";',
        'export * from "./x.js";',
        "export default 1;",
        ";export default 1;",
        "export let changing = 1;",
        'const text = "</SCRIPT>";',
        'const text = "<!--";',
    ],
)
def test_what_cannot_stand_in_one_inline_module_is_refused(line):
    parts = {"a.js": f"const one = 1;\n{line}\n", "x.js": ""}
    with pytest.raises(ValueError, match=re.escape(line.split("<")[0])):
        bundle("a.js", read=parts.__getitem__)


@pytest.mark.parametrize("name", [html.SCRIPT, lesson.SCRIPT, notebook.SCRIPT])
def test_pages_without_a_server_draw_with_the_pages_own_modules(name):
    needed = needed_by(name)
    assert "web/head_grid.js" in needed
    own = {one.name for one in (PACKAGE / "views/export/static").glob("*.js")}
    assert {one for one in needed if "/export/static/" in one} <= {
        f"views/export/static/{one}" for one in own
    }
    # Nothing draws but Plotly and one function for canvases.
    drawing = [one for one in needed if "getContext" in read_module(one)]
    assert set(drawing) <= {"web/colours.js", "web/labels.js"}
    script = bundle(name)
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    ran(f"if (false) {{ {script} }}")
