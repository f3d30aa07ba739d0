"""Whatever is sent to the server: no crash, no trace of its code, nothing but what it serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import serving
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.ui.components import PLOTLY_JS
from transformer.ui.limits import CLOSED, MAX_REQUEST_BYTES, TOO_LARGE

API = "gradio_api"
DEEP = "[" * 100_000 + "]" * 100_000
NEARLY_AS_DEEP = "[" * 900 + "]" * 900
VIEWS = (
    "heatmap",
    "atlas",
    "worked",
    "metrics",
    "candidates",
    "padded",
    "positions",
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
    data=values, component=values, name=st.one_of(values, st.sampled_from(VIEWS)), session=values
)
def test_any_question_of_a_component_is_answered(
    client: httpx.Client, data: Any, component: Any, name: Any, session: Any
) -> None:
    body = {"data": data, "component_id": component, "fn_name": name, "session_hash": session}
    check(client.post(f"{API}/component_server/", json=body))


@settings(max_examples=60)
@given(
    data=st.lists(values, max_size=12), place=st.one_of(values, st.integers(0, 30)), session=values
)
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


@pytest.mark.parametrize("path", ["queue/join", "component_server/", "call/generate", "cancel"])
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
    answer = client.post(f"{API}/{path}", content=body, headers=headers)
    check(answer)


def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not(
    client: httpx.Client,
) -> None:
    large = b"x" * (MAX_REQUEST_BYTES + 1)
    said = client.post(f"{API}/queue/join", content=large)
    assert (said.status_code, said.json()) == (413, {"detail": f"{TOO_LARGE}; got 1,000,001."})
    unsaid = client.post(f"{API}/queue/join", content=iter([large, large]))
    assert unsaid.status_code in (400, 413)
    form = {"files": ("a", large)}
    assert client.post(f"{API}/component_server/", files=form).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "app.py",
        "/etc/passwd",
        "../../../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "transformer/ui/gate.py",
        "checkpoints/stories/config.json",
        "README.md",
        "C:\\Windows\\win.ini",
        "file:///etc/passwd",
        "http://127.0.0.1:1/",
        "https://example.org/",
        "",
        ".",
        "\x00",
        "\u202e",
        f"{PLOTLY_JS.as_posix()}/../../__init__.py",
        f"{PLOTLY_JS.parent.as_posix()}/../io/__init__.py",
        str(serving.ROOT / "app.py"),
        str(serving.ROOT / "checkpoints/stories/config.json"),
    ],
)
def test_no_file_is_served(client: httpx.Client, path: str) -> None:
    for start in (f"{API}/file=", f"{API}/file/", f"{API}/proxy=", "file=", "static/", "assets/"):
        answer = client.get(start + quote(path, safe="/.%:"))
        assert answer.status_code in (307, 400, 403, 404), (start, answer.status_code)
        assert "root:" not in answer.text
        assert "import " not in answer.text


def test_plotlys_script_is_served(client: httpx.Client) -> None:
    answer = client.get(f"{API}/file={PLOTLY_JS.as_posix()}")
    assert answer.status_code == 200
    assert answer.content == PLOTLY_JS.read_bytes()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "upload"),
        ("GET", "upload_progress?upload_id=a"),
        ("POST", "process_recording"),
        ("POST", "vibe-edit/"),
        ("GET", "vibe-code"),
        ("POST", "run/generate"),
        ("POST", "api/generate"),
        ("GET", "heartbeat/x"),
        ("GET", "runs"),
        ("GET", "custom_component/a/client/b/c"),
        ("GET", "proxy=https://example.org/"),
    ],
)
def test_what_the_page_does_not_use_is_closed(client: httpx.Client, method: str, path: str) -> None:
    answer = client.request(
        method, f"{API}/{path}", files={"files": b"x"} if "upload" in path else None
    )
    assert (answer.status_code, answer.json()) == (404, {"detail": CLOSED})


def test_after_all_that_the_server_is_well(client: httpx.Client) -> None:
    health = client.get("health").json()
    assert health["status"] == "ok"
    assert health["models"] == list(serving.NAMES)
    assert health["waiting"] == 0
