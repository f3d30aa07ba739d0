"""Resources over HTTP: their answers are Python's numbers, and only stored examples are cached."""

import asyncio
import base64
import json
import threading
import time
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from kit import aio

from transformer import Model
from transformer.analysis import head_metrics
from transformer.analysis.atlas import atlas
from transformer.server.kept.service import Service
from transformer.server.page.resources import numbers, questions, resource_app, written
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
    for runs in ({"run": example, "other": own}, {"run": own, "other": example}):
        both = asked(service, "outcomes", **runs)
        assert (both.status_code, both.headers["cache-control"]) == (200, "private, no-store")


def test_answers_of_at_most_256_kib_are_compressed_where_accepted(service):
    def repeat(data: dict[str, Any]) -> dict[str, Any]:
        return {"text": "a" * data["n"]}

    app, frame = resource_app(service, repeat=repeat), len('{"text":""}')
    tags = set()
    for n_bytes, accepted, coding in (
        (2**18, "gzip, br", "br"),
        (2**18, "gzip", None),
        (2**18 + 1, "gzip, br", None),
    ):
        headers, data = {"accept-encoding": accepted}, {"n": n_bytes - frame}
        answer = aio.answer(app, "repeat", "POST", json=data, headers=headers)
        assert (answer.json(), answer.headers.get("content-encoding")) == (repeat(data), coding)
        assert answer.headers["vary"] == "Accept, Accept-Encoding"
        tags.add(headers.setdefault("if-none-match", answer.headers["etag"]))
        again = aio.answer(app, "repeat", "POST", json=data, headers=headers)
        assert (again.status_code, again.content) == (304, b"")
    assert len(tags) == 3


SENT = {"b": "uint8", "u": "uint8", "i": "<i4", "f": "<f4"}  # by a dtype's kind
ARRAYS = st.sampled_from(["?", "u1", "<i8", ">i4", "<f8", "<f2"]).flatmap(
    lambda dtype: arrays(
        dtype,
        array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5),
        elements={"min_value": -9, "max_value": 9} if dtype[0] in "<>" else None,
    )
)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from("de"), ARRAYS)))
def test_arrays_behind_an_answers_text_begin_at_multiples_of_eight(answer):
    """By NumPy, as the page reads them: a length of four bytes, the text, then each array."""
    body, kind = written(answer, with_arrays=True)
    places = [(outer, inner) for outer, of in answer.items() for inner in of]
    if not places:
        assert (json.loads(body), kind) == (answer, "application/json")
        return
    (length,) = np.frombuffer(body[:4], "<u4")
    values, described = json.loads(body[4 : 4 + length])
    assert values == {outer: dict.fromkeys(of) for outer, of in answer.items()}
    assert [tuple(path) for path, *_ in described] == places
    at = 4 + int(length)
    for (outer, inner), (_, dtype, size) in zip(places, described, strict=True):
        sent = answer[outer][inner].astype(SENT[answer[outer][inner].dtype.kind])
        assert (dtype, size, at % 8) == (sent.dtype.name, sent.size, 0)
        assert body[at : at + sent.nbytes] == sent.tobytes()
        at += -(-sent.nbytes // 8) * 8
    assert (at, kind) == (len(body), "application/x-arrays")


def test_a_list_of_numbers_or_of_runs_has_a_last_length_that_is_allowed(service, example):
    assert numbers(np.ones((128, 128)), packed=False) == [[1.0] * 128] * 128
    with pytest.raises(ValueError, match=r"16,385 numbers are too many .* at most 16,384, or pack"):
        numbers(np.ones(128 * 128 + 1), packed=False)
    kept = questions(service)["kept"]
    assert kept({"runs": [example, "gone"] * 128}) == {"kept": [True, False] * 128}
    for wrong in ([example] * 257, {}, None):
        with pytest.raises(ValueError, match="runs must be a list of at most 256 ids; got"):
            kept({"runs": wrong})


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
