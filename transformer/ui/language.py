"""In which language a visitor is answered: the browser's own, of those that there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from starlette.types import Scope

from transformer.messages import ENGLISH, catalogue, chosen, filled, language, languages, mark, say
from transformer.messages.markup import translated

LOST = mark("A part of the page could not be loaded; reload the page.")
# In the query of a request; see ui/static/header.js.
# Below these, a request of the page names its language, and any other is a program's.
PROGRAMS = ("/gradio_api/", "/resources")
ASKED, NAME = "__lang", re.compile(r"[A-Za-z-]{2,20}")
# Words of Gradio's controls, by the names of the properties that hold them.
WORDS = ("label", "info", "placeholder")
OF_BUTTONS = ("button", "markdown", "tabitem")  # components whose value or label is ours
_template = lru_cache(maxsize=1024)(translated)

_WORDINGS: dict[str, tuple[str, dict[str, object]]] = {}  # what `wording` made, by its English text
_MADE: dict[str, Callable[[], str]] = {}  # what `remade` made, by its English text


def wording(sentence: str, /, **values: object) -> str:
    """A control's words: English while the page is built, `localized` for each visitor."""
    if language() == ENGLISH:
        _WORDINGS[filled(sentence, values)] = sentence, values
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
    return chosen(", ".join(accepted))


def remade(make: Callable[[], str]) -> str:
    """A text of the built page that is made anew, and not only said, in each visitor's language."""
    text = make()
    _MADE[text] = make
    return text


def localized(text: str) -> str:
    """What was said in English when the page was built, in this request's language."""
    if text in _MADE:
        return _MADE[text]()
    sentence, values = _WORDINGS.get(text, (text, {}))
    return say(sentence, **values)


def page_of(config: dict[str, Any]) -> dict[str, Any]:
    """Gradio's description of the page, in this request's language."""
    if not catalogue(language()).messages:
        return config
    components = [one | {"props": _props(one)} for one in config["components"]]
    return config | {"title": localized(config["title"]), "components": components}


def _props(component: Mapping[str, Any]) -> dict[str, Any]:
    props: dict[str, Any] = dict(component["props"])
    for name in WORDS + (("value",) if component["type"] in OF_BUTTONS else ()):
        if isinstance(props.get(name), str):
            props[name] = localized(props[name])
    if component["type"] == "radio":
        props["choices"] = [(localized(words), value) for words, value in props["choices"]]
    if isinstance(props.get("html_template"), str):
        props["html_template"] = _template(props["html_template"], language())
        props["js_on_load"] = str(props.get("js_on_load")).replace(LOST, say(LOST))
    value = props.get("value")
    if isinstance(value, dict) and set(value) == {"kind", "text", "at"}:  # a status
        props["value"] = value | {"text": localized(value["text"])}
    if isinstance(value, dict) and isinstance(value.get("how"), str):  # a run
        props["value"] = value | {"how": localized(value["how"])}
    return props


def named() -> list[tuple[str, str]]:
    """Every language: what HTML calls it, and its own name."""
    return [(known.tag, known.name) for known in map(catalogue, languages())]


def tag() -> str:
    """What HTML calls this request's language, such as "zh-Hans"."""
    return catalogue(language()).tag
