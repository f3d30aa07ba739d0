"""Answer each visitor in the browser's language, if there is a catalogue for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from starlette.types import Scope

from transformer.messages import (
    ENGLISH,
    catalogue,
    filled,
    language,
    languages,
    mark,
    negotiate_language,
    say,
)
from transformer.messages.catalogues import translate_html

LOST = mark("A part of the page could not be loaded; reload the page.")
# Below these paths the page's own requests name their language; any other is a program's.
PROGRAMS = ("/gradio_api/", "/resources")
# The language in a request's query; see ui/static/header.js.
ASKED, NAME = "__lang", re.compile(r"[A-Za-z-]{2,20}")
# Words of Gradio's controls, by the names of the properties that hold them.
WORDS = ("label", "info", "placeholder")
OF_BUTTONS = ("button", "markdown", "tabitem")  # components whose value or label is ours
_template = lru_cache(maxsize=1024)(translate_html)

# By the English text of the built page: its sentence and values, or the function that makes it.
_LAZY_TEXTS: dict[str, tuple[str, dict[str, object]]] = {}
_LAZY_FACTORIES: dict[str, Callable[[], str]] = {}


def lazy_text(sentence: str, /, **values: object) -> str:
    """A control's words: English while the page is built; `translate` says them to a visitor."""
    if language() == ENGLISH:
        _LAZY_TEXTS[filled(sentence, values)] = sentence, values
    return say(sentence, **values)


def language_of(scope: Scope | None) -> str:
    """The language that an ASGI request asks for: in its query, as all requests of the page's
    scripts do, or, for the page itself, in its header. English for programs."""
    if not isinstance(scope, dict):
        return ENGLISH
    asked = parse_qs(scope["query_string"].decode("ascii", "replace")).get(ASKED, [""])[0]
    accepted = [asked] if NAME.fullmatch(asked) else []
    path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
    if not path.startswith(PROGRAMS):
        accepted.append(dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1"))
    return negotiate_language(", ".join(accepted))


def lazy_factory(make: Callable[[], str]) -> str:
    """Text regenerated, not just translated, for each visitor."""
    text = make()
    _LAZY_FACTORIES[text] = make
    return text


def translate(text: str) -> str:
    """Translate a text of the built page into this request's language."""
    if text in _LAZY_FACTORIES:
        return _LAZY_FACTORIES[text]()
    sentence, values = _LAZY_TEXTS.get(text, (text, {}))
    return say(sentence, **values)


def page_of(config: dict[str, Any]) -> dict[str, Any]:
    """Gradio's description of the page, in this request's language."""
    if not catalogue(language()).messages:
        return config
    components = [one | {"props": _props(one)} for one in config["components"]]
    return config | {"title": translate(config["title"]), "components": components}


def _props(component: Mapping[str, Any]) -> dict[str, Any]:
    props: dict[str, Any] = dict(component["props"])
    for name in WORDS + (("value",) if component["type"] in OF_BUTTONS else ()):
        if isinstance(props.get(name), str):
            props[name] = translate(props[name])
    if component["type"] == "radio":
        props["choices"] = [(translate(words), value) for words, value in props["choices"]]
    if isinstance(props.get("html_template"), str):
        props["html_template"] = _template(props["html_template"], language())
        props["js_on_load"] = str(props.get("js_on_load")).replace(LOST, say(LOST))
    value = props.get("value")
    if isinstance(value, dict) and set(value) == {"kind", "text"}:  # a status
        props["value"] = value | {"text": translate(value["text"])}
    if isinstance(value, dict) and isinstance(value.get("how"), str):  # a run
        props["value"] = value | {"how": translate(value["how"])}
    return props


def named() -> list[tuple[str, str]]:
    """Every language: what HTML calls it, and its own name."""
    return [(known.tag, known.name) for known in map(catalogue, languages())]


def tag() -> str:
    """What HTML calls this request's language, such as "zh-Hans"."""
    return catalogue(language()).tag
