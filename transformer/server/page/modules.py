"""The page's own scripts, style sheets and plotly.js, served as files that a browser keeps.

modules/HASH/views/attention/attention.js is transformer/views/attention/attention.js; HASH is of
all files together, so that an address never changes its content. Bundles save a hundred requests:
PAGE, the scripts of the first tab; STYLE, all style sheets; LATER, the scripts of other tabs and of
what a button opens; ENGINE, which starts the network in the browser, WORKER, that network; and
PHONE, the page of a class's phones. Each but WORKER contains its sentences, so there is one for
each language.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import brotli
from anyio import to_thread
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from transformer.messages import ENGLISH, catalogue, files_of, languages
from transformer.messages.sources import of_script, sentences
from transformer.messages.templates import json_in_script, script_catalogue
from transformer.server.fields import fields_schema
from transformer.server.http.errors import CLOSED, public_error
from transformer.views.declaration import View, tabs
from transformer.views.export.bundle import bundle, needed_by
from transformer.views.registry import VIEWS, own_views

PACKAGE = Path(__file__).resolve().parents[2]
FOLDERS = ("server/static", "web", "views", "browser")
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
PREFIX = "modules/"
MAIN = "server/static/main.js"
PAGE = "server/static/page.js"  # a bundle of MAIN and of all that is mounted as the page opens
PANEL = "web/view.js"  # of views without a script
LATER = "server/static/later.js"  # mounted when another tab is first opened
# Of LATER, by buttons.
OPENED_SCRIPTS = (
    *("server/static/class.js", "server/static/code.js", "views/export/page_picture.js"),
    *("views/journey/forward_card.js", "views/journey/large_head.js"),
    *("views/journey/passages.js", "views/journey/word_card.js"),
)
ENGINE = "server/static/engine.js"  # begins with BESIDE, once the page has opened
BESIDE = "browser/page/beside.js"
WORKER = "server/static/worker.js"  # a bundle of IN_WORKER
IN_WORKER = "browser/page_worker.js"
PHONE = "server/static/phone.js"
STYLE = "server/static/style.css"
PLOTLY_JS = "server/static/vendor/plotly-cartesian.min.js"
# What components share, before their own.
SHARED = ("web/theme.css", "server/static/pictures.css", "server/static/page.css")
APART = ("views/export/static/", "browser/")  # of pages without a server
TELLING = (PACKAGE / "server" / "tour.toml", PACKAGE / "learning" / "exercises.py")
FOREVER = "public, max-age=31536000, immutable"
ROOT = re.compile("^:root(?= )", re.MULTILINE)  # a rule of the whole page
MOUNT = ("\nexport function mount(", "\nexport const mount = ")
SENTENCES = '"the sentences of a language";\n'  # what each language's own replace
SAID = f'import {{ speak }} from "./messages.js";\n{SENTENCES}'
# Of scripts that run as the page opens: Chromium compiles them while they come, in another thread.
EAGER = "//# allFunctionsCalledOnLoad\n"
QUALITY = 10  # of brotli: half the time of 11 for 2 % more bytes; 9 takes 8 % more


@dataclass(frozen=True, kw_only=True, eq=False)
class Asset:
    """A file in the forms in which it can be sent."""

    plain: bytes
    type: str
    packed: dict[str, bytes] = field(default_factory=dict)  # by content coding
    lock: threading.Lock = field(default_factory=threading.Lock)

    def encoded(self, coding: str) -> bytes:
        """coding: "br", "gzip", or "" for the plain file."""
        if not coding:
            return self.plain
        with self.lock:
            if coding not in self.packed:
                self.packed[coding] = (
                    brotli.compress(self.plain, quality=QUALITY)
                    if coding == "br"
                    else gzip.compress(self.plain, mtime=0)
                )
            return self.packed[coding]

    def answer(self, request: Headers, cache: str) -> Response:
        """Negotiate the encoding; 304 if the client has the file. cache: Cache-Control."""
        accepted = request.get("accept-encoding", "").split(",")
        names = [coding.partition(";")[0].strip() for coding in accepted if "q=0" not in coding]
        coding = next((coding for coding in ("br", "gzip") if coding in names), "")
        tag = f'"{self.tag}{f"-{coding}" if coding else ""}"'
        headers = {"Cache-Control": cache, "ETag": tag, "Vary": "Accept-Encoding"}
        if tag in request.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if coding:
            headers["Content-Encoding"] = coding
        return Response(self.encoded(coding), media_type=self.type, headers=headers)

    @cached_property
    def tag(self) -> str:
        """A hash of its contents."""
        return hashlib.sha256(self.plain).hexdigest()[:16]


class Modules:
    """An ASGI app of the files below FOLDERS, as they are when first looked at."""

    def __init__(self) -> None:
        self._bundles: dict[str, Asset] = {}
        self._lock = threading.Lock()

    def asset(self, name: str) -> Asset:
        """A file by its path in the package, with "/". Raises KeyError for one that is not served.

        A bundle's sentences are put in when its language is first asked for.
        """
        if name in self._shared:
            return self._shared[name]
        script, language = self._translated[name]
        with self._lock:
            if name not in self._bundles:
                text = script.in_language(language)
                self._bundles[name] = Asset(plain=text.encode(), type=TYPES[".js"])
            return self._bundles[name]

    @cached_property
    def _shared(self) -> dict[str, Asset]:
        """What is the same in every language."""
        worker = bundle(IN_WORKER) if IN_WORKER in self._files else ""
        apart = {WORKER: Asset(plain=worker.encode(), type=TYPES[".js"])}
        return self._files | {STYLE: _style_of(self._files)} | apart

    @cached_property
    def _translated(self) -> dict[str, tuple[Script, str]]:
        """Each bundle of each language, by its name."""
        return {
            in_language(name, language): (script, language)
            for name, script in self.scripts.items()
            for language in languages()
        }

    @cached_property
    def scripts(self) -> dict[str, Script]:
        """The bundles, in no language yet."""
        return _scripts_of(self._files)

    @cached_property
    def _files(self) -> dict[str, Asset]:
        folders = {folder: PACKAGE / folder for folder in FOLDERS}
        folders |= {f"views/{view.folder.name}": view.folder for view in own_views()}
        return {
            f"{name}/{path.relative_to(folder).as_posix()}": Asset(
                plain=path.read_bytes(), type=TYPES[path.suffix], packed=_packed(path)
            )
            for name, folder in folders.items()
            for path in sorted(folder.rglob("*"))
            if path.suffix in TYPES and path.is_file()
        }

    @cached_property
    def version(self) -> str:
        """A hash of all names and contents, 16 hexadecimal digits."""
        parts = {name: asset.plain for name, asset in self._shared.items()}
        for name, script in self.scripts.items():
            sentences = json.dumps([sorted(script.says or ()), sorted(script.says_not)])
            parts[name] = f"{script.text}\0{sentences}".encode()
        parts |= {str(path): path.read_bytes() for lang in languages() for path in files_of(lang)}
        digest = hashlib.sha256()
        for name, content in parts.items():
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()[:16]

    def address(self, name: str) -> str:
        """Where a file is served, relative to the page. Raises KeyError for one that is not."""
        if name not in self._shared and name not in self._translated:
            raise KeyError(name)
        return f"{PREFIX}{self.version}/{name}"

    def warm(self, page: Asset) -> threading.Thread:
        """Make and compress the English files and `page` in a thread. What fails, as where no file
        can be opened, and the files of other languages are made when they are first requested."""

        def pack() -> None:
            with suppress(OSError):
                for asset in (*map(self.asset, (STYLE, PAGE, LATER)), page):
                    asset.encoded("br")

        thread = threading.Thread(target=pack, daemon=True)
        thread.start()
        return thread

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await to_thread.run_sync(self._answer, scope)
        await answer(scope, receive, send)

    def _answer(self, scope: Scope) -> Response:
        path = str(scope["path"]).removeprefix(scope.get("root_path", "")).removeprefix("/")
        version, _, name = path.removeprefix(PREFIX).partition("/")
        if version != self.version or name not in self._shared.keys() | self._translated.keys():
            return JSONResponse(public_error(CLOSED), 404, {"Cache-Control": "no-store"})
        if scope["method"] not in ("GET", "HEAD"):
            return JSONResponse({"detail": "A file can only be read."}, 405, {"Allow": "GET, HEAD"})
        return self.asset(name).answer(Headers(scope=scope), FOREVER)


MODULES = Modules()


def script_of(view: View) -> str:
    """The name of a view's own script."""
    return f"views/{view.folder.name}/{view.name}.js"


def is_later(name: str) -> bool:
    """Whether a script that can be mounted is one of LATER."""
    _, *others = tabs(VIEWS.values()).values()
    return name == PANEL or name in {script_of(view) for views in others for view in views}


def in_language(name: str, language: str) -> str:
    """The name of PAGE or LATER in a language."""
    return name if language == ENGLISH else name.replace(".js", f".{language}.js")


class Script(NamedTuple):
    """A bundle of modules. text: has SENTENCES in place of a language's. says: the sentences that
    it may say, None for all; says_not: those of another bundle."""

    text: str
    says: frozenset[str] | None
    says_not: frozenset[str] = frozenset()

    def in_language(self, language: str) -> str:
        """The bundle with a language's sentences."""
        words = catalogue(language).scripts
        said = (words if self.says is None else words & self.says) - self.says_not
        own = f"speak({json_in_script(script_catalogue(language, said))});\n" if said else ""
        return self.text.replace(SENTENCES, own, 1)


def _scripts_of(files: Mapping[str, Asset]) -> dict[str, Script]:
    """PAGE and LATER: MAIN, where there is one, and every module with a `mount`, and what they
    import, each once; ENGINE; and PHONE."""

    def read(name: str) -> str:
        return files[name].plain.decode()

    mounted = [
        name for name in files
        if name.endswith(".js") and not name.startswith(APART)
        and any(opening in read(name) for opening in MOUNT)
    ]  # fmt: skip
    first = [name for name in (MAIN,) if name in files]
    first += [name for name in mounted if not is_later(name)]
    held = needed_by(*first, read=read)
    bundled = partial(bundle, read=read, with_exports=True, said=SAID if first else "")
    opened = [name for name in OPENED_SCRIPTS if name in files]
    page = EAGER + bundled(*first)
    later = bundled(*filter(is_later, mounted), *opened, base="page", held=held)
    engine = bundled(BESIDE, base="page", held=held) if BESIDE in files else ""
    phone = bundled(PHONE) if PHONE in files else ""
    declared = frozenset(_declared())
    now, on_phone, of_engine = (
        declared.union(_key(sentence) for text in texts for sentence in of_script(text))
        for texts in (map(read, held), [phone], [engine])
    )
    return {
        PAGE: Script(page, now),
        LATER: Script(later, None, now),
        ENGINE: Script(engine, of_engine, now),
        PHONE: Script(phone, on_phone),
    }


def _declared() -> Iterator[str]:
    """The texts that views, cards and exercises declare, sentences among them."""
    values: list[Any] = [fields_schema()]
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            values += [*value.keys(), *value.values()]
        elif isinstance(value, Sequence):
            values += value
    yield from (_key(sentence) for path in TELLING for sentence in sentences(path))


def _key(sentence: str | tuple[str, ...]) -> str:
    """A sentence's key in a catalogue: of a singular and its plural, the singular."""
    return sentence if isinstance(sentence, str) else sentence[0]


def _style_of(files: dict[str, Asset]) -> Asset:
    """All style sheets as one. Three times :root makes each rule outweigh Gradio's."""
    own = (name for name in files if name.endswith(".css") and not name.startswith(APART))
    names = dict.fromkeys((*SHARED, *sorted(own, key=lambda name: Path(name).name)))
    text = "\n".join(files[name].plain.decode() for name in names if name in files)
    rules = ROOT.sub("&", text)
    return Asset(plain=f":root:root:root {{\n{rules}\n}}\n".encode(), type=TYPES[".css"])


def _packed(path: Path) -> dict[str, bytes]:
    """The compressed copy in a file's folder, made at the highest quality; see `encoded`."""
    beside = path.with_name(f"{path.name}.br")
    return {"br": beside.read_bytes()} if beside.is_file() else {}
