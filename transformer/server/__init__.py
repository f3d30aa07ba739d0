"""The Gradio page and its API. Only this package knows Gradio."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from fastapi import APIRouter, FastAPI, Response
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from transformer.inference.engines.compiled import engine_words
from transformer.inference.model import Model
from transformer.messages import ENGLISH
from transformer.server.classroom.class_routes import (
    class_routes,
    phone_routes,
    step_shower,
    text_taker,
)
from transformer.server.classroom.classes import Classes
from transformer.server.http import process
from transformer.server.http.addresses import (
    BelowPath,
    code_maker,
    hosts_for,
    path_below,
    root_path,
)
from transformer.server.http.errors import HANDLERS
from transformer.server.http.guard import API, RESOURCES, Guard
from transformer.server.http.http_server import Server, url_of, watched
from transformer.server.http.limits import MAX_TRAININGS, MAX_WAITING
from transformer.server.http.requests import caller, stalled
from transformer.server.kept.service import Service
from transformer.server.learn.lessons import teacher_routes
from transformer.server.page.gradio_files import assets
from transformer.server.page.in_browser import PREFIX as WEIGHTS_PREFIX
from transformer.server.page.in_browser import InBrowser
from transformer.server.page.layout import TITLE
from transformer.server.page.modules import MODULES
from transformer.server.page.modules import PREFIX as MODULES_PREFIX
from transformer.server.page.pages import Pages, mount, policy_for
from transformer.server.page.resources import resource_app
from transformer.server.page.short_links import link_routes
from transformer.server.page.static_page import page_maker
from transformer.server.programs.api import check_tools, endpoint_blocks, endpoints_of, tools
from transformer.server.programs.protocol import Programs, program_routes

SWEEP_S = 10.0
# A Space is reached only through proxies in private networks.
PRIVATE = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,127.0.0.0/8,fc00::/7,::1"
LOCAL_ORIGIN = r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?"


def launch(
    models: Sequence[Model],
    bound: socket.socket,
    *,
    mcp: bool = False,
    trainings: int = MAX_TRAININGS,
    debug: bool = False,
    embed_on: Sequence[str] = (),
    trusted_hosts: Sequence[str] = (),
) -> None:
    """Serve the page until interrupted.

    bound: a socket from `server.listen`. mcp: serve the API's endpoints as tools too. trainings:
    networks trained at the same time. debug: see `Service`. embed_on: origins of other pages that
    may embed this one. trusted_hosts: Host headers to accept besides localhost's when bound to
    loopback; "*": any. Raises ValueError for duplicate model names, an invalid origin, or a missing
    `mcp` package.
    """
    if mcp:
        check_tools()
    policy = policy_for(embed_on)
    process.limit_arenas()
    process.raise_file_limit()
    process.switch_threads_often()
    process.shorten_logs()
    # uvicorn reads it; by default no proxy is trusted to state a client's address.
    os.environ.setdefault("FORWARDED_ALLOW_IPS", PRIVATE if "SPACE_ID" in os.environ else "")
    service = Service(models, trainings, debug=debug)
    print(f"models {', '.join(service.models)} on {models[0].device}", flush=True)
    hosts = hosts_for(bound.getsockname()[0], trusted_hosts, root_path())
    served = asyncio.run(application(service, bound, mcp=mcp, policy=policy, hosts=hosts))
    MODULES.warm(served.pages.asset(ENGLISH))
    process.freeze_gc()
    print(f"the page is at {url_of(bound)}", flush=True)
    with suppress(KeyboardInterrupt):  # uvicorn has ended by it
        Server(served.app, served.end).run(sockets=[bound])


class Application(NamedTuple):
    """The parts of what is served. end: called when the server ends."""

    app: FastAPI
    pages: Pages
    end: Callable[[], None]


async def application(
    service: Service,
    bound: socket.socket | None = None,
    *,
    mcp: bool = False,
    policy: str = "",
    hosts: frozenset[str] | None = None,
) -> Application:
    """The whole site: the page and its files, the page's requests, programs' calls and tools.

    bound: what it will listen on, if that is known.
    Middleware, outermost first: CORS without credentials, the root path, the guard. Call inside an
    event loop; Gradio would otherwise create one and never close it.
    """
    root, endpoints = root_path(), endpoints_of(service)
    below = path_below(root)
    blocks = endpoint_blocks(service, endpoints, TITLE)
    pages = Pages(service, blocks.app_id, below)
    numbers = {number: str(it.api_name) for number, it in blocks.fns.items()}
    programs = Programs(service, endpoints, numbers)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        """Gradio's own would start its queue, which nothing here uses."""
        sweeping = asyncio.create_task(sweep(service))
        async with tools(blocks), watched(lambda: bool(stalled(service.shares))):
            yield
        sweeping.cancel()

    guard = Guard(tools=mcp, policy=policy or policy_for(()), hosts=hosts)
    origins = {"allow_origins": ["*"]} if hosts is None else {"allow_origin_regex": LOCAL_ORIGIN}
    app = FastAPI(
        openapi_url=None,
        exception_handlers=HANDLERS,
        middleware=[
            Middleware(CORSMiddleware, allow_methods=["*"], allow_headers=["*"], **origins),
            *([Middleware(BelowPath, root=below)] if below else []),
            Middleware(guard.around),
        ],
    )
    classes = Classes(service.budget)

    def opened() -> dict[str, int]:
        return {"requests": guard.n_open(), **programs.counts(), "phones": classes.n_waiting}

    app.include_router(status_routes(service, opened))
    app.add_api_route("/", pages.answer, methods=["GET", "HEAD"])
    app.mount(f"/{MODULES_PREFIX.rstrip('/')}", MODULES)
    host, port = bound.getsockname()[:2] if bound else (None, None)
    app.include_router(class_routes(classes), prefix=f"{RESOURCES}/class")
    in_browser = InBrowser(service)
    app.mount(f"/{WEIGHTS_PREFIX.rstrip('/')}", in_browser)
    questions = {
        "engine": in_browser.engine,
        "code": code_maker(host, port, root), "show_step": step_shower(service, classes),
        "class_text": text_taker(service, classes), "offline_page": page_maker(service),
    }  # fmt: skip
    app.mount(RESOURCES, resource_app(service, **questions))
    app.include_router(program_routes(programs), prefix=API)
    app.include_router(link_routes(service))
    app.include_router(teacher_routes(service))
    app.include_router(phone_routes(classes))
    mount(app, blocks, service.shares["pages"], assets(pages.gradio_names), below, mcp)
    app.router.lifespan_context = lifespan

    def end() -> None:
        programs.end()
        guard.end()

    return Application(app, pages, end)


async def sweep(service: Service) -> None:
    """Evict what is too old, every SWEEP_S."""

    def work() -> None:
        try:
            for line in stalled(service.shares):
                process.FAULTS.error(f"requests wait and none begins in the line of {line}")
        finally:
            service.sweep()
            process.return_memory()

    while True:
        await asyncio.sleep(SWEEP_S)
        try:
            await asyncio.to_thread(work)
        except Exception as error:  # the next one may succeed
            process.FAULTS.error("a mistake", exc_info=error)


def status_routes(service: Service, opened: Callable[[], dict[str, int]]) -> APIRouter:
    """/health, /ready, and the end of a visit. opened: what is open, by kind."""
    router, began = APIRouter(), time.monotonic()

    @router.api_route("/health", methods=["GET", "HEAD"])
    async def health() -> dict[str, Any]:
        kept = service.budget.held()
        lines = stalled(service.shares)
        return {
            "status": "stalled" if lines else "ok",
            "stalled": lines,
            "models": list(service.models),
            "engines": {
                name: engine_words(it.engine, it.network) for name, it in service.models.items()
            },
            "uptime_s": round(time.monotonic() - began, 1),
            "running": service.requests.under_way(),
            "open": opened(),
            "resources": {name: slots.counts() for name, slots in service.shares.items()},
            "kept": kept,
            "kept_bytes": sum(kind["bytes"] for kind in kept.values()),
            "weight_bytes": {name: it.weight_bytes for name, it in service.models.items()},
            "memory_bytes": process.resident_bytes(),
            "allocations": service.budget.failures(),
        }

    @router.api_route("/ready", methods=["GET", "HEAD"])
    async def ready(response: Response) -> dict[str, Any]:
        is_full = service.shares["model"].counts()["waiting"] >= MAX_WAITING
        status = "stalled" if stalled(service.shares) else "full" if is_full else "ok"
        response.status_code = 200 if status == "ok" else 503
        return {"status": status, "version": MODULES.version}

    @router.post("/leave", status_code=204)
    async def leave() -> None:
        service.requests.leave(caller().session)

    return router


__all__ = ["Service", "application", "launch"]
