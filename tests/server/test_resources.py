"""Resources over HTTP: their answers are Python's numbers, and only stored examples are cached."""

import asyncio
import base64
import threading
import time
from typing import Any

import httpx
import pytest
from kit import aio

from transformer import Model
from transformer.analysis import head_metrics
from transformer.analysis.atlas import atlas
from transformer.server.kept.service import Service
from transformer.server.page.resources import resource_app
from transformer.views.registry import PICTURES

HEAD = {"site": "decoder.1.self", "head": "1"}


@pytest.fixture(scope="module")
def service(tiny_model: Model) -> Service:
    return Service([tiny_model])


@pytest.fixture(scope="module")
def example(service: Service) -> str:
    return service.examples["tiny"][0]


def asked(
    service: Service, path: str, *, headers: dict[str, str] | None = None, **query: Any
) -> httpx.Response:
    return aio.answer(resource_app(service), path, params=query, headers=headers)


def test_numbers_are_json_for_clients_that_do_not_accept_bytes(service, example):
    query = {"run": example, "stack": "decoder", "kind": "self"}
    pixels = atlas(service.store.run(example), "decoder", "self").pixels
    packed = asked(service, "atlas", **query).json()["pixels"]
    assert (packed["shape"], packed["dtype"]) == (list(pixels.shape), "uint8")
    assert base64.b64decode(packed["base64"]) == pixels.tobytes()


def test_only_answers_about_stored_examples_may_be_cached(service, example):
    own = service.store.put(service.generate("tiny", "My words", max_new_tokens=2))
    kept = asked(service, "heatmap", run=own, **HEAD).headers["cache-control"]
    assert kept == "private, no-store"
    first = asked(service, "heatmap", run=example, **HEAD)
    assert first.headers["cache-control"] == "private, no-cache"
    tag = first.headers["etag"]
    again = asked(service, "heatmap", run=example, **HEAD, headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    other = asked(service, "heatmap", run=example, **HEAD | {"head": "0"})
    assert other.headers["etag"] != tag


def test_errors_are_never_cached(service, example):
    for path, query, status, code in (
        ("heatmap", {"run": "gone"}, 410, "run_expired"),
        ("heatmap", {"run": example, "head": "x"}, 400, "out_of_range"),
        ("heatmap", {"run": example, "colour": "red"}, 400, "unknown_name"),
        ("nothing", {}, 404, "not_found"),
        ("train", {}, 404, "not_found"),
    ):
        answer = asked(service, path, **query)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer.headers["cache-control"] == "private, no-store"


def test_each_picture_has_a_route_that_documents_its_parameters(service):
    described = asked(service, "openapi.json").json()["paths"]
    for picture in PICTURES.values():
        by_query = described[f"/{picture.name}"]["get"]
        given = {one["name"] for one in by_query["parameters"]}
        assert {one.name for one in picture.parameters} <= given
        assert by_query["summary"] == (picture.title or picture.name)
        assert by_query["description"].startswith(picture.help or "By query: ")
    assert "get" not in described["/train"]
    head = next(one for one in described["/lens"]["get"]["parameters"] if one["name"] == "run")
    assert head["required"]
    assert "<code>GET /heatmap</code>" in asked(service, "/").text


def test_a_newcomer_behind_slow_requests_gets_retry_after(service, example, monkeypatch):
    runs = [
        service.store.put(service.generate("tiny", "The fox", max_new_tokens=2, seed=seed))
        for seed in range(4)
    ]
    ready, measure = threading.Event(), head_metrics.measure
    monkeypatch.setattr(head_metrics, "measure", lambda *of: ready.wait(60) and measure(*of))

    async def rush() -> None:
        transport = httpx.ASGITransport(resource_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:

            async def ask(run: str) -> httpx.Response:
                query = {"run": run, "stack": "decoder", "kind": "self"}
                return await client.get("metrics", params=query)

            def waiting() -> int:
                return sum(not one.done() for one in crowd)

            crowd = [asyncio.create_task(ask(runs[place % 3])) for place in range(60)]
            await asyncio.sleep(0.1)
            newcomer, click = await asyncio.gather(
                asyncio.wait_for(ask(runs[3]), 20),  # two seconds and what a busy machine needs
                client.get("heatmap", params={"run": example, **HEAD}),
            )
            assert click.status_code == 200
            assert newcomer.status_code == 503
            assert 1 <= int(newcomer.headers["retry-after"]) <= 5
            assert "try again in a moment" in newcomer.json()["detail"]
            give_up = time.monotonic() + 20
            while waiting() > 24:  # as many as are worked on at the most
                assert time.monotonic() < give_up
                await asyncio.sleep(0.01)
            ready.set()
            assert {one.status_code for one in await asyncio.gather(*crowd)} == {200, 503}
            again = await asyncio.gather(*map(ask, runs))
            assert [one.status_code for one in again] == [200] * 4

    aio.run(rush())
