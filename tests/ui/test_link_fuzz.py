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
from transformer.ui.link import SETTINGS, view_fields
from transformer.ui.service import Service


@pytest.fixture(scope="module")
def service(tiny_model: Model, tiny_encoder: Model) -> Service:
    return Service([tiny_model, tiny_encoder, tiny_translator()])


NAMES = st.sampled_from(
    ["model", "text", "lines", "taken", "forced_tokens", "alter", "z", "wat", "__theme",
     *SETTINGS, *view_fields()]
)  # fmt: skip
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


def queries() -> st.SearchStrategy[Any]:
    encoded = STATES.map(lambda state: urlencode(state, errors="surrogatepass"))
    packed = STATES.map(lambda state: deflated(json.dumps(state).encode()))
    bits = st.binary(max_size=60)
    binary = bits.map(lambda data: f"z={base64.urlsafe_b64encode(data).decode()}")
    return st.one_of(encoded, packed, binary, bits.map(deflated), st.text(), st.none())


def is_sentence(text: str) -> bool:
    return bool(text.strip()) and len(text) < 900 and "Traceback" not in text


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(queries())
@example("?")
def test_whatever_a_query_is_the_page_opens_with_a_run_or_with_a_sentence(
    service: Service, query: Any
) -> None:
    changes = opened(service, query)
    told = changes[-1]["share"]
    assert all(is_sentence(problem) for problem in told["problems"])
    assert all(json.dumps(one["share"]).encode() for one in changes if "share" in one)
    if "run" in told:
        service.store.run(told["run"])
        service.store.batch(told["batch"])
        assert set(told["view"]) <= view_fields()
    else:
        assert told["problems"]
