"""Serve the bundled models to the network in the visitor's browser (browser/).

`POST resources/engine` says what the page loads of a model; `GET weights/MODEL/VERSION/FILE` are
its files, whose addresses change with their contents: so a browser keeps them for ever.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from anyio import to_thread
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from transformer.checkpoint import bundled_names
from transformer.checks import check_choice, check_names
from transformer.interventions.breaks import breaks_of
from transformer.messages import catalogue, language, said_later
from transformer.messages.templates import script_catalogue
from transformer.server.http.errors import CLOSED, public_error
from transformer.server.http.requests import caller
from transformer.server.kept.page_models import offered_texts
from transformer.server.kept.service import Service
from transformer.server.page.modules import FOREVER, MODULES, WORKER
from transformer.server.page.presses import example_page
from transformer.server.page.resources import written
from transformer.views.declaration import Answer
from transformer.views.frames import frames_of

PREFIX = "weights/"
KERNEL = Path(__file__).parents[2] / "browser" / "kernel.wasm"
# Of a checkpoint, as the browser reads it.
FILE_PATTERNS = ("config.json", "tokenizer.json", "model-*.safetensors")
CHUNK_BYTES = 2**16  # bytes that are sent at a time


class _Held(NamedTuple):
    """A model's files by their addresses, and the sentences in them."""

    files: dict[str, bytes]
    sentences: frozenset[str]


class InBrowser:
    """What is served to the networks in browsers: `engine` answers a question, and this is an ASGI
    app of the files. They are made when they are first asked for, and kept."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()
        self.names = offered_names(service)

    def engine(self, data: Mapping[str, Any]) -> Answer:
        """What the page loads for {"model"}: addresses of files with their sizes, of the kernel and
        the worker; its `examples` answer; ideas of it that can be switched off; and texts that are
        no visitor's own.

        Raises ValueError for a model that only the server computes.
        """
        check_names("engine", data, ("model",))
        name = str(data.get("model"))
        check_choice("model", name, self.names)
        held = self._held_of(name)
        texts, batches = offered_texts(self._service.models.values())
        of_scripts = catalogue(language()).scripts
        return {
            "files": {
                address: len(content)
                for address, content in held.files.items()
                if not address.endswith(KERNEL.name)
            },
            "kernel": next(file for file in held.files if file.endswith(KERNEL.name)),
            "worker": MODULES.address(WORKER),
            "page": example_page(self._service, caller().session, name, {}),
            "breaks": [*breaks_of(self._service.model(name).config)],
            "offered": sorted(texts),
            "batches": sorted(batches),
            "words": script_catalogue(language(), of_scripts | held.sentences),
        }

    def _held_of(self, name: str) -> _Held:
        with self._lock:
            if name not in self._held:
                with said_later() as sentences:
                    files = model_files(self._service, name, measure=False)
                by_address = versioned(name, files | {KERNEL.name: KERNEL.read_bytes()})
                whole = {f"{PREFIX}{address}": content for address, content in by_address.items()}
                self._held[name] = _Held(whole, frozenset(sentences))
            return self._held[name]

    def _content(self, path: str) -> bytes | None:
        name = path.removeprefix(PREFIX).partition("/")[0]
        return self._held_of(name).files.get(path) if name in self.names else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope["path"]).removeprefix(scope.get("root_path", "")).removeprefix("/")
        path = path if path.startswith(PREFIX) else f"{PREFIX}{path}"
        content = await to_thread.run_sync(self._content, path)
        if content is None:
            answer: Any = JSONResponse(public_error(CLOSED), 404, {"Cache-Control": "no-store"})
        elif scope["method"] not in ("GET", "HEAD"):
            detail = {"detail": "A file can only be read."}
            answer = JSONResponse(detail, 405, {"Allow": "GET, HEAD"})
        else:
            headers = {"Cache-Control": FOREVER, "Content-Length": str(len(content))}
            kind = "application/wasm" if path.endswith(".wasm") else "application/octet-stream"
            answer = StreamingResponse(_parts(content), headers=headers, media_type=kind)
        await answer(scope, receive, send)


def offered_names(service: Service) -> list[str]:
    """The served models that browsers compute: those that come with the project."""
    return [name for name in service.models if name in bundled_names()]


def model_files(
    service: Service, name: str, *, dtype: str | None = None, measure: bool = True
) -> dict[str, bytes]:
    """A served model's checkpoint in this project's format, in files of less than 10 MB, and the
    frames of its figures, by name.

    dtype: see `Model.save`. measure: see `frames_of`. Call it where all is `said_later`.
    """
    with TemporaryDirectory() as folder:
        service.model(name).save(folder, dtype=dtype)
        paths = [path for pattern in FILE_PATTERNS for path in sorted(Path(folder).glob(pattern))]
        contents = {path.name: path.read_bytes() for path in paths}
    run_key, batch_key = service.example(name)
    run, batch = service.store.run(run_key), service.store.batch(batch_key)
    if run.config.head == "tokens":
        run = service.queries.with_lens(run)
    frames, _ = written(frames_of(service.queries, run, batch, measure=measure))
    return contents | {"frames.json.gz": gzip.compress(frames, 9, mtime=0)}


def versioned(name: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files by addresses NAME/VERSION/FILE, in which VERSION changes with any of them."""
    version = hashlib.sha256(b"".join(files.values())).hexdigest()[:8]
    return {f"{name}/{version}/{file}": content for file, content in files.items()}


async def _parts(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]
