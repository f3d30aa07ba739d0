"""One real server for all tests that need one: app.py in a process of its own, on a free port."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from builders import model_of

from transformer import Model, ModelConfig, Tokenizer
from transformer.checkpoint import save

ROOT = Path(__file__).resolve().parent.parent
START_S = 120
TEXTS = [
    "Once upon a time a little fox met a bird.",
    "The dog ran to the park. It was a sunny day.",
    "Tom & Lily said: <b>hello</b> to the {{fox}} and the ${bird}.",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """Where it listens, and two of the models that it offers: the first and the last.

    Between them stands the bundled "stories".
    """

    url: str
    model: Model
    translator: Model


def tiny_model() -> Model:
    """A GPT of 2 layers x 3 heads that reads 48 tokens, so that a long text slides."""
    tokenizer = Tokenizer.train(TEXTS * 3, 320)
    config = ModelConfig(
        family="decoder",
        vocab_size=tokenizer.vocab_size,
        d_model=24,
        n_heads=3,
        n_layers=2,
        d_ff=48,
        max_len=48,
        positions="learned",
        activation="gelu",
        padding_id=tokenizer.padding_id,
    )
    return model_of("tiny", config, tokenizer, seed=1)


def tiny_translator() -> Model:
    """An encoder-decoder of 2 + 2 layers x 2 heads that reads 40 tokens."""
    tokenizer = Tokenizer.train(TEXTS * 3, 320)
    config = ModelConfig(
        family="encoder-decoder",
        vocab_size=tokenizer.vocab_size,
        d_model=16,
        n_heads=2,
        n_layers=2,
        d_ff=32,
        max_len=40,
        padding_id=tokenizer.padding_id,
    )
    return model_of("tiny-translator", config, tokenizer, seed=2)


@functools.cache
def running() -> Server:
    """The server, started at the first call and stopped when the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="transformer-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    models = tiny_model(), tiny_translator()
    for model in models:
        card = f"# {model.name}\n\nRandom weights, for tests."
        place = folder / model.name
        save(place, model.network, model.config, model.tokenizer, dtype="float32", card=card)
    port = _free_port()
    command = [sys.executable, "app.py", "--host", "127.0.0.1", "--port", str(port)]
    log = (folder / "server.log").open("w")
    offered = [str(folder / "tiny"), "stories", str(folder / "tiny-translator")]
    process = subprocess.Popen(
        [*command, "--device", "cpu", "--checkpoints", *offered],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    atexit.register(_stop, process, log)
    url = f"http://127.0.0.1:{port}/"
    _wait(url, process, folder / "server.log")
    return Server(url=url, model=models[0], translator=models[1])


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
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


def _stop(process: subprocess.Popen[bytes], log: object) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
    log.close()  # type: ignore[attr-defined]
