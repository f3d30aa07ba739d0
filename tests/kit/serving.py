"""Real servers: app.py in a separate process on a free port, and the models that they offer."""

import atexit
import contextlib
import dataclasses
import functools
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Self

import httpx
import psutil
import torch
from kit import prefork
from kit.models import save_model, tiny, tokenizer_of
from kit.runs import HOSTILE

from transformer import Model, Tokenizer, bundled_names
from transformer.checkpoint import held_out_sample
from transformer.server.page.static_page import Page

ROOT = Path(__file__).resolve().parents[2]
LESSONS = ROOT / "tests" / "lessons" / "own"
START_S = 300
TEXTS = [
    "Once upon a time a little fox met a bird.",
    "The dog ran to the park. It was a sunny day.",
    "Tom & Lily said: <b>hello</b> to the {{fox}} and the ${bird}.",
]
SAMPLE = {"about": "For tests alone.", "texts": ["The fox met a bird.", "Tom ran home."]}
CHAT_TEMPLATE = "{% for one in messages %}{{ one.role }}: {{ one.content }}\nfox: {% endfor %}"
# Token texts that a page may take for markup, for a template or a script, or that turn its text.
MARKUP = (*HOSTILE, "<img/src=x/onerror=alert(1)>", "${alert(2)}", "مرحبا", "שלום")

NAMES = ("tiny", "stories", "hostile-translator", "tiny-translator")


class Server:
    """app.py in a separate process, started and answering; stops at the end of a `with`.

    log: what it writes is appended there. change: of app.py, see app_variants.py. more: further
    options of the command line. start: subprocess.Popen to import everything again. env: further
    environment variables.
    """

    def __init__(
        self,
        log: Path,
        offered: Sequence[str | Path],
        change: str = "",
        more: Sequence[str] = (),
        start: Callable[..., Any] = prefork.Process,
        host: str = "127.0.0.1",
        env: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        self.log, self.port = log, port or free_port()
        self.url = f"http://{'[::1]' if ':' in host else host}:{self.port}/"
        app = ["tests/kit/app_variants.py", change] if change else ["app.py"]
        command = [sys.executable, *app, "--host", host, "--port", str(self.port), *more]
        command += ["--device", "cpu", "--checkpoints", *map(str, offered)]
        settings = {"OMP_NUM_THREADS": "1", "TRUSTED_HOSTS": "*", **(env or {})}
        self._start = partial(start, command, cwd=ROOT, env={**os.environ, **settings})
        self.start()

    def start(self) -> None:
        """Also again, on the same port."""
        with self.log.open("a") as file:
            self.process = self._start(stdout=file, stderr=file)
        wait(self.url, self.process, self.log)

    def stop(self) -> None:
        stop(self.process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def client(self, **settings: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, **{"timeout": 60, **settings})

    def cpu_s(self) -> float:
        """Processor time that it has used."""
        used = psutil.Process(self.process.pid).cpu_times()
        return float(used.user + used.system)


class Shared(Server):
    """The server of `running`, with its models."""

    model: Model
    hostile_translator: Model  # its tokens are MARKUP
    translator: Model


def tiny_model() -> Model:
    """A GPT of 2 layers x 3 heads that reads 48 tokens, so that a long text slides."""
    tokenizer = Tokenizer.train(TEXTS * 3, 320)
    model = tiny(
        "tiny", "decoder", tokenizer, seed=1,
        d_model=24, n_heads=3, max_len=48, positions="learned", activation="gelu",
    )  # fmt: skip
    return as_float16(dataclasses.replace(model, sample=held_out_sample(SAMPLE, "decoder")))


def tiny_translator() -> Model:
    """An encoder-decoder of 2 + 2 layers x 2 heads that reads 40 tokens."""
    tokenizer = Tokenizer.train(TEXTS * 3, 320)
    model = tiny("tiny-translator", "encoder-decoder", tokenizer, seed=2, d_ff=32, max_len=40)
    return as_float16(model)


def as_float16(model: Model) -> Model:
    """The model, its weights rounded as a page without a server has them: it gives the same numbers
    there."""
    with torch.no_grad():
        for weights in model.network.parameters():
            weights.copy_(weights.half())
    return model


def hostile_translator() -> Model:
    """One that reads and writes MARKUP: its own head finds those tokens far likelier."""
    tokenizer = tokenizer_of(MARKUP)
    model = tiny("hostile-translator", "encoder-decoder", tokenizer, seed=3, max_len=64)
    with torch.no_grad():
        model.network.head.bias[-len(MARKUP) :] += 9
    return model


def temporary_folder() -> Path:
    """Deleted when the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="transformer-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def running() -> Shared:
    """A server for all tests, which offers NAMES, tools, and a language "eo" (app_variants.py)."""
    folder = temporary_folder()
    models = {
        "model": tiny_model(),
        "hostile_translator": hostile_translator(),
        "translator": tiny_translator(),
    }
    for model in models.values():
        card = f"# {model.name}\n\nRandom weights, for tests."
        save_model(model, folder / model.name, dtype="float32", card=card)
    (folder / "tiny" / "sample.json").write_text(json.dumps(SAMPLE))
    offered = [name if name == "stories" else folder / name for name in NAMES]
    server = Shared(folder / "server.log", offered, "brackets", ["--mcp"])
    atexit.register(server.stop)
    vars(server).update(models)
    return server


class Folder(NamedTuple):
    """The page as files of a folder, and where a plain web server has it."""

    page: Page
    path: Path
    url: str


@functools.cache
def folder() -> Folder:
    """Without a server: "tiny" and "tiny-translator", as `running` offers them."""
    path = temporary_folder() / "folder"
    with ThreadPoolExecutor(1) as apart:  # where no event loop runs
        page = apart.submit(Page, [running().model, running().translator]).result()
    page.write_folder(path)
    files = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(path)))
    threading.Thread(target=files.serve_forever, daemon=True).start()
    atexit.register(files.shutdown)
    return Folder(page, path, f"http://127.0.0.1:{files.server_address[1]}/")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@functools.cache
def bundled() -> Server:
    """A server that offers the bundled models, as app.py does."""
    server = Server(temporary_folder() / "server.log", bundled_names())
    atexit.register(server.stop)
    return server


@functools.cache
def second() -> Server:
    """A server that offers "tiny", "tiny-translator", checkpoints of other projects ("tiny-llama",
    "tiny-gemma3", "tiny-bloom", "tiny-bert", "tiny-classifier", "tiny-roberta", "tiny-modernbert",
    "tiny-marian", "tiny-t5", "tiny-nllb", and "many-heads" of 20 layers x 18 heads; the first has
    CHAT_TEMPLATE), the views of own_view.py and the lessons of LESSONS."""
    from kit import own_view
    from kit.hf_folders import (
        byte_fallback,
        byte_level,
        change,
        modern_bert,
        roberta,
        t5,
        word_piece,
        write,
    )

    from benchmarks.scale import write_model

    first, folder = running().log.parent, temporary_folder()
    (folder / "views").mkdir()
    own_view.write(folder / "views")
    write(folder / "tiny-llama", "llama", 3, tokenizer=byte_fallback)
    change(folder / "tiny-llama" / "tokenizer_config.json", chat_template=CHAT_TEMPLATE)
    write(folder / "tiny-gemma3", "gemma3_text", 2, tokenizer=byte_fallback)
    write(folder / "tiny-bloom", "bloom", tokenizer=byte_level)
    write(folder / "tiny-bert", "bert", tokenizer=word_piece)
    labels = {"0": "no", "1": "yes"}
    classifier = folder / "tiny-classifier"
    write(classifier, "bert", 0, word_piece, head="ForSequenceClassification", id2label=labels)
    write(folder / "tiny-roberta", "roberta", tokenizer=roberta)
    near = {"layer_types": ["sliding_attention"] * 2}  # all layers read five tokens
    write(folder / "tiny-modernbert", "modernbert", 1, tokenizer=modern_bert, **near)
    write(folder / "tiny-marian", "marian")
    write(folder / "tiny-t5", "t5", 1, tokenizer=t5)
    write(folder / "tiny-nllb", "m2m_100", tokenizer="NllbTokenizer")
    write_model(folder / "many-heads", 20, 18, 40, 6)
    names = (
        "tiny-llama", "tiny-gemma3", "tiny-bloom", "tiny-bert", "tiny-classifier", "tiny-roberta",
        "tiny-modernbert", "tiny-marian", "tiny-t5", "tiny-nllb", "many-heads",
    )  # fmt: skip
    offered = [first / "tiny", first / "tiny-translator", *(folder / name for name in names)]
    more = ["--views", str(folder / "views"), "--lessons", str(LESSONS)]
    server = Server(folder / "server.log", offered, more=more)
    atexit.register(server.stop)
    return server


# Below the ports that systems give to outgoing connections, so that none takes one before a server
# does, and above those that Chromium refuses (10080 is the last); each worker of the tests has its
# own.
_range = range(11_000 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]), 32_000, 16)
_begin = os.getpid() % len(_range)  # another run of the tests begins elsewhere
_ports = itertools.cycle([*_range[_begin:], *_range[:_begin]])


def free_port() -> int:
    """A port that is not in use now, at any address."""
    for port in _ports:
        with contextlib.suppress(OSError), socket.create_server(("", port)):
            return port
    raise AssertionError("unreachable: the ports are counted in a circle")


def wait(url: str, process: prefork.Process, log: Path) -> None:
    """Wait until it answers. Raises RuntimeError, with its log, if it ends or takes START_S."""
    give_up = time.monotonic() + START_S
    while time.monotonic() < give_up:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended early:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"the server did not answer within {START_S} s:\n{log.read_text()}")


def stop(process: prefork.Process) -> None:
    """End it, if it still runs."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
