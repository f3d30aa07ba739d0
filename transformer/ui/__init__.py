"""The Gradio page and its API. Only this package and app.py know Gradio."""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr

from transformer.inference.model import Model
from transformer.ui.components import css, head
from transformer.ui.page import build
from transformer.ui.service import Decorator, Service


def launch(
    models: Sequence[Model],
    *,
    host: str | None = None,
    port: int | None = None,
    gpu: Decorator | None = None,
) -> None:
    """Serve the page until interrupted.

    host None: what the environment says (GRADIO_SERVER_NAME), else this machine only.
    """
    page = build(Service(models, gpu))
    page.launch(
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


def _theme() -> gr.themes.Base:
    """System fonts (nothing is fetched), one accent, flat."""
    fonts = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif"]
    mono = ["ui-monospace", "Consolas", "monospace"]
    return gr.themes.Base(
        primary_hue="blue", neutral_hue="slate", font=fonts, font_mono=mono,
        text_size="lg", spacing_size="sm", radius_size="sm",
    )  # fmt: skip


__all__ = ["Service", "build", "launch"]
