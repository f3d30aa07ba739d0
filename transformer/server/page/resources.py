"""The page's questions as plain HTTP, without Gradio: `GET /resources/NAME?run=…` for each picture
of each view, by its declaration, and `POST` of an object for everything.

An answer is JSON in which a figure is Plotly's own object; arrays in it are packed (see
`numbers`), or, for those who accept ARRAYS, bytes behind it. A run that is not kept here
answers 410: asked once more by POST, with "made" saying how it was made (see `page_runs`), it is
made again. A question that has waited for RETRY_S answers 503 and, as Retry-After, when
to ask it again, which the page does by itself.
"""

from __future__ import annotations

import base64
import hashlib
import html
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import brotli
import numpy as np
import orjson
from fastapi import FastAPI, Request, Response
from numpy.typing import NDArray

from transformer.checks import check_flag, check_names, shortened
from transformer.server.http.errors import CLIENT_ERRORS, CLOSED, HANDLERS, NO_STORE, Refused
from transformer.server.http.guard import JSON, LANGUAGE_PARAMETER, Data
from transformer.server.http.limits import MAX_ASKED, MAX_LISTED
from transformer.server.http.requests import in_thread
from transformer.server.kept.page_runs import Regenerator
from transformer.server.kept.service import Service, check_input
from transformer.server.learn import learning, lessons
from transformer.server.page.presses import add_presses
from transformer.views.declaration import Answer, Picture, is_figure
from transformer.views.drawing.style import of_text
from transformer.views.export import export
from transformer.views.parameters import Parameter, Text
from transformer.views.registry import PICTURES

ARRAYS = "application/x-arrays"
QUALITY = 5  # of brotli: as quick as gzip's 6, and a tenth smaller
FILES = ("export", "offline_page")  # questions that are answered by a file
LARGEST = 2**18  # bytes that are compressed: more is a picture's numbers, and would take too long
DTYPES = {"b": "uint8", "u": "uint8", "i": "<i4"}  # that a browser has arrays of; else float32

Question = Callable[[dict[str, Any]], Answer]  # plain values in, an answer out


def questions(service: Service) -> dict[str, Question]:
    """All questions by name; those about pictures follow from their declarations. They raise
    ValueError for a mistake, RunExpired for a run that is not kept here, or no longer."""
    works = {
        of.__name__: partial(of, service)
        for of in (
            learning.train, learning.steer, learning.learned, learning.adopt, learning.checkpoint,
            learning.examined, lessons.lessons, lessons.lesson, lessons.grade, lessons.solve, kept,
        )
    }  # fmt: skip
    pictures = {name: partial(answer, service, picture) for name, picture in PICTURES.items()}
    return {**works, "export": partial(_file, service), **pictures}


def answer(service: Service, picture: Picture, data: Mapping[str, Any]) -> Answer:
    """The answer of a picture for the run, batch or model that `data` names.

    data: "run", "batch" or "model" (and "other" for two runs), and the picture's parameters.
    Raises ValueError for what it cannot be asked, RunExpired for a run that is no longer kept.
    """
    rest = dict(data)
    of = [find(rest.pop(name, None)) for name, find in _subjects(service, picture).items()]
    if picture.lens:
        of[0] = service.queries.with_lens(of[0])
    if picture.subject != "runs" and "other" in rest:
        check_input(rest["other"])
    network = [service.queries] if picture.network else []
    try:
        return picture.ask(*network, *of, given=rest)
    except Exception as error:
        if not service.debug or isinstance(error, CLIENT_ERRORS):
            raise
        traceback.print_exc()
        return {"figure": of_text("".join(traceback.format_exception(error)))}


def _subjects(service: Service, picture: Picture) -> dict[str, Callable[[Any], Any]]:
    """How a picture's run, batch or model is named in a question, and how it is found by its id."""
    store = service.store
    of: dict[str, dict[str, Callable[[Any], Any]]] = {
        "model": {"model": lambda name: name},
        "batch": {"batch": store.batch},
        "run or batch": {"run": store.any},
        "runs": {"run": store.run, "other": store.run},
    }
    return of.get(picture.subject, {"run": store.run})


def kept(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"runs"}: which of these the server still keeps. Does not count as use."""
    check_names("kept", data, ("runs",))
    runs = data.get("runs")
    if not isinstance(runs, list) or len(runs) > MAX_ASKED:
        raise ValueError(f"runs must be a list of at most {MAX_ASKED} ids; got {shortened(runs)}")
    return {"kept": service.store.has_each(runs)}


def _file(service: Service, data: dict[str, Any]) -> Answer:
    """A kept run as a file; all but a single head's CSV hold the run's lens."""
    options = dict(data)
    run = service.store.run(options.pop("run", None))
    check_names("export", options, ("form", "site", "head", "stage", "address"))
    csv = options.get("form") == "csv"
    return export(
        run if csv or run.config.head != "tokens" else service.queries.with_lens(run),
        **{"form": None, **options},
    )


def resource_app(service: Service, **more: Question) -> FastAPI:
    """An app of a route for each question, to be mounted; /openapi.json describes them.

    more: questions besides those of `questions`.
    """
    app = FastAPI(title="Resources", docs_url=None, redoc_url=None, exception_handlers=HANDLERS)
    regenerate = Regenerator(service)
    for name, question in (questions(service) | more).items():
        _add_routes(app, name, question, service, regenerate)
    add_presses(app, service)

    @app.get("/", include_in_schema=False)
    async def listed() -> Response:
        return Response(_list(app.openapi()), media_type="text/html")

    @app.api_route("/{name:path}", methods=["GET", "POST"], include_in_schema=False)
    async def closed(name: str) -> Response:
        raise Refused(404, CLOSED)

    return app


def _add_routes(
    app: FastAPI, name: str, question: Question, service: Service, regenerate: Regenerator
) -> None:
    shares, store = service.shares, service.store
    path, picture = f"/{name}", PICTURES.get(name)
    is_idle = picture is not None and picture.idle
    line = "idle" if is_idle else "files" if name in FILES else "questions"
    described: dict[str, Any] = {"response_class": Response}

    async def post(request: Request, data: Data) -> Response:
        """By an object in JSON; "made" in it says how runs that are not here were made."""
        if "made" in data:
            requests = data.pop("made")
            remake = partial(service.budget.attempt, lambda: regenerate.make(requests))
            await in_thread(shares, "questions", remake)
        return await answered(request, data, NO_STORE)

    async def answered(request: Request, data: dict[str, Any], cache: str) -> Response:
        headers = request.headers
        with_arrays = ARRAYS in headers.get("accept", "")

        def made() -> tuple[bytes, dict[str, str]]:
            body, kind = service.budget.attempt(lambda: written(question(dict(data)), with_arrays))
            tag = hashlib.blake2b(body, digest_size=12).hexdigest()
            sent = {"content-type": kind, "vary": "Accept, Accept-Encoding"}
            if len(body) <= LARGEST and "br" in headers.get("accept-encoding", ""):
                body, tag = brotli.compress(body, quality=QUALITY), f"{tag}-br"
                sent["content-encoding"] = "br"
            return body, sent | {"etag": f'"{tag}"'}

        body, sent = await in_thread(shares, line, made)
        sent["cache-control"] = cache
        if headers.get("if-none-match") == sent["etag"]:
            return Response(status_code=304, headers=sent)
        return Response(body, headers=sent)

    if picture is not None:
        subjects = [*_subjects(service, picture)]
        public = [] if picture.subject == "model" else subjects
        parameters = {parameter.name: parameter for parameter in picture.parameters}

        async def get(request: Request) -> Response:
            """By query: each value as a link writes it. Answers about a visitor's
            own run are stored nowhere; those about the page's examples are, and revalidated."""
            data = {
                name: parameters[name].read(text) if name in parameters else text
                for name, text in request.query_params.items()
                if name != LANGUAGE_PARAMETER
            }
            is_public = all(store.is_pinned(data.get(name)) for name in public)
            return await answered(request, data, "private, no-cache" if is_public else NO_STORE)

        described |= {"summary": picture.title or picture.name, "description": picture.help}
        read = {"parameters": _parameters(picture, subjects)}
        app.add_api_route(path, get, methods=["GET"], openapi_extra=read, **described)
    sent = {"requestBody": {"content": {JSON: {"schema": {"type": "object"}}}}}
    app.add_api_route(path, post, methods=["POST"], openapi_extra=sent, **described)


def written(answer: Answer, with_arrays: bool = False) -> tuple[bytes, str]:
    """An answer's bytes and their type.

    ARRAYS: the length of a JSON text (4 bytes, the smallest first), the text, and the arrays behind
    it, each from a multiple of 8 on. The text is [the answer, [[path, dtype, length], ...]].
    """
    arrays: list[tuple[list[str], NDArray[Any]]] = []

    def plain(value: Any, *path: str) -> Any:
        if is_figure(value):
            return orjson.Fragment(value.to_json(validate=False))
        if isinstance(value, np.ndarray) and with_arrays:
            dtype = DTYPES.get(value.dtype.kind, "<f4")
            return arrays.append(([*path], np.ascontiguousarray(value, dtype)))
        if isinstance(value, np.ndarray):
            return numbers(value, packed=True)
        if isinstance(value, dict):
            return {name: plain(item, *path, name) for name, item in value.items()}
        return value

    values = plain(answer)
    if not arrays:
        return _json(values), JSON
    text = _json([values, [[path, array.dtype.name, array.size] for path, array in arrays]])
    parts = [text + b" " * (-(4 + len(text)) % 8)]
    parts.insert(0, len(parts[0]).to_bytes(4, "little"))
    for _, array in arrays:
        parts += [array.tobytes(), bytes(-array.nbytes % 8)]
    return b"".join(parts), ARRAYS


def numbers(matrix: NDArray[Any], packed: bool) -> Any:
    """Nested lists, which take twenty times the room of {"shape", "dtype", "base64"}: rows one
    after the other, numbers with the smallest byte first.

    Raises ValueError for more than MAX_LISTED numbers that are not to be packed.
    """
    check_flag("packed", packed)
    if not packed:
        if matrix.size > MAX_LISTED:
            raise ValueError(
                f"{matrix.size:,} numbers are too many for nested lists; allowed: at most "
                f"{MAX_LISTED:,}, or packed=True"
            )
        return matrix.tolist()
    little = np.ascontiguousarray(matrix, matrix.dtype.newbyteorder("<"))
    sent = base64.b64encode(little.tobytes()).decode("ascii")
    return {"shape": list(matrix.shape), "dtype": matrix.dtype.name, "base64": sent}


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)


def _parameters(picture: Picture, subjects: list[str]) -> list[dict[str, Any]]:
    """The parameters of a picture's query, in OpenAPI's terms."""
    kinds = {"int": "integer", "number": "number", "bool": "boolean"}
    limits = {"options": "enum", "least": "minimum", "most": "maximum"}
    of: list[Parameter] = [Text(name=name) for name in subjects]
    described = []
    for parameter in (*of, *picture.parameters):
        facts = parameter.schema()
        schema: dict[str, Any] = {"type": kinds.get(facts["type"], "string")}
        schema["default"] = facts["default"]
        for name, meaning in limits.items():
            if facts.get(name) is not None:
                schema[meaning] = list(facts[name]) if name == "options" else facts[name]
        about = parameter.help or parameter.title
        described.append(
            {
                "name": parameter.name,
                "in": "query",
                "required": parameter in of,
                "description": about,
            }
            | {"schema": schema}
        )
    return described


def _list(described: Mapping[str, Any]) -> str:
    """A page that lists the GET routes, with the parameters of each."""
    rows = [
        f"<dt><code>GET {html.escape(path)}</code></dt><dd>{html.escape(route['get']['summary'])}: "
        + ", ".join(f"<code>{parameter['name']}</code>" for parameter in route["get"]["parameters"])
        + "</dd>"
        for path, route in described["paths"].items()
        if "get" in route
    ]
    return (
        "<!doctype html><meta charset=utf-8><title>Resources</title><h1>Resources</h1>"
        f'<p><a href="openapi.json">openapi.json</a></p><dl>{"".join(rows)}</dl>'
    )
