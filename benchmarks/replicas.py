"""Several replicas behind nginx: many visitors, and one replica that is killed and comes back.

    python -m benchmarks.replicas [--visitors 180] [--seconds 120] [--replicas 3]
    python -m benchmarks.replicas --throughput [--seconds 20]

The configuration is deploy/nginx.conf, with other ports. After a third of the time the first
replica is killed (SIGKILL), after two thirds it is started anew. Every visitor does what those of
`benchmarks.load` do and compares all results with the same made alone; who loses the connection in
the middle of a text presses again, as the page says. Faults end with status 1.

--throughput: tokens a second of sixteen who only generate, through nginx, by one replica and by
two, in turn.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import httpx

from benchmarks import ROOT, command_line, started, wait
from benchmarks.http_client import Client
from benchmarks.load import load, tasks_for, writers
from benchmarks.visitor import Visitor

CONFIGURATION = ROOT / "deploy" / "nginx.conf"
# Not everybody's PATH holds the folders of a machine's servers.
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
GENERATING, LENGTH = 16, 60


def before(upstream: list[int]) -> str:
    """deploy/nginx.conf with replicas on these ports."""
    text = CONFIGURATION.read_text(encoding="utf-8")
    servers = "\n".join(
        f"        server 127.0.0.1:{one} max_fails=1 fail_timeout=5s;" for one in upstream
    )
    return re.sub(r"(?m)^ +server 127[^\n]*(\n +server 127[^\n]*)*", servers, text)


def placed(text: str, port: int, folder: Path) -> str:
    """A configuration that listens on this port, and writes to this folder alone."""
    text = re.sub(r"(?m)^pid .*;", f"pid {folder}/pid;", text)
    text = text.replace("error_log stderr error;", "error_log stderr crit;")  # one is to die
    paths = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    kept = "\n".join(f"    {name}_temp_path {folder}/{name};" for name in paths)
    text = text.replace("http {", f"http {{\n{kept}", 1)
    return text.replace("listen 7860;", f"listen 127.0.0.1:{port};")


@contextmanager
def nginx(port: int, text: str) -> Iterator[str]:
    """nginx with this configuration on this port; yields its address."""
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / "nginx.conf"
        file.write_text(placed(text, port, Path(made)), encoding="utf-8")
        command = [NGINX or "nginx", "-c", file, "-p", made, "-g", "daemon off;"]
        process = subprocess.Popen(command)
        try:
            url = f"http://127.0.0.1:{port}/"
            for _ in range(100):
                with suppress(httpx.HTTPError):
                    httpx.get(f"{url}health")
                    break
                time.sleep(0.05)
            yield url
        finally:
            process.terminate()
            process.wait()


def balanced(port: int, upstream: list[int]) -> AbstractContextManager[str]:
    """nginx before replicas on these ports; gives its address."""
    return nginx(port, before(upstream))


@contextmanager
def replicas(first: int, count: int) -> Iterator[dict[int, subprocess.Popen[bytes]]]:
    """So many servers by their ports, from the first on, once all of them answer."""
    os.environ["FORWARDED_ALLOW_IPS"] = "127.0.0.1"  # they trust nginx
    running = {port: started(port) for port in range(first, first + count)}
    try:
        for port, process in running.items():
            wait(port, process)
        yield running
    finally:
        for process in running.values():
            process.kill()
            process.wait()


async def _killed(running: dict[int, subprocess.Popen[bytes]], seconds: float) -> None:
    """The first replica dies without a word, and is started again later."""
    port = min(running)
    await asyncio.sleep(seconds / 3)
    running[port].kill()
    running[port].wait()
    await asyncio.sleep(seconds / 3)
    running[port] = started(port)


async def _with_a_death(
    url: str, running: dict[int, subprocess.Popen[bytes]], visitors: int, seconds: float
) -> int:
    tasks = tasks_for(writers(), min(visitors, 60))
    death = asyncio.create_task(_killed(running, seconds))
    report = await load(url, tasks, visitors, seconds, None, replicas=True)
    await death
    print(json.dumps({"replicas": len(running), **report.figures()}, indent=2))
    for failure in (failures := report.failures()):
        print(failure, file=sys.stderr)
    return len(failures)


async def _tokens_a_second(url: str, seconds: float) -> float:
    """What sixteen visitors get who do nothing but generate."""
    client, end, tokens = Client(url), time.monotonic() + seconds, 0

    async def generating(place: int) -> None:
        nonlocal tokens
        visitor = Visitor(client)
        while time.monotonic() < end:
            run = await visitor.generate(text="Once upon a time", length=LENGTH, seed=place)
            tokens += len(run["labels"]) - run["n_prompt"]

    began = time.monotonic()
    await asyncio.gather(*(generating(place) for place in range(GENERATING)))
    client.close()
    return tokens / (time.monotonic() - began)


def _throughput(port: int, seconds: float) -> None:
    measured: dict[int, list[float]] = {1: [], 2: []}
    with replicas(port + 1, 2) as running:
        ports = list(running)
        for count in (1, 2, 1, 2):
            with balanced(port, ports[:count]) as url:
                measured[count].append(asyncio.run(_tokens_a_second(url, seconds)))
    one, two = (statistics.mean(measured[count]) for count in (1, 2))
    told = {"tokens_a_second": {"one": round(one), "two": round(two)}, "ratio": round(two / one, 2)}
    print(json.dumps(told))


def main() -> None:
    """Print the figures as JSON; status 1 if something is not as promised."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--visitors", type=int, default=180, help="default 180")
    parser.add_argument("--seconds", type=float, default=120, help="default 120")
    parser.add_argument("--replicas", type=int, default=3, help="default 3")
    parser.add_argument("--port", type=int, default=7860, help="nginx's, and below theirs")
    parser.add_argument("--throughput", action="store_true")
    asked = parser.parse_args()
    if asked.throughput:
        _throughput(asked.port, asked.seconds)
        return
    with (
        replicas(asked.port + 1, asked.replicas) as running,
        balanced(asked.port, list(running)) as url,
    ):
        sys.exit(bool(asyncio.run(_with_a_death(url, running, asked.visitors, asked.seconds))))


if __name__ == "__main__":
    main()
