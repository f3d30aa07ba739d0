"""Whatever is sent to the server: no crash, no trace of its code, nothing but what it serves."""

import socket
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import plotly
import pytest
from kit import serving
from kit.client import called

from transformer.server.http.errors import NO_EVENT, public_error

pytestmark = pytest.mark.slow

API = "gradio_api"
DEEP = "[" * 100_000 + "]" * 100_000
NEARLY_AS_DEEP = "[" * 900 + "]" * 900


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving.running().client() as made:
        yield made


BODIES = (
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
)


@pytest.mark.parametrize(
    "path",
    ["resources/heatmap", *(f"{API}/{one}" for one in ("queue/join", "call/generate", "cancel"))],
)
def test_a_body_that_is_no_good_is_refused(client, path):
    for body in BODIES:
        answer = client.post(path, content=body, headers={"content-type": "application/json"})
        assert answer.status_code < 500, (body[:80], answer.text[:300])
        assert "Traceback" not in answer.text
        assert "site-packages" not in answer.text


PATHS = (
    "app.py", "/etc/passwd", "../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd",
    "transformer/server/http/guard.py", "file:///etc/passwd", "", "\x00", str(plotly.__file__),
)  # fmt: skip


@pytest.mark.parametrize(
    "start", [f"{API}/file=", f"{API}/file/", f"{API}/proxy=", "file=", "static/", "assets/"]
)
def test_no_file_is_served(client, start):
    for path in PATHS:
        answer = client.get(start + quote(path, safe="/.%:"))
        assert answer.status_code in (307, 400, 403, 404), (path, answer.status_code)
        assert "root:" not in answer.text
        assert "import " not in answer.text


def test_nothing_is_fetched_that_an_input_names(client):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.5)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/x"
        for path in (address, "/etc/passwd"):
            named = {"path": path, "url": path, "meta": {"_type": "gradio.FileData"}}
            answer = called(client, "trace", named, "tiny", None)
            assert "the text must be a string; got dict" in answer
            assert str(serving.ROOT) not in answer
        with pytest.raises(TimeoutError):
            listening.accept()


def test_the_description_of_the_api_is_not_kept_with_another_callers_host(client):
    theirs = client.get(f"{API}/info", headers={"Host": "elsewhere.example"})
    assert "elsewhere.example" in theirs.text
    ours = client.get(f"{API}/info")
    assert "elsewhere.example" not in ours.text
    assert set(ours.json()["named_endpoints"]) == set(theirs.json()["named_endpoints"])
    assert "/generate" in ours.json()["named_endpoints"]


def test_values_of_another_kind_get_a_sentence_and_stay_out_of_the_log(client):
    answer = called(client, "patching", "none", ["secret"], 1, "decoder", "residual", "self", None)
    assert "the server no longer keeps this run" in answer
    config = client.get("config").json()
    unknown = max(fn["id"] for fn in config["dependencies"]) + 1
    body = {"fn_index": unknown, "data": ["secret"], "session_hash": "none"}
    assert client.post(f"{API}/queue/join", json=body).json() == public_error(NO_EVENT)
    asked = {"model": "stories", "text": "a", "method": "sample", "temperature": "secret"}
    answer = client.post("resources/runs", json=asked).text
    assert "Temperature (0 = greedy) must be a number from 0.01 to 10; got 'secret'" in answer
    assert "secret" not in serving.running().log.read_text()


def test_after_all_that_the_server_is_well(client):
    health = client.get("health").json()
    assert health["status"] == "ok"
    assert health["models"] == list(serving.NAMES)
    assert not any(line["waiting"] for line in health["resources"].values())
