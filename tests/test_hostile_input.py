"""Input as long as a request may be, wherever it is quoted: refused soon, in one short sentence: of
the language that the page asks for, and in English for programs."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from kit import serving
from kit.client import called

from transformer.messages import ENGLISH, catalogue, languages
from transformer.server.http.errors import TOO_LONG
from transformer.server.http.guard import LANGUAGE_PARAMETER
from transformer.server.http.limits import (
    MAX_PARAMETERS,
    MAX_QUERY_BYTES,
    MAX_REQUEST_BYTES,
    MAX_REQUEST_VALUES,
)
from transformer.views.parameters import LONGEST

pytestmark = pytest.mark.slow

MOST_S, MOST_CHARACTERS = 3.0, 1_000
LONG = "x" + " is" * ((MAX_REQUEST_BYTES - 2_000) // 3)  # many sentences of errors contain " is "
DEEP = json.loads("[" * 200 + "1," * (MAX_REQUEST_VALUES - 300) + "1" + "]" * 200)
HUGE = -(10**4_000)
RUN, OTHER = "the run", "k" * 22
CHOICE = "{name} must be one of {allowed}; got {got}"
TEXT = "{name} must be a text of at most {most} characters; got {got}"
NAMES = "{name} takes {allowed}; got {got}"
PLACE = (
    "the token must be one that the network predicted, at a place from {first} to {last}; got {got}"
)
SITE = (
    "a site is written STACK.LAYER.KIND with STACK one of {stacks} and KIND one of {kinds}, "
    "e.g. 'decoder.0.self'; got {text}"
)


def altered(**fields: Any) -> list[Any]:
    """The inputs of /trace with one intervention."""
    return ["The fox", "tiny", [{"type": "ablate", "stack": "decoder", "layer": 0, **fields}]]


# Where it is sent, what is sent, and what it is refused with.
CALLS: list[tuple[str, list[Any], str]] = [
    ("trace", altered(type=LONG), "an intervention's type must be one of {allowed}; got {got}"),
    ("trace", altered(**{LONG: 1}), "unknown field {name} of {kind}; allowed: {allowed}"),
    (
        "trace",
        altered(layer=DEEP, heads=[0]),
        "{name} must be a whole number from {lowest} to {highest}; got {got}",
    ),
    (
        "trace",
        altered(type="mask", without=LONG),
        "without must be a list out of {allowed}; got {got}",
    ),
    (
        "trace",
        altered(type="patch", positions=[0], text=LONG),
        "the text must have at most {most} characters; got {got}",
    ),
    ("trace", ["The fox", LONG, None], CHOICE),
    ("attention", [RUN, LONG, 0, 0, False], SITE),
    ("importance", [RUN, HUGE, "zero"], PLACE),
    ("patching", [RUN, "A bird", HUGE, "decoder", "resid_post", "self", None], PLACE),
    ("view", [LONG, RUN, None], CHOICE),
    ("view", ["heatmap", RUN, DEEP], "{name} must be an object; got {got}"),
    ("view", ["heatmap", RUN, {LONG: 1}], NAMES),
]
QUESTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("heatmap", {"run": RUN, LONG: 1}, NAMES),
    ("heatmap", {"run": RUN, "site": LONG}, TEXT),
    ("heatmap", {"run": RUN, "stage": DEEP}, CHOICE),
    (
        "heatmap",
        {
            "run": OTHER,
            "made": {OTHER: {"model": "tiny", "text": "a", "method": LONG}},
        },
        CHOICE,
    ),
    ("kept", {"runs": LONG}, "runs must be a list of at most {most} ids; got {got}"),
]


@pytest.fixture(scope="module", params=languages())
def client(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """A visitor whose page is in this language; in English also a program, which names none."""
    parameters = {} if request.param == ENGLISH else {LANGUAGE_PARAMETER: request.param}
    headers = {"accept-language": "fr"}
    with serving.second().client(headers=headers, params=parameters) as made:
        yield made


@pytest.fixture(scope="module")
def run(client: httpx.Client) -> str:
    answer = called(client, "trace", "The fox", "tiny", None)
    return str(json.loads(answer.partition("data: ")[2])[0]["run"])


def check(client: httpx.Client, answer: str, sentence: str, began: float) -> None:
    assert serving.second().cpu_s() - began < MOST_S
    assert len(answer) < MOST_CHARACTERS
    said = catalogue(client.params.get(LANGUAGE_PARAMETER, ENGLISH)).one(sentence)
    for part in re.split(r"\{\w+\}", " ".join(said.split())):
        assert part in answer, (said, answer)


@pytest.mark.parametrize(("name", "data", "sentence"), CALLS)
def test_a_long_input_of_a_call(client, run, name, data, sentence):
    began = serving.second().cpu_s()
    answer = called(client, name, *(run if one == RUN else one for one in data))
    error = json.loads(answer.partition("data: ")[2])["error"]
    check(client, error.replace("\\'", "'"), sentence, began)


@pytest.mark.parametrize(("name", "data", "sentence"), QUESTIONS)
def test_a_long_input_of_a_question(client, run, name, data, sentence):
    began = serving.second().cpu_s()
    given = data | ({"run": run} if data.get("run") == RUN else {})
    answer = client.post(f"resources/{name}", json=given).json()["detail"]
    check(client, answer, sentence, began)


def test_a_long_query(client, run):
    began = serving.second().cpu_s()
    answer = client.get("resources/heatmap", params={"run": run, "site": LONG[: LONGEST + 1]})
    check(client, answer.json()["detail"], TEXT, began)


@pytest.mark.parametrize(
    "parameters", [{"site": "x" * MAX_QUERY_BYTES}, {f"p{n}": "" for n in range(MAX_PARAMETERS)}]
)
def test_a_query_that_is_not_read(client, run, parameters):
    began = serving.second().cpu_s()
    answer = client.get("resources/heatmap", params={"run": run} | parameters)
    assert answer.status_code == 414
    check(client, answer.json()["detail"], TOO_LONG.sentence, began)
