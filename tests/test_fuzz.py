"""Whatever a function of the page or of the API is given: an answer or a sentence."""

import inspect
import json
import math
from collections.abc import Callable
from typing import Any

import gradio as gr
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kit import serving
from kit.client import ENDPOINTS, asking

from transformer import Model
from transformer.server.fields import REQUEST
from transformer.server.kept.service import Service
from transformer.server.page.presses import works
from transformer.server.programs.api import endpoints_of
from transformer.views.registry import PICTURES

pytestmark = pytest.mark.slow

NESTED: list[Any] = []
for _ in range(900):
    NESTED = [NESTED]
ODD = [
    None, True, False, 0, -1, 1, 2**31, -(2**63), 10**400, 0.0, -0.0, 1.5, math.nan, math.inf,
    -math.inf, "", " ", "\x00", "\ud800", "a\udfff", "x" * 3000, "é" * 50, "\u202e",
    "<script>alert(1)</script>", "{{value}}", "${alert(1)}", "../../etc/passwd", "..%2f..%2f",
    "/etc/passwd", "tiny\x00", "decoder.0.self", "decoder.-1.self", "decoder.99.self",
    "decoder.0.cross", "a.b.c", "....", "weights", "mean", "linear", [], {}, [None], ["a"],
    ["a"] * 9, ["\ud800"], NESTED, {"a": {"b": []}}, {"__type__": "update"},
    {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}},
]  # fmt: skip
values = st.one_of(
    st.sampled_from(ODD),
    st.text(max_size=20),
    st.integers(),
    st.floats(),
    st.recursive(st.none() | st.text(max_size=5) | st.integers(), st.lists, max_leaves=5),
)
EXAMPLES = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SHOWN = [one.name for one in PICTURES.values() if not one.idle]


@pytest.fixture(scope="module")
def service(tiny_model: Model, tiny_encoder: Model) -> Service:
    return Service([tiny_model, serving.tiny_translator(), tiny_encoder])


@pytest.fixture(scope="module")
def endpoints(service: Service) -> dict[str, Callable[..., Any]]:
    """Every function of the API, by its name."""
    return {name: endpoint.function for name, endpoint in endpoints_of(service).items()}


def is_sentence(text: str) -> bool:
    return bool(text.strip()) and "\n" not in text and len(text) < 1000 and "Traceback" not in text


def answer(function: Callable[..., Any], **arguments: Any) -> Any:
    """What it gives (all that it yields), or None where it refuses with a sentence."""
    try:
        given = function(**arguments)
        return list(given) if inspect.isgenerator(given) else given
    except (gr.Error, ValueError) as error:
        said = str(error)
    assert is_sentence(said), said
    return None


def usual(service: Service, name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Arguments that are answered, by name."""
    good = {
        "text": "Hi", "texts": ["Hi"], "model": "tiny", "run": service.examples["tiny"][0],
        "position": 1, "other": "Hello", "picture": "heatmap", "max_new_tokens": 2,
    }  # fmt: skip
    wanted = inspect.signature(function).parameters.values()
    return {
        one.name: good.get(one.name, one.default)
        for one in wanted
        if one.name in good or one.default is not one.empty
    }


def test_the_list_of_endpoints_is_complete(endpoints):
    assert endpoints.keys() == set(ENDPOINTS)


@pytest.mark.parametrize("name", ENDPOINTS)
@EXAMPLES
@given(data=st.data())
def test_an_endpoint_answers_or_gives_an_error_message(endpoints, service, name, data):
    arguments = usual(service, name, endpoints[name])
    for wrong in data.draw(st.sets(st.sampled_from(sorted(arguments)))) if arguments else ():
        arguments[wrong] = data.draw(values, label=wrong)
    json.dumps(answer(endpoints[name], **arguments))


NAMES = {
    "runs": tuple(REQUEST), "batches": ("model", "lines", "bare"),
    "examples": ("model", "typed"),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@EXAMPLES
@given(data=st.data())
def test_a_press_is_answered_or_refused_with_a_sentence(service, name, data):
    known = st.sampled_from(["tiny", "Hi", "greedy", "sample", "beam"])
    drawn = st.one_of(values, known)
    usual = {"text": "Hi", "model": "tiny", "lines": "Hi", "max_new_tokens": 2}
    wrong = data.draw(st.dictionaries(st.sampled_from(NAMES[name]), drawn))
    asked = {key: one for key, one in usual.items() if key in NAMES[name]} | wrong
    for line in answer(works(service)[name], data=asked) or ():
        json.dumps(line)
    assert service.requests.under_way() == 0


KINDS: dict[str, st.SearchStrategy[Any]] = {
    "site": st.sampled_from(["decoder.0.self", "decoder.1.cross", "encoder.0.self"]),
    "stack": st.sampled_from(["decoder", "encoder"]),
    "kind": st.sampled_from(["self", "cross"]),
    "which": st.sampled_from(["mean", "rollout", "joint", "causal", "padding", "matrix"]),
}


@pytest.mark.parametrize("name", SHOWN)
@settings(EXAMPLES, max_examples=30)
@given(data=st.data())
@example(data=None)
def test_a_view_answers_or_gives_an_error_message(service, name, data):
    """Arguments of the right names, most of them with values of the right kind."""
    parameters: Any = {"run": NESTED}
    if data is not None:
        picture, keys = PICTURES[name], [key for two in service.examples.values() for key in two]
        subject = "batch" if picture.subject == "batch" else "run"
        parameters = {subject: data.draw(st.sampled_from(keys))}
        for one in picture.parameters:
            likely = KINDS.get(one.name, st.integers(-1, 60)) | st.just(one.default)
            parameters[one.name] = data.draw(st.one_of(likely, likely, likely, values))
    found = asking(service, name)(parameters)
    assert "error" not in found or is_sentence(found["error"]), found
