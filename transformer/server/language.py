"""Answer each visitor in the browser's language, if there is a catalogue for it."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from starlette.types import Scope

from transformer.messages import catalogue, languages, negotiate_language

# Below these paths the page's own requests name their language; any other is a program's.
PROGRAMS = ("/gradio_api/", "/resources")
# The language in a request's query; see server/static/header.js.
ASKED, NAME = "__lang", re.compile(r"[A-Za-z-]{2,20}")


def language_of(scope: Scope) -> str:
    """The language that an ASGI request asks for: in its query, as all requests of the page's
    scripts do, or, for the page itself, in its header. English for programs."""
    asked = parse_qs(scope["query_string"].decode("ascii", "replace")).get(ASKED, [""])[0]
    accepted = [asked] if NAME.fullmatch(asked) else []
    path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
    if not path.startswith(PROGRAMS):
        accepted.append(dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1"))
    return negotiate_language(", ".join(accepted))


def named() -> list[tuple[str, str]]:
    """Every language: what HTML calls it, and its own name."""
    return [(known.tag, known.name) for known in map(catalogue, languages())]
