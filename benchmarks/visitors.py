"""Simultaneous visitors through the page's queue, against the same work one after the other.

    python -m benchmarks.visitors [--visitors 1 4 16] [--rounds 5] [--port 7896]

Each visitor is a gradio_client with its own session that asks /generate for stories by the
bundled model, each with its own seed; all press at once. Waiting is from the request to the whole
answer. The same requests one after the other are timed in turn with them.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import psutil
from gradio_client import Client

from benchmarks import command_line, results, served
from benchmarks.report import visitors_table

TEXT = "Once upon a time"
MODEL = "stories"
N_NEW = 60
RUNS = 50  # until memory is looked at again
MB = 1_000_000

Answered = tuple[float, int]  # seconds until the answer, tokens that it holds


def main() -> None:
    """Print the table and keep its figures."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--visitors", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--rounds", type=int, default=5, help="default 5")
    parser.add_argument("--port", type=int, default=7896, help="default 7896")
    results.add_json_option(parser)
    options = parser.parse_args()
    url = f"http://127.0.0.1:{options.port}/"
    with served(options.port) as (pid, _):
        process = psutil.Process(pid)
        loaded = process.memory_info().rss
        clients = [visitor(url) for _ in range(max(options.visitors))]
        for seed in range(RUNS):
            ask(clients[0], seed)
        used = process.memory_info().rss
        counts = [measure(clients[:count], options.rounds) for count in options.visitors]
    part: dict[str, Any] = {"model": MODEL, "tokens": N_NEW, "n_runs": RUNS}
    part |= {"loaded_mb": round(loaded / MB), "used_mb": round(used / MB), "counts": counts}
    print(visitors_table(part))
    print(f"\nmemory of the server: {part['loaded_mb']} MB, after {RUNS} runs {part['used_mb']} MB")
    results.add("visitors", part, options.json)


def visitor(url: str) -> Client:
    """In a separate session."""
    return Client(url, verbose=False, analytics_enabled=False)


def ask(client: Client, seed: int, n_new: int = N_NEW) -> Answered:
    """(seconds until the answer, tokens that it holds) of one request."""
    started = time.perf_counter()
    answer = client.predict(
        TEXT, model=MODEL, max_new_tokens=n_new, temperature=0.8, seed=seed, api_name="/generate"
    )
    return time.perf_counter() - started, len(answer["steps"])


def measure(clients: list[Client], rounds: int, n_new: int = N_NEW) -> dict[str, Any]:
    """All clients at once and one after the other, in turn: throughput, and how long each waited.

    longest_ratio: of a round's waits the longest by the median; of all rounds the median.
    """
    at_once, alone, waits, ratios = [], [], [], []
    for number in range(rounds):
        seeds = range(1000 * number, 1000 * number + len(clients))
        seconds, answers = _together(clients, seeds, n_new)
        at_once.append(sum(n for _, n in answers) / seconds)
        waited = [wait for wait, _ in answers]
        waits += waited
        ratios.append(max(waited) / statistics.median(waited))
        started = time.perf_counter()
        counts = [ask(client, seed, n_new)[1] for client, seed in zip(clients, seeds, strict=True)]
        alone.append(sum(counts) / (time.perf_counter() - started))
    return {
        "visitors": len(clients),
        "tokens_per_s": statistics.median(at_once),
        "alone_tokens_per_s": statistics.median(alone),
        "median_wait_s": statistics.median(waits),
        "longest_ratio": statistics.median(ratios),
    }


def _together(clients: list[Client], seeds: range, n_new: int) -> tuple[float, list[Answered]]:
    """(seconds until all are answered, each visitor's wait and tokens) when all ask at once."""
    start = Barrier(len(clients) + 1)

    def one(client: Client, seed: int) -> Answered:
        start.wait()
        return ask(client, seed, n_new)

    with ThreadPoolExecutor(len(clients)) as pool:
        asked = [pool.submit(one, *pair) for pair in zip(clients, seeds, strict=True)]
        start.wait()
        started = time.perf_counter()
        answers = [each.result() for each in asked]
        return time.perf_counter() - started, answers


if __name__ == "__main__":
    main()
