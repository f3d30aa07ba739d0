"""Whatever is sent to the server: no crash, no trace of its code, nothing but what it serves."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import plotly
import pytest
import serving
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow

API = "gradio_api"
DEEP = "[" * 100_000 + "]" * 100_000
NEARLY_AS_DEEP = "[" * 900 + "]" * 900
VIEWS = (
    "heatmap",
    "atlas",
    "attention_math",
    "metrics",
    "candidates",
    "padded",
    "guess",
    "__init__",
)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["../../etc/passwd", "\x00", "<script>", "decoder.0.self", "{{value}}"]),
    st.recursive(st.none() | st.text(max_size=5), st.lists, max_leaves=5),
    st.dictionaries(st.text(max_size=8), st.integers(), max_size=3),
)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(base_url=serving.running().url, timeout=30) as made:
        yield made


def check(answer: httpx.Response) -> None:
    """No failure of the server, and nothing of its code in what it says."""
    assert answer.status_code < 500, (answer.status_code, answer.text[:300])
    assert "Traceback" not in answer.text
    assert "site-packages" not in answer.text


@settings(max_examples=80)
@given(
    data=values,
    query=st.dictionaries(st.sampled_from(["run", "site", "head", "other", "x"]), st.text()),
    name=st.one_of(st.text(max_size=10), st.sampled_from(VIEWS)),
    session=st.text(st.characters(codec="ascii", min_codepoint=32), max_size=80),
)
def test_any_question_is_answered(
    client: httpx.Client, data: Any, query: dict[str, str], name: str, session: str
) -> None:
    path, headers = f"resources/{quote(name, safe='')}", {"x-session": session}
    check(client.post(path, json=data, headers=headers))
    check(client.get(path, params=query, headers=headers))


@settings(max_examples=60)
@given(
    data=st.lists(values, max_size=12), place=st.one_of(values, st.integers(0, 30)), session=values
)
@example(data=[], place=-1, session="0")
def test_any_event_is_answered(
    client: httpx.Client, data: list[Any], place: Any, session: Any
) -> None:
    body = {"data": data, "fn_index": place, "session_hash": session, "event_data": None}
    check(client.post(f"{API}/queue/join", json=body))


@settings(max_examples=20)
@given(data=values, name=st.one_of(st.text(max_size=10), st.sampled_from(["generate", "models"])))
def test_any_call_by_name_is_answered(client: httpx.Client, data: Any, name: str) -> None:
    check(client.post(f"{API}/call/{quote(name, safe='')}", json={"data": data}))
    check(client.post(f"{API}/call/v2/{quote(name, safe='')}", json=data))


@pytest.mark.parametrize(
    "path",
    ["resources/heatmap", *(f"{API}/{one}" for one in ("queue/join", "call/generate", "cancel"))],
)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"data": NaN}',
        DEEP.encode(),
        b'{"data": "\\ud800"}',
        b'{"data": ["\\ud800"], "fn_index": 5, "session_hash": "\\ud800", "component_id": 3}',
        f'{{"data": {NEARLY_AS_DEEP}, "fn_index": 5, "session_hash": "x"}}'.encode(),
        b'{"data": 1' + b"0" * 5000 + b"}",
    ],
    ids=range(11),
)
def test_a_body_that_is_no_good_is_refused(client: httpx.Client, path: str, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = client.post(path, content=body, headers=headers)
    check(answer)


@pytest.mark.parametrize(
    "path",
    [
        "app.py", "/etc/passwd", "../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd",
        "transformer/ui/asgi_guard.py", "file:///etc/passwd", "", "\x00", str(plotly.__file__),
    ],
)  # fmt: skip
def test_no_file_is_served(client: httpx.Client, path: str) -> None:
    for start in (f"{API}/file=", f"{API}/file/", f"{API}/proxy=", "file=", "static/", "assets/"):
        answer = client.get(start + quote(path, safe="/.%:"))
        assert answer.status_code in (307, 400, 403, 404), (start, answer.status_code)
        assert "root:" not in answer.text
        assert "import " not in answer.text


def answered(client: httpx.Client, name: str, *data: Any) -> str:
    """What the call of a named endpoint gives in the end."""
    event = client.post(f"{API}/call/{name}", json={"data": data}).json()["event_id"]
    return client.get(f"{API}/call/{name}/{event}").text


def test_nothing_is_fetched_that_an_input_names(client: httpx.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.5)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/x"
        for path in (address, "/etc/passwd"):
            named = {"path": path, "url": path, "meta": {"_type": "gradio.FileData"}}
            told = answered(client, "trace", named, "tiny", None)
            assert "the text must be a string; got dict" in told
            assert str(serving.ROOT) not in told
        with pytest.raises(TimeoutError):
            listening.accept()


def test_the_description_of_the_api_is_not_kept_with_another_callers_host(
    client: httpx.Client,
) -> None:
    theirs = client.get(f"{API}/info", headers={"Host": "elsewhere.example"})
    assert "elsewhere.example" in theirs.text
    ours = client.get(f"{API}/info")
    assert "elsewhere.example" not in ours.text
    assert set(ours.json()["named_endpoints"]) == set(theirs.json()["named_endpoints"])
    assert "/generate" in ours.json()["named_endpoints"]


def test_values_of_another_kind_get_a_sentence_and_stay_out_of_the_log(
    client: httpx.Client,
) -> None:
    """Where a bare AttributeError or TypeError was told."""
    run = answered(client, "trace", "Hello there", "tiny", None)
    key = json.loads(run.split("data: ", 1)[1].split("\n")[0])[0]["run"]
    assert "stack must be one of" in answered(client, "positions", key, ["secret"], False)
    asked = (key, "Hello", 1, "decoder", "residual", "self")
    assert "target must be a whole number" in answered(client, "patching", *asked, ["secret"])
    for place in (None, "1", [1], {"a": 1}, 1.5):
        told = answered(client, "patching", key, "Hello", place, *asked[3:], None)
        assert "the token must be one that the network predicted" in told
    config = client.get("config").json()
    event = next(fn["id"] for fn in config["dependencies"] if fn["api_name"] == "page_open")
    body = {"fn_index": event, "data": ["greedy", *["secret"] * 7], "session_hash": "odd-open"}
    client.post(f"{API}/queue/join", json=body)
    told = client.get(f"{API}/queue/data", params={"session_hash": "odd-open"}).text
    assert "temperature must be a number; got 'secret'" in told
    assert "secret" not in serving.running().log.read_text()


def test_after_all_that_the_server_is_well(client: httpx.Client) -> None:
    health = client.get("health").json()
    assert health["status"] == "ok"
    assert health["models"] == list(serving.NAMES)
    assert health["waiting"] == 0
