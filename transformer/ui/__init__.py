"""The Gradio page and its API. Only this package and app.py know Gradio."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import gradio as gr
from starlette.middleware import Middleware
from starlette.routing import Mount

from transformer.inference.engines.compiled import engine_words
from transformer.inference.model import Model
from transformer.messages import say
from transformer.ui import process
from transformer.ui.api import check_tools, in_json
from transformer.ui.asgi_guard import AsgiGuard, host_of, is_local
from transformer.ui.components import put_first
from transformer.ui.examples import cards
from transformer.ui.lessons import offered
from transformer.ui.limits import MAX_REQUEST_BYTES, MAX_TRAININGS, MAX_WAITING
from transformer.ui.modules import MODULES
from transformer.ui.page import build, first_look
from transformer.ui.page_queue import Queue
from transformer.ui.process import Shutdown, raise_file_limit, shorten_logs
from transformer.ui.qr import code_question
from transformer.ui.request_guard import POLICY, QUALITY, BelowPath, CompressedPage, policy_for
from transformer.ui.resources import PREFIX, resource_app
from transformer.ui.service import Service
from transformer.views.drawing.style import FONT

SWEEP_S = 10.0
# A Space is reached through proxies of its own network alone.
PRIVATE = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,127.0.0.0/8,fc00::/7,::1"


def launch(
    models: Sequence[Model],
    *,
    host: str | None = None,
    port: int | None = None,
    mcp: bool = False,
    trainings: int = MAX_TRAININGS,
    embed_on: Sequence[str] = (),
    trusted_hosts: Sequence[str] = (),
) -> None:
    """Serve the page until interrupted.

    host None: what the environment says (GRADIO_SERVER_NAME), else this machine only. mcp: serve
    the API's endpoints as tools too. trainings: networks trained at the same time. embed_on:
    origins of other pages that may show this one inside them. trusted_hosts: names by which a
    server that listens on this machine alone may be asked besides localhost, as a proxy passes them
    on; "*": any. Raises ValueError for models that
    cannot be served together, for what is no origin, or without the package that tools need;
    RuntimeError if the queue has ended by a mistake, so that whatever watches over the server can
    start it anew.
    """
    if mcp:
        check_tools()
    policy = policy_for(embed_on)
    root = os.environ.get("GRADIO_ROOT_PATH", "").strip("/")
    process.limit_arenas()
    raise_file_limit()
    shorten_logs()
    # uvicorn reads it; by default no proxy is trusted to state a client's address.
    os.environ.setdefault("FORWARDED_ALLOW_IPS", PRIVATE if "SPACE_ID" in os.environ else "")
    MODULES.warm()
    service = Service(models, trainings)
    print(f"models {', '.join(service.models)} on {models[0].device}", flush=True)
    put_first(first_look(service), cards(service.models), offered(service.models))
    page = build(service)
    shutdown, hosts = Shutdown(page._queue), hosts_for(host, trusted_hosts, root)
    fonts = [name.strip(' "') for name in FONT.split(",")]  # the system's: nothing is fetched
    process.freeze_gc()
    page.launch(
        app_kwargs={
            "routes": [Mount(PREFIX, resource_app(service, code_question(page)))],
            "middleware": [
                Middleware(BelowPath),
                guard_of(service, page, shutdown, mcp, policy, hosts),
                Middleware(CompressedPage, quality=QUALITY),
            ],
            "lifespan": process.watched(in_json(page)),
        },
        mcp_server=mcp,
        max_file_size=MAX_REQUEST_BYTES,
        server_name=f"[{host.strip('[]')}]" if host and ":" in host else host,
        server_port=port,
        root_path=root if "://" in root or not root else f"/{root}",
        show_error=True,
        share=False,
        ssr_mode=False,
        run_history=False,
        enable_monitoring=False,
        strict_cors=True,
        footer_links=["api"],
        theme=gr.themes.Base(
            primary_hue="blue", neutral_hue="slate", font=fonts,
            font_mono=["ui-monospace", "Consolas", "monospace"],
            text_size="lg", spacing_size="sm", radius_size="sm",
        ),
        prevent_thread_lock=True,
        _frontend=False,  # else Gradio ends a server that does not answer itself within 3 s
    )  # fmt: skip
    process.notify("READY=1")
    with suppress(KeyboardInterrupt):
        try:
            while not page._queue.stopped:
                time.sleep(SWEEP_S)
                service.sweep()
                process.return_memory()
        finally:
            process.notify("STOPPING=1")
            shutdown.end()
        raise RuntimeError(
            say("the queue has ended by a mistake: no request can be answered any more")
        )


def hosts_for(host: str | None, trusted: Sequence[str], root: str) -> frozenset[str] | None:
    """The names that are checked in requests' Host headers; None: none are.

    Only a server that listens on this machine alone checks them. It knows the name in
    GRADIO_ROOT_PATH, and a proxy that FORWARDED_ALLOW_IPS names may use any.
    """
    listens = host_of(host or os.environ.get("GRADIO_SERVER_NAME", "localhost"))
    if "*" in trusted or not is_local(listens) or os.environ.get("FORWARDED_ALLOW_IPS"):
        return None
    return frozenset(host_of(name) for name in (*trusted, root if "://" in root else "") if name)


def guard_of(
    service: Service,
    page: gr.Blocks,
    shutdown: Shutdown,
    mcp: bool = False,
    policy: str = POLICY,
    hosts: frozenset[str] | None = None,
) -> Middleware:
    """The guard before the page; what waits for those who leave is dropped from the queue."""
    began = time.monotonic()

    def health() -> dict[str, Any]:
        kept = service.budget.held()
        return {
            "status": "stopped" if page._queue.stopped else "ok",
            "models": list(service.models),
            "engines": {
                name: engine_words(it.engine, it.network) for name, it in service.models.items()
            },
            "uptime_s": round(time.monotonic() - began, 1),
            "waiting": len(page._queue),
            "running": service.sessions.under_way(),
            "resources": {name: line.counts() for name, line in service.shares.items()},
            "kept": kept,
            "kept_bytes": sum(one["bytes"] for one in kept.values()),
            "weight_bytes": {name: it.weight_bytes for name, it in service.models.items()},
            "memory_bytes": process.resident_bytes(),
            "allocations": service.memory.facts(),
        }

    def ready() -> str:
        if page._queue.stopped:
            return "stopped"
        is_full = service.shares["model"].counts()["waiting"] >= MAX_WAITING
        return "full" if is_full else "ok" if page.is_running else "starting"

    if isinstance(page._queue, Queue):
        page._queue.shares = service.shares
        page._queue.keep_answers_in(service.budget)
        service.sessions.on_leave.append(page._queue.leave)
    return Middleware(
        AsgiGuard,
        health=health,
        ready=ready,
        shares=service.shares,
        leave=service.sessions.leave,
        tools=mcp,
        policy=policy,
        shutdown=shutdown,
        hosts=hosts,
    )


__all__ = ["Service", "build", "launch"]
