"""Sentences in HTML templates: no mark is needed, every text and every read-out attribute is one.

A sentence is a text with the phrase elements inside it, as it stands there ("click <b>one</b>"):
what a translator sees and may put in another order. An element without text of its own before or
after it (an icon, a number's place) belongs to a sentence only in its middle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

from transformer.messages.catalogues import catalogue, glossary

PHRASES = frozenset(
    ("a", "b", "bdi", "br", "code", "em", "i", "kbd", "span", "strong", "sub", "sup")
)
SILENT = frozenset(("script", "style"))
VOID = frozenset(("br", "hr", "img", "input", "link", "meta"))
ATTRIBUTE = re.compile(
    r'(\s(?:aria-label|aria-roledescription|placeholder|title|alt)=")([^"]*)(?=")'
)
_WORD = re.compile(r"[^\W\d_]{2}")
_FILLED_IN = re.compile(r"/\*\w+\*/")  # what a file for export puts there
_SPACE = re.compile(r"\s+")


@dataclass(slots=True)
class _Node:
    """A text ("" as its tag) or an element, from start to end in the template."""

    tag: str
    start: int
    end: int = 0
    text: str = ""
    children: list[_Node] = field(default_factory=list)

    def is_phrase(self) -> bool:
        return not self.tag or (
            self.tag in PHRASES and all(one.is_phrase() for one in self.children)
        )

    def words(self) -> str:
        return self.text + "".join(child.words() for child in self.children)


class _Reader(HTMLParser):
    """The tree of a template, each node with its place."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self.root = _Node("root", 0, len(text))
        self._open = [self.root]
        self.feed(text)
        self.close()

    def _at(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def handle_starttag(self, tag: str, attrs: object) -> None:
        start = self._at()
        made = _Node(tag, start, start + len(self.get_starttag_text() or ""))
        self._open[-1].children.append(made)
        if tag not in VOID:
            self._open.append(made)

    def handle_endtag(self, tag: str) -> None:
        if self._open[-1].tag == tag and len(self._open) > 1:
            self._open.pop().end = self._at() + len(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        start = self._at()
        self._open[-1].children.append(_Node("", start, start + len(data), data))

    def handle_entityref(self, name: str) -> None:
        self.handle_data(f"&{name};")


def places(text: str) -> Iterator[tuple[int, int]]:
    """Where the sentences between tags stand, in their order; from the first letter to the last."""
    yield from _in(_Reader(text).root.children, text)


def _in(nodes: list[_Node], text: str) -> Iterator[tuple[int, int]]:
    run: list[_Node] = []
    for node in (*nodes, None):
        if node is not None and node.is_phrase():
            run.append(node)
            continue
        yield from _of_run(run, text)
        run = []
        if node is not None and node.tag not in SILENT:
            yield from _in(node.children, text)


def _of_run(run: list[_Node], text: str) -> Iterator[tuple[int, int]]:
    while run and not run[0].words().strip():
        run = run[1:]
    while run and not run[-1].words().strip():
        run = run[:-1]
    if any(not node.tag and _WORD.search(_FILLED_IN.sub("", node.text)) for node in run):
        start, end = run[0].start, run[-1].end
        inner = text[start:end]
        yield start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())
    else:
        for node in run:
            yield from _in(node.children, text)


def sentences(text: str) -> Iterator[str]:
    """Every sentence of a template, white space made one."""
    for start, end in places(text):
        yield _SPACE.sub(" ", text[start:end])
    for found in ATTRIBUTE.finditer(text):
        if _WORD.search(found[2]):
            yield found[2]


def translated(text: str, language: str) -> str:
    """A template in another language; what the catalogue does not have stays English."""
    known = catalogue(language)
    if not known.messages:
        return text
    one: Callable[[str], str] = known.one
    parts, last = [], 0
    for start, end in places(text):
        parts += [text[last:start], one(_SPACE.sub(" ", text[start:end]))]
        last = end
    whole = "".join((*parts, text[last:]))
    return ATTRIBUTE.sub(lambda found: found[1] + one(found[2]).replace('"', "&quot;"), whole)


def glossary_element(language: str) -> str:
    """An element for a page's head, which terms.js reads: the glossary of a language."""
    return _element("glossary", glossary(language))


def _element(name: str, content: object) -> str:
    text = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


def of_scripts(language: str) -> str:
    """An element for a page's head, which messages.js reads: what scripts say in a language, and
    how it writes numbers. Nothing for English."""
    known = catalogue(language)
    if not known.messages:
        return ""
    content = {
        "forms": known.forms,
        "decimal": known.decimal,
        "group": known.group,
        "group_from": known.group_from,
        "messages": {key: known.messages[key] for key in sorted(known.scripts)},
    }
    return _element("messages", content)


def whole_page(text: str, language: str) -> str:
    """A page of its own in another language, its scripts too."""
    said = f'lang="{catalogue(language).tag}"'
    page = translated(text, language).replace('lang="en"', said, 1)
    return page.replace("</head>", f"{of_scripts(language)}</head>", 1)
