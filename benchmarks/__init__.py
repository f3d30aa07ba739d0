"""Measurements, each a module to be run: python -m benchmarks.page."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
API = "gradio_api"


def command_line(module: ModuleSpec | None, description: str | None) -> argparse.ArgumentParser:
    """An empty command line, named as the module is run. module: its `__spec__`."""
    assert module is not None
    return argparse.ArgumentParser(
        prog=f"python -m {module.name.removesuffix('.__main__')}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def started(port: int, *options: str) -> subprocess.Popen[bytes]:
    """A server of the page; it answers some seconds later, see `wait`."""
    command = [sys.executable, "app.py", "--host", "127.0.0.1", "--port", str(port), *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, env=environment())


def environment() -> dict[str, str]:
    """The variables of a process that is timed: Python keeps compiled files, as it does unless told
    otherwise, and Gradio reports nothing."""
    own = {**os.environ, "GRADIO_ANALYTICS_ENABLED": "False"}
    own.pop("PYTHONDONTWRITEBYTECODE", None)
    return own


def wait(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until the page is answered. Raises SystemExit if the process ends before."""
    while process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
    raise SystemExit(f"the server on port {port} did not start")


@contextmanager
def served(port: int, *options: str) -> Iterator[tuple[int, float]]:
    """A running page; its process's id, and the seconds until it answered."""
    began = time.perf_counter()
    process = started(port, *options)
    try:
        wait(port, process)
        yield process.pid, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()
