"""Many visitors at once: each generates, then clicks heads, over and over, through real HTTP.

    python -m benchmarks.load [--visitors 60] [--seconds 120] [--learners 0] [--phones 0]
        [--leavers 0] [--port 7897] [--save NAME]

Every visitor opens the page, presses Generate with its own text, then chooses CLICKS heads,
one to three seconds apart, with the requests that the page's scripts send. Tokens and scores
are compared with those of the same request made alone in this process. A failure, a mixed-up
result, slow clicks, slow phones or growing memory end with status 1; else `--save` adds the
figures to those of all benchmarks, under that name (load, soak).

Leavers ask something and leave at a random moment, without a word and sometimes with an earlier
answer unread; at the end nothing may be left of them, and a last text must come.

With phones, the visitors are a class: they look at each picture for 20 to 30 seconds, and begin
at different moments. The phones do what their page does: each holds a request until the question
changes, answers at once (people are slower, and less alike), and requests the next. The teacher's
page requests the answers every second, as in a class. All phones must have received the question
and answered within ANSWERED_S of a step's first request.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import random
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import psutil

import transformer
from benchmarks import command_line, results, served
from benchmarks.http_client import LOST, Client
from benchmarks.visitor import Lost, Refused, Visitor
from transformer import Model, Run

CLICKS = 8
CLICK_P95_S = 1.0  # else clicks are slow
ANSWERED_S = 2.0  # until all phones of a class have answered; else they are slow
ASKED_S = 5.0  # between two questions to them
GROWTH = 1.10  # of memory
LOOK_S = (1.0, 3.0)  # how long a visitor looks at a head
CLASS_LOOK_S = (20.0, 30.0)  # how long in a class
TALLY_S = 1.0  # between two looks of the teacher's page at the answers
LEFT_S = 120.0  # in which nothing is left of those who have gone: a training ends after 90
TEXTS = (
    "Once upon a time", "The little dog was", "Tom and Lily saw a big", "One day a bird",
    "The black cat is sleeping on the bed.", "I gave the book to the boys.",
)  # fmt: skip


@dataclass(slots=True)
class Report:
    """What happened. Times in seconds, memory in bytes."""

    visitors: int
    seconds: float
    opened: list[float] = field(default_factory=list)
    generated: list[float] = field(default_factory=list)
    clicked: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    trained: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)  # by all phones of a class
    tokens: int = 0
    farthest_place: int = 0
    may_lose: bool = False  # the connection, which the page tells, and comes back
    lost: list[str] = field(default_factory=list)
    made_again: int = 0
    asked_again: int = 0
    departures: int = 0
    faults: list[str] = field(default_factory=list)
    memory_settled: int = 0
    memory_end: int = 0
    kept_runs: int = 0
    kept_settled: int = 0
    kept_bytes: int = 0

    def figures(self) -> dict[str, Any]:
        """The same, summed up."""
        return {
            "visitors": self.visitors,
            "seconds": round(self.seconds, 1),
            "pages_opened": len(self.opened),
            "open_p95_s": percentile(self.opened, 95),
            "generations": len(self.generated),
            "tokens": self.tokens,
            "generation_median_s": percentile(self.generated, 50),
            "generation_p95_s": percentile(self.generated, 95),
            "trainings": len(self.trained),
            "questions_to_phones": len(self.answered),
            "phones_answered_p95_s": percentile(self.answered, 95),
            "clicks": len(self.clicked),
            "click_median_s": percentile(self.clicked, 50),
            "click_p95_s": percentile(self.clicked, 95),
            "health_p95_s": percentile(self.health, 95),
            "farthest_place_in_queue": self.farthest_place,
            "memory_settled_bytes": self.memory_settled,
            "memory_end_bytes": self.memory_end,
            "kept_settled_bytes": self.kept_settled,
            "kept_runs": self.kept_runs,
            "kept_bytes": self.kept_bytes,
            "connections_lost": len(self.lost),
            "runs_made_again": self.made_again,
            "questions_asked_again": self.asked_again,
            "departures": self.departures,
            "faults": len(self.faults),
        }

    def failures(self) -> list[str]:
        """What is not as promised, a sentence each; at most a few of the faults."""
        found = self.faults[:5] + ([] if self.may_lose else self.lost[:5])
        if not self.clicked:
            found.append("no visitor came as far as choosing a head")
        elif percentile(self.clicked, 95) > CLICK_P95_S:
            found.append(f"95 % of clicks took up to {percentile(self.clicked, 95):.2f} s")
        if self.answered and percentile(self.answered, 95) > ANSWERED_S:
            found.append(f"the phones took up to {percentile(self.answered, 95):.2f} s to answer")
        kept = self.kept_bytes - self.kept_settled  # in its own budget
        if self.memory_end > GROWTH * (self.memory_settled + kept) > 0:
            before, after = self.memory_settled / 1e6, self.memory_end / 1e6
            kept_mb = f"{kept / 1e6:.0f} MB of it kept for visits"
            found.append(f"memory grew from {before:.0f} to {after:.0f} MB, {kept_mb}")
        return found


def percentile(values: Sequence[float], percent: float) -> float:
    """NaN of nothing."""
    return round(float(np.percentile(values, percent)), 3) if values else float("nan")


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One request: what the page's controls say, and the run that it gives when made alone."""

    chosen: Mapping[str, Any]
    alone: Run


def writers() -> list[Model]:
    """The bundled models that generate; an encoder alone does not."""
    models = map(transformer.load, transformer.bundled_names())
    return [model for model in models if model.config.family != "encoder"]


def tasks_for(models: Sequence[Model], count: int) -> list[Task]:
    """`count` different requests, the models taking turns: sampled texts, and searches."""
    return [_task(models[place % len(models)], place) for place in range(count)]


def _task(model: Model, place: int) -> Task:
    text = TEXTS[place % len(TEXTS)]
    chosen = {"model": model.name, "text": text, "max_new_tokens": 40, "seed": place}
    if model.config.family == "encoder-decoder":
        settings: dict[str, Any] = {"beams": 2 + place % 3, "length_penalty": 1.0}
        chosen |= {"method": "beam", "length_penalty": 1.0}
        chosen["beams"] = settings["beams"]
    else:
        settings = {"temperature": 0.9, "top_k": 40, "seed": place}
        chosen |= {"method": "sample", "temperature": 0.9, "top_k": 40}
    run = model.generate(text, max_new_tokens=40, **settings)
    return Task(chosen=chosen, alone=run)


async def load(
    url: str,
    tasks: Sequence[Task],
    visitors: int,
    seconds: float,
    server: psutil.Process | None,
    *,
    learners: int = 0,
    phones: int = 0,
    leavers: int = 0,
    replicas: bool = False,
) -> Report:
    """Let them all in at once, for so many seconds; the last rounds are finished.

    learners: so many more who train networks all the while. phones: of a class, which is asked.
    leavers: so many who leave at random moments. replicas: several serve, and one of them may go:
    who loses the connection presses again.
    """
    report = Report(visitors=visitors, seconds=seconds, may_lose=replicas)
    client, end = Client(url), time.monotonic() + seconds
    look = CLASS_LOOK_S if phones else LOOK_S
    watch = asyncio.create_task(_watch(client, report, server, end))
    rounds = (_stay(client, report, tasks, place, end, look) for place in range(visitors))
    training = (_learn(client, report, end) for _ in range(learners))
    classes = [_teach(client, report, phones, end)] if phones else []
    leaving = (_leave(url, report, tasks, place, end) for place in range(leavers))
    await asyncio.gather(*rounds, *training, *classes, *leaving)
    await watch
    if leavers:
        await _see_nothing_left(client, report, tasks[0])
    client.close()
    return report


async def _stay(
    client: Client,
    report: Report,
    tasks: Sequence[Task],
    place: int,
    end: float,
    look: tuple[float, float],
) -> None:
    """One visitor, from opening the page until time is up, at least for one round."""
    visitor = Visitor(client)
    chance = random.Random(place)
    if look is CLASS_LOOK_S:
        await asyncio.sleep(chance.uniform(0, look[0]))
    began = time.monotonic()
    await visitor.open()
    report.opened.append(time.monotonic() - began)
    for turn in itertools.count(place):
        task = tasks[turn % len(tasks)]
        try:
            while not await _is_generated(visitor, report, task, chance, end, look):
                await asyncio.sleep(1)  # the page says that its text is kept: press again
        except (Refused, *LOST) as error:
            report.faults.append(f"visitor {place}: {type(error).__name__}: {str(error)[:200]}")
            await asyncio.sleep(1)
        if time.monotonic() >= end:
            break
    report.made_again += visitor.made_again
    report.asked_again += visitor.asked_again
    report.farthest_place = max(report.farthest_place, *visitor.places, 0)


async def _is_generated(
    visitor: Visitor,
    report: Report,
    task: Task,
    chance: random.Random,
    end: float,
    look: tuple[float, float],
) -> bool:
    """A whole round; False if the connection was lost before there was a run."""
    try:
        await _round(visitor, report, task, chance, end, look)
    except Lost as error:
        report.lost.append(str(error))
        return False
    return True


async def _round(
    visitor: Visitor,
    report: Report,
    task: Task,
    chance: random.Random,
    end: float,
    look: tuple[float, float],
) -> None:
    """Generate, look at all heads, choose some of them."""
    began = time.monotonic()
    facts = await visitor.generate(**task.chosen)
    report.generated.append(time.monotonic() - began)
    report.tokens += len(facts["labels"]) - facts["n_prompt"]
    if facts["labels"] != list(task.alone.labels):
        sizes = f"{len(facts['labels'])} instead of {len(task.alone.labels)}"
        report.faults.append(f"other tokens than alone ({sizes}): {task.chosen}")
        return
    kinds = {name: facts["kinds"][-1][name] for name in ("stack", "kind")}
    await visitor.ask("atlas", run=facts["run"], **kinds)
    await visitor.ask("metrics", run=facts["run"], **kinds)
    for _ in range(CLICKS):
        place = chance.choice(facts["kinds"])
        site = f"{place['stack']}.{chance.randrange(place['n_layers'])}.{place['kind']}"
        await _click(visitor, report, task, facts["run"], site, chance.randrange(facts["n_heads"]))
        if time.monotonic() > end:
            return
        await asyncio.sleep(min(chance.uniform(*look), max(0.0, end - time.monotonic())))


async def _click(
    visitor: Visitor, report: Report, task: Task, run: str, site: str, head: int
) -> None:
    """A head's picture with its numbers, which must be those of the run made alone."""
    place = {"run": run, "site": site, "head": head}
    began = time.monotonic()
    answer = await visitor.ask("heatmap", **place, numbers=True)
    report.clicked.append(time.monotonic() - began)
    await visitor.ask("attention_math", **place, query=1)
    wanted = task.alone.trace[site].scores[0, head].numpy()
    if not np.allclose(_scores_of(answer), wanted, atol=1e-3):
        report.faults.append(f"other scores than alone: {site}, head {head} of {task.chosen}")


def _scores_of(answer: dict[str, Any]) -> np.ndarray[Any, Any]:
    """(Tq, Tk) of what the page is sent of a head: its scores, or queries and keys."""
    sent = {
        name: np.frombuffer(base64.b64decode(answer[name]["base64"]), dtype="f4")
        for name in ("scores", "queries", "keys")
        if name in answer
    }
    n_queries, n_keys = answer["shape"]
    if "scores" in sent:
        return sent["scores"].reshape(n_queries, n_keys)
    queries, keys = sent["queries"].reshape(n_queries, -1), sent["keys"].reshape(n_keys, -1)
    scores: np.ndarray[Any, Any] = queries @ keys.T / np.sqrt(queries.shape[1])
    return scores


async def _leave(url: str, report: Report, tasks: Sequence[Task], place: int, end: float) -> None:
    """Ask for one thing after the other, and leave each time before the answer has been read."""
    chance, address = random.Random(-place - 1), urlsplit(url)
    while time.monotonic() < end:
        task = chance.choice(tasks)
        chosen, session = dict(task.chosen), f"leaver {place} {report.departures}"
        model = {"model": chosen["model"]}
        call = {"data": [chosen["text"], chosen["model"], 40], "session_hash": session}
        sent = chance.choice(
            [
                _request("resources/runs", session, chosen),
                _request("resources/runs", session, chosen),
                _request("resources/examples", session, {**model, "typed": {}}),
                _request("resources/batches", session, {**model, "lines": TEXTS[0]}),
                _request("resources/lessons", session, {}),
                _request("resources/class/open", session, {}),
                _request("resources/train", session, {"plan": {"task": "copy"}}),
                _request("gradio_api/call/generate", session, call)
                + _request(f"gradio_api/queue/data?session_hash={quote(session)}", session),
                _request("", session), _request("health", session), _request("config", session),
            ]
        )  # fmt: skip
        sent = _request("", session) * chance.choice((0, 0, 4)) + sent
        with socket.socket() as caller, suppress(OSError):
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, chance.choice((2_048, 200_000)))
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            caller.setblocking(False)
            loop, where = asyncio.get_running_loop(), (address.hostname, address.port)
            await loop.sock_connect(caller, where)
            await loop.sock_sendall(caller, sent)
            await asyncio.sleep(chance.choice((0.01, 0.1, 1.0)) * chance.random())
        report.departures += 1
        await asyncio.sleep(chance.random())


def _request(path: str, session: str, data: Any = None) -> bytes:
    """As it is sent; a POST of data, if there are any."""
    body = b"" if data is None else json.dumps(data).encode()
    head = f"{'GET' if data is None else 'POST'} /{path} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"X-Session: {session}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _see_nothing_left(client: Client, report: Report, task: Task) -> None:
    """A fault for each of the server's counts that does not become 0, and for a text that does not
    come."""
    give_up = time.monotonic() + LEFT_S
    while True:
        health = (await client.get("health")).json()
        left = {
            f"{line} {kind}": count
            for line, counts in health["resources"].items()
            for kind, count in counts.items()
        }
        left |= health["open"] | {"requests": health["open"]["requests"] - 1}
        left = {name: count for name, count in left.items() if count}
        if not left or time.monotonic() > give_up:
            break
        await asyncio.sleep(0.5)
    report.faults += [
        f"left of those who have gone: {count} {name}" for name, count in left.items()
    ]
    try:
        await Visitor(client).generate(**task.chosen)
    except (Refused, Lost, *LOST) as error:
        report.faults.append(f"no text after all: {error}")


async def _learn(client: Client, report: Report, end: float) -> None:
    """Train until time is up; each training is followed to its end, the last one as well."""
    visitor = Visitor(client)
    await visitor.open()
    while time.monotonic() < end:
        try:
            report.trained.append(await visitor.train())
        except (Refused, *LOST) as error:
            report.faults.append(f"a training: {type(error).__name__}: {str(error)[:200]}")
            await asyncio.sleep(1)


async def _teach(client: Client, report: Report, phones: int, end: float) -> None:
    """Ask a class step after step until time is up; each phone answers at once."""

    async def ask(question: str, **data: Any) -> dict[str, Any]:
        return dict((await client.post(f"resources/{question}", data)).json())

    async def answer(phone: str) -> None:
        mine, seen = {"code": held["code"], "phone": phone}, 0
        while "rev" in (asked := await ask("class/asked", **mine, seen=seen)):  # until it is over
            if asked["name"] and asked["rev"] != seen:
                await ask("class/answer", **mine, name=asked["name"], answer=0)
                answered.append(time.monotonic())
            seen = asked["rev"]

    answered: list[float] = []  # when each phone's answer to this step was counted
    held = await ask("class/open")
    following = [asyncio.create_task(answer(f"phone {place}")) for place in range(phones)]
    # More steps than a class remembers the answers of.
    for lesson, step in itertools.cycle(itertools.product(("prediction", "tokens"), range(1, 6))):
        await asyncio.sleep(ASKED_S)
        if time.monotonic() > end:
            break
        answered.clear()
        began, given = time.monotonic(), 0
        await ask("show_step", **held, name=lesson, step=step, phase="guess")
        while given < phones:
            await asyncio.sleep(TALLY_S)
            tally = await ask("class/tally", **held)
            given = sum(count for _, count in tally["counts"])
        report.answered.append(max(answered) - began)
    await ask("class/end", **held)
    await asyncio.gather(*following)


async def _watch(client: Client, report: Report, server: psutil.Process | None, end: float) -> None:
    """Ask for the server's health every second; note its memory at half time and at the end.

    Settled: at half time, when the visits' store is full and the server does what it does all the
    time.
    """
    settled = (time.monotonic() + end) / 2
    while time.monotonic() < end:
        await asyncio.sleep(1)
        asked = time.monotonic()
        answer = await client.get("health")
        report.health.append(time.monotonic() - asked)
        if answer.status != 200:
            report.faults.append(f"health: {answer.body[:200]!r}")
        health = answer.json()
        report.kept_runs = health["kept"]["runs"]["count"]
        report.kept_bytes = health["kept_bytes"]
        if time.monotonic() >= settled and not report.memory_settled:
            report.memory_settled = server.memory_info().rss if server else 0
            report.kept_settled = report.kept_bytes
    if server:
        report.memory_end = server.memory_info().rss


def main() -> None:
    """Print the figures as JSON; status 1 if something is not as promised."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--visitors", type=int, default=60, help="default 60")
    parser.add_argument("--seconds", type=float, default=120, help="default 120")
    parser.add_argument(
        "--learners", type=int, default=0, help="so many more who train networks; default 0"
    )
    parser.add_argument(
        "--phones", type=int, default=0, help="so many answer in a class; default 0"
    )
    parser.add_argument(
        "--leavers", type=int, default=0, help="so many leave at random moments; default 0"
    )
    parser.add_argument("--port", type=int, default=7897, help="default 7897")
    parser.add_argument(
        "--save",
        choices=("load", "soak", "load_learning"),
        help="add figures that are as promised to those of all benchmarks, under this name",
    )
    options = parser.parse_args()
    tasks = tasks_for(writers(), options.visitors)
    with served(options.port) as (pid, start_s):
        server = psutil.Process(pid)
        url = f"http://127.0.0.1:{options.port}/"
        more = {name: getattr(options, name) for name in ("learners", "phones", "leavers")}
        report = asyncio.run(load(url, tasks, options.visitors, options.seconds, server, **more))
    figures = {"start_s": round(start_s, 1), **report.figures()}
    print(json.dumps(figures, indent=2))
    if failures := report.failures():
        sys.exit("\n".join(failures))
    if options.save:
        results.add(options.save, figures, results.MEASURED)


if __name__ == "__main__":
    main()
