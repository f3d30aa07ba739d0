"""Whatever a function of the page or of the API is given: an answer or a sentence."""

from __future__ import annotations

import inspect
import json
import math
from typing import Any

import gradio as gr
import loops
import pytest
import serving
from asking import asking
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from transformer import Model
from transformer.ui import build
from transformer.ui.experiments import Experiments
from transformer.ui.service import Service
from transformer.views import PICTURES
from transformer.views.declaration import Picture

HUGE = 10**400
NESTED: list[Any] = []
for _ in range(900):
    NESTED = [NESTED]
ODD = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    -(2**63),
    HUGE,
    0.0,
    -0.0,
    1.5,
    math.nan,
    math.inf,
    -math.inf,
    "",
    " ",
    "\x00",
    "\ud800",
    "a\udfff",
    "x" * 3000,
    "é" * 50,
    "\u202e",
    "<script>alert(1)</script>",
    "{{value}}",
    "${alert(1)}",
    "../../etc/passwd",
    "..%2f..%2f",
    "/etc/passwd",
    "tiny\x00",
    "decoder.0.self",
    "decoder.-1.self",
    "decoder.99.self",
    "decoder.0.cross",
    "a.b.c",
    "....",
    "weights",
    "mean",
    "linear",
    [],
    {},
    [None],
    ["a"],
    ["a"] * 9,
    ["\ud800"],
    NESTED,
    {"a": {"b": []}},
    {"__type__": "update"},
    {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}},
]
values = st.one_of(
    st.sampled_from(ODD),
    st.text(max_size=20),
    st.integers(),
    st.floats(),
    st.recursive(st.none() | st.text(max_size=5) | st.integers(), st.lists, max_leaves=5),
)
EXAMPLES = settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def service(tiny_model: Model, tiny_encoder: Model) -> Service:
    return Service([tiny_model, serving.tiny_translator(), tiny_encoder])


@pytest.fixture(scope="module")
def endpoints(service: Service) -> dict[str, Any]:
    """Every function that an event of the page or of the API calls, by its name."""

    async def made() -> gr.Blocks:  # inside a loop, else Gradio opens some and leaves them open
        return build(service)

    return {fn.api_name: fn.fn for fn in loops.run(made()).fns.values() if fn.fn}


def is_sentence(text: str) -> bool:
    return bool(text.strip()) and "\n" not in text and len(text) < 600 and "Traceback" not in text


def answer(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What it gives (all that it yields), or the sentence that it refuses with."""
    try:
        given = function(*args, **kwargs)
        return list(given) if inspect.isgenerator(given) else given
    except (gr.Error, ValueError) as error:
        said = str(error)
    assert is_sentence(said), said
    return None


def wanted(function: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())


NAMED = ("models", "limits", "generate", "translate", "trace", "batch", "attention", "view")


@pytest.mark.parametrize("name", NAMED)
@EXAMPLES
@given(data=st.data())
def test_a_named_endpoint_answers_or_gives_a_sentence(
    endpoints: dict[str, Any], service: Service, name: str, data: st.DataObject
) -> None:
    function = endpoints[name]
    good = {"text": "Hi", "texts": ["Hi"], "model": "tiny", "run": service.examples["tiny"][0]}
    arguments = {}
    for parameter in wanted(function):
        choices = [values]
        if parameter.name in good:
            choices.append(st.just(good[parameter.name]))
        elif parameter.default is not inspect.Parameter.empty:
            choices.append(st.just(parameter.default))
        arguments[parameter.name] = data.draw(st.one_of(choices), label=parameter.name)
    if isinstance(arguments.get("max_new_tokens"), int) and arguments["max_new_tokens"] > 8:
        arguments["max_new_tokens"] = 1_000
    found = answer(function, **arguments)
    json.dumps(found)


@pytest.mark.parametrize("name", ["generate", "trace", "attention"])
@pytest.mark.parametrize("got", ODD, ids=lambda got: type(got).__name__)
def test_every_odd_value_for_every_parameter_gets_a_sentence(
    endpoints: dict[str, Any], service: Service, name: str, got: Any
) -> None:
    good = {"text": "Hi", "run": service.examples["tiny"][0]}
    for parameter in wanted(endpoints[name]):
        arguments = {"max_new_tokens": 2} if name == "generate" else {}
        arguments |= {p.name: good[p.name] for p in wanted(endpoints[name]) if p.name in good}
        json.dumps(answer(endpoints[name], **arguments | {parameter.name: got}))


@EXAMPLES
@given(data=st.data())
def test_the_pages_events_answer_or_give_a_sentence(
    endpoints: dict[str, Any], data: st.DataObject
) -> None:
    request = gr.Request(session_hash="visitor")
    name = data.draw(st.sampled_from(["page_generate", "page_batch"]))
    function = endpoints[name]
    counts = {"page_generate": 11, "page_batch": 2}
    drawn = [
        data.draw(st.one_of(values, st.sampled_from(["tiny", "Hi", "greedy", "sample", "beam"])))
        for _ in range(counts[name])
    ]
    takes_request = any(p.annotation is gr.Request for p in wanted(function))
    answer(function, *([request] if takes_request else []), *drawn)


@pytest.mark.parametrize("name", [one.name for one in PICTURES.values() if not one.idle])
@settings(EXAMPLES, max_examples=30)
@given(data=st.data())
@example(data=None)
def test_a_view_answers_or_gives_a_sentence(
    service: Service, name: str, data: st.DataObject | None
) -> None:
    ask = asking(Experiments(service), name)
    keys = [key for pair in service.examples.values() for key in pair]
    asked: Any = {"run": NESTED}
    if data is not None:
        asked = data.draw(_arguments(PICTURES[name], keys))
    found = ask(asked)
    assert isinstance(found, dict)
    if "error" in found:
        assert is_sentence(found["error"]), found


def _arguments(picture: Picture, keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of the right names, most of them with values of the right kind."""
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "run": st.sampled_from(keys),
        "batch": st.sampled_from(keys),
        "site": st.sampled_from(["decoder.0.self", "decoder.1.cross", "encoder.0.self"]),
        "stack": st.sampled_from(["decoder", "encoder"]),
        "kind": st.sampled_from(["self", "cross"]),
        "which": st.sampled_from(
            ["mean", "rollout", "joint", "causal", "padding", "combined", "matrix"]
        ),
    }
    small = st.integers(-1, 60)
    chosen = {"run": kinds["run"], "batch": kinds["batch"]}
    chosen = {picture.takes if picture.takes in chosen else "run": st.sampled_from(keys)}
    for parameter in picture.parameters:
        likely = st.one_of(kinds.get(parameter.name, small), st.just(parameter.default))
        chosen[parameter.name] = st.one_of(likely, likely, likely, values)
    return st.fixed_dictionaries(chosen)
