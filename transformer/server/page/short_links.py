"""Short addresses that people send, such as /forget: each opens the page at one state, and has a
title, a sentence and a picture for the message that it is sent in. They are data, in tour.toml."""

from __future__ import annotations

import html
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from transformer.analysis.atlas import atlas
from transformer.learning.training import bundled_recording, pictures_of
from transformer.messages import language, say
from transformer.model.sites import Site
from transformer.server.fields import read_tour
from transformer.server.http.requests import in_thread
from transformer.server.kept.service import Service
from transformer.views.attention.grid import indexed_png, mosaic, tiles
from transformer.views.drawing.style import LIGHT

WIDTH, HEIGHT = 1200, 630  # of a preview, as messages show it
PAGE = """<!doctype html>
<html lang="{language}">
  <head>
    <meta charset="utf-8">
    <title>{title}</title>
    <meta name="description" content="{says}">
    <meta property="og:title" content="{title}">
    <meta property="og:description" content="{says}">
    <meta property="og:image" content="{picture}">
    <meta name="twitter:card" content="summary_large_image">
    <meta http-equiv="refresh" content="0;url=./#{state}">
  </head>
  <body><a href="./#{state}">{title}</a></body>
</html>
"""


def short_links(models: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The short links whose model is served, by their name in the address."""
    return {link["name"]: link for link in read_tour()["link"] if link["state"]["model"] in models}


def link_routes(service: Service) -> APIRouter:
    """Each short link at /NAME, and its picture at /NAME.png."""
    router = APIRouter()

    @cache
    def picture(name: str) -> bytes:
        return preview(service, short_links(service.models)[name]["state"])

    def add(name: str, link: Mapping[str, Any]) -> None:
        async def page(request: Request) -> HTMLResponse:
            words = {
                "language": language(),
                "title": say(link["title"]),
                "says": say(link["says"]),
                "picture": str(request.url).partition("?")[0] + ".png",
                "state": urlencode(link["state"]),
            }
            return HTMLResponse(PAGE.format_map({k: html.escape(v) for k, v in words.items()}))

        async def png() -> Response:
            image = await in_thread(service.shares, "questions", lambda: picture(name))
            return Response(image, media_type="image/png")

        router.add_api_route(f"/{name}", page, methods=["GET", "HEAD"])
        router.add_api_route(f"/{name}.png", png, methods=["GET", "HEAD"])

    for name, link in short_links(service.models).items():
        add(name, link)
    return router


def preview(service: Service, state: Mapping[str, Any]) -> bytes:
    """A state as a PNG of WIDTH x HEIGHT: the head that it names, or else the heads of the recorded
    training."""
    if "site" in state:
        site = Site.parse(state["site"])
        run = service.read(state["model"], state["text"])
        cells = tiles(atlas(run, site.stack, site.kind))[site.layer, int(state["head"])]
    else:
        record = bundled_recording("induction")
        cells = mosaic(pictures_of(record.model(), record.plan.exercise)["decoder.self"])
    scale = min(WIDTH // cells.shape[1], HEIGHT // cells.shape[0])
    large = np.kron(cells, np.ones((scale, scale), dtype=np.uint8))
    top, left = (HEIGHT - large.shape[0]) // 2, (WIDTH - large.shape[1]) // 2
    paper = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
    paper[top : top + large.shape[0], left : left + large.shape[1]] = large
    return indexed_png(paper, LIGHT.weights)
