"""One real server for all tests that need one, in a process of its own, on a free port: app.py,
which also speaks "eo" (see app_variants.py) and offers tools."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from kit import prefork
from kit.models import save_model, tiny, tokenizer_of
from kit.runs import HOSTILE

from transformer import Model, Tokenizer
from transformer.checkpoint import held_out_sample

ROOT = Path(__file__).resolve().parents[2]
LESSONS = ROOT / "tests" / "lessons" / "own"
START_S = 300
TEXTS = [
    "Once upon a time a little fox met a bird.",
    "The dog ran to the park. It was a sunny day.",
    "Tom & Lily said: <b>hello</b> to the {{fox}} and the ${bird}.",
]
SAMPLE = {"about": "For tests alone.", "texts": ["The fox met a bird.", "Tom ran home."]}
# Token texts that a page may take for markup, for a template or a script, or that turn its text.
MARKUP = (*HOSTILE, "<img/src=x/onerror=alert(1)>", "${alert(2)}", "مرحبا", "שלום")

NAMES = ("tiny", "stories", "hostile-translator", "tiny-translator")


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """Where it listens, and the models that it offers; NAMES also has the bundled "stories".

    hostile_translator: its tokens are MARKUP.
    """

    url: str
    log: Path
    process: prefork.Process
    model: Model
    hostile_translator: Model
    translator: Model


def tiny_model() -> Model:
    """A GPT of 2 layers x 3 heads that reads 48 tokens, so that a long text slides."""
    tokenizer = Tokenizer.train(TEXTS * 3, 320)
    model = tiny(
        "tiny", "decoder", tokenizer, seed=1,
        d_model=24, n_heads=3, max_len=48, positions="learned", activation="gelu",
    )  # fmt: skip
    return dataclasses.replace(model, sample=held_out_sample(SAMPLE, "decoder"))


def tiny_translator() -> Model:
    """An encoder-decoder of 2 + 2 layers x 2 heads that reads 40 tokens."""
    tokenizer = Tokenizer.train(TEXTS * 3, 320)
    return tiny("tiny-translator", "encoder-decoder", tokenizer, seed=2, d_ff=32, max_len=40)


def hostile_translator() -> Model:
    """One that reads and writes MARKUP: its own head finds those tokens far likelier."""
    tokenizer = tokenizer_of(MARKUP)
    model = tiny("hostile-translator", "encoder-decoder", tokenizer, seed=3, max_len=64)
    with torch.no_grad():
        model.network.head.bias[-len(MARKUP) :] += 9
    return model


@functools.cache
def running() -> Server:
    """The server, started at the first call and stopped when the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="transformer-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    models = {
        "model": tiny_model(),
        "hostile_translator": hostile_translator(),
        "translator": tiny_translator(),
    }
    for model in models.values():
        card = f"# {model.name}\n\nRandom weights, for tests."
        save_model(model, folder / model.name, dtype="float32", card=card)
    (folder / "tiny" / "sample.json").write_text(json.dumps(SAMPLE))
    own = {model.name: str(folder / model.name) for model in models.values()}
    log = folder / "server.log"
    port = free_port()
    offered = [own.get(name, name) for name in NAMES]
    process = started(port, offered, log, "brackets", ["--mcp"])
    atexit.register(stop, process)
    return Server(url=f"http://127.0.0.1:{port}/", log=log, process=process, **models)


def second() -> str:
    """The address of another server, see `second_server`."""
    return second_server()[0]


@functools.cache
def second_server() -> tuple[str, int]:
    """The address and process id of another server, which offers "tiny", "tiny-translator",
    networks of other projects' formats ("tiny-llama", "tiny-bert", "tiny-roberta", "tiny-marian",
    and "many-heads" of 20 layers x 18 heads), the views of own_view.py and the lessons of
    LESSONS."""
    from kit import own_view
    from kit.hf_folders import byte_fallback, roberta, word_piece, write

    from benchmarks.scale import write_model

    first = running().log.parent
    folder = Path(tempfile.mkdtemp(prefix="transformer-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "views").mkdir()
    own_view.write(folder / "views")
    write(folder / "tiny-llama", "llama", 3, tokenizer=byte_fallback)
    write(folder / "tiny-bert", "bert", tokenizer=word_piece)
    write(folder / "tiny-roberta", "roberta", tokenizer=roberta)
    write(folder / "tiny-marian", "marian")
    write_model(folder / "many-heads", 20, 18, 40, 6)
    names = ("tiny-llama", "tiny-bert", "tiny-roberta", "tiny-marian", "many-heads")
    offered = [first / "tiny", first / "tiny-translator", *(folder / name for name in names)]
    port, log = free_port(), folder / "server.log"
    more = ["--views", str(folder / "views"), "--lessons", str(LESSONS)]
    process = started(port, [str(one) for one in offered], log, more=more)
    atexit.register(stop, process)
    return f"http://127.0.0.1:{port}/", process.pid


def started(
    port: int,
    offered: Sequence[str],
    log: Path,
    change: str = "",
    more: Sequence[str] = (),
    start: Callable[..., Any] = prefork.Process,
    host: str = "127.0.0.1",
    env: Mapping[str, str] | None = None,
) -> Any:
    """A server in a process of its own, which answers; what it writes is added to `log`.

    change: of app.py, see app_variants.py. more: other options of the command line. start:
    subprocess.Popen for a start as a user's. host: where it listens. env: more of its environment.
    """
    app = ["tests/kit/app_variants.py", change] if change else ["app.py"]
    command = [sys.executable, *app, "--host", host, "--port", str(port), *more]
    with log.open("a") as file:
        process = start(
            [*command, "--device", "cpu", "--checkpoints", *offered],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TRUSTED_HOSTS": "*", **(env or {})},
            stdout=file,
            stderr=file,
        )
    wait(f"http://{'[::1]' if ':' in host else host}:{port}/", process, log)
    return process


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait(url: str, process: prefork.Process, log: Path) -> None:
    """Until it answers. Raises RuntimeError, with its log, if it ends or takes START_S."""
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
