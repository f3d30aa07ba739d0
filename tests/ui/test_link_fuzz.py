"""Whatever a share link holds: it is read, or refused with a sentence."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from links import FORBIDDEN, SILENCED, deflated, opened
from serving import tiny_translator

from transformer import Model
from transformer.ui.link import SETTINGS, read_link, view_fields
from transformer.ui.service import Service


@pytest.fixture(scope="module")
def service(tiny_model: Model, tiny_encoder: Model) -> Service:
    return Service([tiny_model, tiny_encoder, tiny_translator()])


NAMES = st.sampled_from(
    [
        "model",
        "text",
        "lines",
        "taken",
        "forced_tokens",
        "alter",
        "z",
        "wat",
        "__theme",
        *SETTINGS,
        *view_fields(),
    ]
)
ODD = st.one_of(
    st.text(max_size=30),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        [
            "tiny", "tiny-translator", "sample", "greedy", "beam", "1,2", "1e308", "-0", "٣", "²",
            "\ud800", "\x00", "<img src=x onerror=alert(1)>", "{{value}}", "decoder.0.self",
            json.dumps([SILENCED]), json.dumps([FORBIDDEN]), '[{"type":"break","what":"no-scale"}]',
            '[{"type":"patch","stack":"decoder","layer":0,"positions":[0],"text":"a"}]',
            '[{"type":"ablate","stack":[],"layer":{},"heads":"x"}]', "[[]]", "9" * 40,
        ]
    ),
)  # fmt: skip
STATES = st.dictionaries(NAMES, ODD, max_size=7)
OFTEN = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def queries() -> st.SearchStrategy[Any]:
    encoded = STATES.map(lambda state: urlencode(state, errors="surrogatepass"))
    packed = STATES.map(lambda state: deflated(json.dumps(state).encode()))
    bits = st.binary(max_size=60)
    binary = bits.map(lambda data: f"z={base64.urlsafe_b64encode(data).decode()}")
    return st.one_of(encoded, packed, binary, bits.map(deflated), st.text(), st.none())


def is_sentence(text: str) -> bool:
    return bool(text.strip()) and len(text) < 900 and "Traceback" not in text


@OFTEN
@given(queries())
@example("?")
def test_whatever_a_query_is_it_is_read_or_refused_with_a_sentence(query: Any) -> None:
    refused: ValueError | None = None
    try:
        found = read_link(query)
    except ValueError as error:
        refused = error
    if refused is not None:
        assert not isinstance(refused, UnicodeError)
        assert is_sentence(str(refused))
        return
    assert all(is_sentence(problem) for problem in found.problems)
    assert set(found.view) <= view_fields()
    json.dumps([found.view, found.settings, found.forced_tokens, found.interventions]).encode()


@settings(OFTEN, max_examples=80)
@given(queries())
def test_whatever_a_query_is_the_page_opens_with_a_run_or_with_a_sentence(
    service: Service, query: Any
) -> None:
    changes = opened(service, query)
    told = changes[-1]["share"]
    assert all(is_sentence(problem) for problem in told["problems"])
    assert all(json.dumps(one["share"]) for one in changes if "share" in one)
    if "run" in told:
        service.store.run(told["run"])
        service.store.batch(told["batch"])
    else:
        assert told["problems"]
