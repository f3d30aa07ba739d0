"""The Gradio page and its API. Only this package and app.py know Gradio."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from transformer.inference.model import Model
from transformer.ui import memory
from transformer.ui.components import css, head, put_first
from transformer.ui.gate import Gate, uptime
from transformer.ui.limits import MAX_REQUEST_BYTES, MAX_SESSIONS
from transformer.ui.page import build
from transformer.ui.service import Decorator, Service
from transformer.ui.tools import check_tools, in_json

SWEEP_S = 10.0


def launch(
    models: Sequence[Model],
    *,
    host: str | None = None,
    port: int | None = None,
    gpu: Decorator | None = None,
    mcp: bool = False,
) -> None:
    """Serve the page until interrupted.

    host None: what the environment says (GRADIO_SERVER_NAME), else this machine only. mcp: serve
    the API's endpoints as tools too. Raises ValueError for models that cannot be served together,
    or without the package that tools need.
    """
    if mcp:
        check_tools()
    memory.bound()
    put_first()
    service = Service(models, gpu)
    page = build(service)
    threading.Thread(target=_sweep, args=[service], daemon=True).start()
    page.launch(
        app_kwargs={"middleware": [gate_of(service, page, mcp)], "lifespan": in_json(page)},
        mcp_server=mcp,
        state_session_capacity=MAX_SESSIONS,
        max_file_size=MAX_REQUEST_BYTES,
        server_name=host,
        server_port=port,
        show_error=True,
        share=False,
        ssr_mode=False,
        run_history=False,
        enable_monitoring=False,
        strict_cors=True,
        footer_links=["api"],
        theme=_theme(),
        css=css(),
        head=head(),
    )


def gate_of(service: Service, page: gr.Blocks, mcp: bool = False) -> Middleware:
    """The gate before the page; who leaves is also forgotten by Gradio, which keeps what stands in
    a visitor's controls."""
    clock = uptime()

    def health() -> dict[str, Any]:
        kept, size = service.store.sweep()
        return {
            "status": "ok",
            "models": list(service.models),
            "uptime_s": round(clock(), 1),
            "waiting": len(page._queue),
            "running": service.visitors.under_way(),
            "kept_runs": kept,
            "kept_bytes": size,
        }

    def forget(visitor: str) -> None:
        page.state_holder.session_data.pop(visitor, None)
        page.state_holder.time_last_used.pop(visitor, None)

    service.visitors.on_leave.append(forget)
    return Middleware(
        Gate,
        health=health,
        waiting=lambda: len(page._queue),
        leave=service.visitors.leave,
        tools=mcp,
    )


def _sweep(service: Service) -> None:
    while True:
        time.sleep(SWEEP_S)
        service.store.sweep()
        memory.trim()


def _theme() -> gr.themes.Base:
    """System fonts (nothing is fetched), one accent, flat."""
    fonts = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif"]
    mono = ["ui-monospace", "Consolas", "monospace"]
    return gr.themes.Base(
        primary_hue="blue", neutral_hue="slate", font=fonts, font_mono=mono,
        text_size="lg", spacing_size="sm", radius_size="sm",
    )  # fmt: skip


__all__ = ["Service", "build", "launch"]
