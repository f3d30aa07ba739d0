"""deploy/: what stands there is taken by nginx, and a replica that is gone is not noticed."""

from __future__ import annotations

import re
import shutil

import httpx
import pytest
import serving

from benchmarks import API, ROOT
from benchmarks.replicas import CONFIGURATION, balanced
from benchmarks.visitor import page_inputs
from transformer.ui.limits import BODY_S, MAX_REQUEST_BYTES

pytestmark = pytest.mark.slow

needs_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")


@needs_nginx
def test_visitors_are_served_though_a_replica_is_gone() -> None:
    """Of all visitors some belong to the replica that is not there; nobody is refused."""
    server = serving.running()
    here = int(server.url.rstrip("/").rsplit(":", 1)[1])
    gone = serving.free_port()
    with (
        balanced(serving.free_port(), [here, gone]) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        page = client.get("")
        assert page.status_code == 200
        assert "content-security-policy" in page.headers
        event, data = page_inputs(client.get("config").json(), {"length": 2, "text": "Hello"})
        for place in range(6):
            named = {"session_hash": f"deployed{place}"}
            client.headers["x-session"] = f"deployed{place}"
            body = {"data": data, "fn_index": event, "session_hash": named["session_hash"]}
            joined = client.post(f"{API}/queue/join", params=named, json=body)
            assert joined.status_code == 200
            with client.stream("GET", f"{API}/queue/data", params=named) as stream:
                told = "".join(stream.iter_text())
            assert '"process_completed"' in told
            assert '"success":true' in told.replace(" ", "")
            assert client.post("resources/kept", json={"runs": []}).status_code == 200


def test_the_limits_before_the_replicas_are_theirs() -> None:
    text = CONFIGURATION.read_text(encoding="utf-8")
    assert f"client_max_body_size {MAX_REQUEST_BYTES // 1_000_000}m;" in text
    assert f"client_body_timeout {BODY_S:.0f}s;" in text


def test_the_ports_of_the_unit_are_those_of_the_configuration() -> None:
    unit = (ROOT / "deploy" / "transformer@.service").read_text(encoding="utf-8")
    named = re.search(r"transformer@\{([\d,]+)\}", unit)
    assert named is not None
    text = CONFIGURATION.read_text(encoding="utf-8")
    assert re.findall(r"server 127[\d.]+:(\d+)", text) == named[1].split(",")
    assert "--port %i" in unit
    assert "FORWARDED_ALLOW_IPS=127.0.0.1" in unit  # nginx tells the visitors' addresses
    assert "X-Forwarded-For $remote_addr" in text
