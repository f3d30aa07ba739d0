"""Classes whose phones answer: over HTTP, of one server that offers the lesson *twice*."""

import asyncio
import json
import math
import re
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from kit import aio, serving

import transformer
from transformer.checks import InvalidRequest
from transformer.inference.deadline import renewed
from transformer.lessons import all_lessons
from transformer.lessons.output_check import OutputCheck
from transformer.messages import languages, say, speaking
from transformer.server.classroom.class_routes import step_shower, text_taker
from transformer.server.classroom.classes import CODE_CHARACTERS, N_SIGNS, Classes, Poll
from transformer.server.http.errors import NO_CLASS, Busy, Refused, public_error
from transformer.server.http.limits import (
    CLASS_AGE_S,
    MAX_CLASS_PHONES,
    MAX_CLASSES,
    of_one_address,
)
from transformer.server.http.requests import set_caller
from transformer.server.kept.service import Service
from transformer.server.kept.store import MemoryBudget

MAX_ADDRESS_CLASSES = of_one_address(MAX_CLASSES)
GONE = (404, public_error(NO_CLASS))
HEAD, TOKEN, NUMBER, CHOICE = 1, 2, 3, 4  # steps of *twice*
SOON_S = 5.0  # on a busy machine


class Teacher:
    """Who has opened a class, with a run of the lesson's text."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.held = client.post("resources/class/open", json={}).json()
        self.code = self.held["code"]
        text = "Once upon a time a little fox met a bird."
        asked = {"model": "tiny", "text": text, "method": "greedy", "max_new_tokens": 4}
        lines = client.post("resources/runs", json=asked).text.splitlines()
        self.facts = [said["tokens"] for said in map(json.loads, lines) if "tokens" in said][-1]

    def show(self, step: int, phase: str, **more: Any) -> None:
        data = {"name": "twice", "step": step, "phase": phase, "run": self.facts["run"]}
        answer = self.client.post("resources/show_step", json=self.held | data | more)
        assert answer.status_code == 200, answer.text

    def tally(self) -> dict[str, Any]:
        return dict(self.client.post("resources/class/tally", json=self.held).json())

    def end(self) -> httpx.Response:
        return self.client.post("resources/class/end", json=self.held)


class Phone:
    def __init__(self, teacher: Teacher) -> None:
        self.client, self.code = teacher.client, teacher.code
        self.phone, self.seen = secrets.token_hex(16), 0

    def asked(self) -> dict[str, Any]:
        """The phone's next question, once it has changed."""
        data = {"code": self.code, "phone": self.phone, "seen": self.seen}
        asked = dict(self.client.post("resources/class/asked", json=data).json())
        self.seen = asked.get("rev", 0)
        return asked

    def answer(self, answer: Any, name: str) -> httpx.Response:
        data = {"code": self.code, "phone": self.phone, "name": name, "answer": answer}
        return self.client.post("resources/class/answer", json=data)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """In place of time.monotonic: it says `now`."""
    made = SimpleNamespace(now=time.monotonic())
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    return made


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving.second().client() as made:
        yield made


@pytest.fixture
def teacher(client: httpx.Client) -> Iterator[Teacher]:
    made = Teacher(client)
    yield made
    made.end()


def test_a_choice_is_asked_answered_changed_and_shown(teacher):
    first, second = Phone(teacher), Phone(teacher)
    assert first.asked()["name"] == ""  # no step yet
    with ThreadPoolExecutor(1) as waiting:
        coming = waiting.submit(first.asked)
        time.sleep(1)
        assert not coming.done()
        teacher.show(CHOICE, "task", order=[1, 0])
        asked = coming.result(SOON_S)
    assert [one["at"] for one in asked["options"]] == [1, 0]
    assert (asked["kind"], asked["answer"], asked["over"]) == ("options", None, False)
    assert (asked["explains"], asked["right"], asked["best"]) == ([], None, None)

    name = asked["name"]
    first.answer(0, name)
    first.answer(1, name)
    assert second.answer(0, name).json()["answer"] == 0
    tally = teacher.tally()
    assert (tally["counts"], tally["phones"], tally["right"]) == ([[0, 1], [1, 1]], 2, None)

    teacher.show(CHOICE, "shown")
    shown, other = first.asked(), second.asked()
    assert (shown["right"], other["right"], shown["best"]) == (True, False, 1)  # causal
    assert teacher.tally()["right"] == [1]
    first.answer(0, name)  # too late
    assert teacher.tally()["counts"] == [[0, 1], [1, 1]]

    teacher.show(NUMBER, "guess")
    assert first.answer(0, name).json()["question"] == "How many keys are hidden?"
    assert teacher.tally()["counts"] == []
    teacher.show(CHOICE, "shown")  # back again
    assert teacher.tally()["counts"] == [[0, 1], [1, 1]]


def test_numbers_tokens_and_heads_are_graded_on_the_teachers_run(teacher):
    run = serving.running().model.generate(teacher.facts["text"], max_new_tokens=4)
    pattern = run.trace["decoder.1.self"].pattern[0]
    one = Phone(teacher)

    def answered(step: int, answer: Any) -> Any:
        teacher.show(step, "task")
        asked = one.asked()
        assert one.answer(answer, asked["name"]).status_code == 200
        teacher.show(step, "shown")
        return one.asked()

    read = pattern[0, 6].tolist()
    best = max(range(len(read)), key=read.__getitem__)
    shown = answered(TOKEN, best)
    assert [at["text"] for at in shown["options"]] == list(run.labels)
    assert (shown["right"], shown["best"], shown["look"]) == (True, best, "tokens")
    assert answered(TOKEN, (best + 1) % 7)["right"] is False

    hidden = pattern.shape[2] - 7
    shown = answered(NUMBER, hidden)
    assert (shown["right"], shown["best"], shown["explains"]) == (True, hidden, ["All later ones."])
    assert answered(NUMBER, hidden + 1)["right"] is False

    firsts = {
        (layer, head): float(run.trace[f"decoder.{layer}.self"].pattern[0, head, 1:, 0].mean())
        for layer in range(2) for head in range(3)
    }  # fmt: skip
    layer, head = max(firsts, key=firsts.__getitem__)
    shown = answered(HEAD, 0)
    assert shown["options"][shown["best"]]["text"] == f"{layer}·{head}"


def test_every_guess_reaches_the_phones_and_stays_while_a_run_is_asked_for(teacher):
    for name, lesson in all_lessons().items():
        for number, step in enumerate(lesson["en"].steps, 1):
            teacher.show(number, "guess", name=name)
            tally = teacher.tally()
            assert len(tally["options"]) == len(step.guesses), (name, number)
            assert bool(tally["kind"]) == bool(step.guess), (name, number)
    one, other = Phone(teacher), Phone(teacher)
    right = all_lessons()["values"]["en"].steps[3].guessed - 1
    teacher.show(4, "guess", name="values")
    name = one.asked()["name"]
    one.answer(right, name)
    other.answer(right + 1, name)
    teacher.show(4, "task", name="values")
    asked = one.asked()
    assert (asked["kind"], asked["question"]) == ("", "")  # the phone cannot do it
    tally = teacher.tally()
    assert (tally["kind"], tally["counts"]) == ("options", [[right, 1], [right + 1, 1]])
    assert (tally["right"], tally.get("guessed")) == (None, None)
    teacher.show(4, "shown", name="values")
    tally = teacher.tally()
    assert (tally["right"], tally["guessed"]["right"], tally["guessed"]["all"]) == ([right], 1, 2)
    assert [phone.asked()["guessed"]["right"] for phone in (one, other)] == [True, False]


def test_a_step_that_has_only_a_guess_ends_with_its_answer():
    classes = Classes(MemoryBudget())
    one = classes.open()
    show = step_shower(Service([transformer.load("stories")], trainings=0), classes)
    step = {"code": one.code, "key": one.key, "name": "opener", "step": 2}
    for phase, right in (("guess", None), ("shown", {2}), ("guess", None)):
        show(step | {"phase": phase})
        assert one.poll is not None
        assert (one.poll.right, one.poll.best) == (right, right and max(right))


def test_texts_of_phones_are_run_and_judged_as_the_step_says(monkeypatch):
    service = Service([transformer.load("stories")], trainings=0)
    classes = Classes(MemoryBudget())
    held = {"code": (one := classes.open()).code, "key": one.key}
    show, take = step_shower(service, classes), text_taker(service, classes)
    run = service.example("stories")[0]

    def judged(lesson: str, text: str, **shown: Any) -> Any:
        show(held | {"name": lesson, "step": 1, "phase": "task", "run": run} | shown)
        asked = {"code": one.code, "phone": "mine", "name": f"{lesson}.1.task", "text": text}
        return take(asked)

    story = 'Once upon a time a cat named {0} saw a bird. The bird said to {0}, "Hello, {1}'
    for name, is_right in (("Plim", True), ("Tark", False), ("Plim", True)):
        assert judged("prediction", story.format(name, name[0]))["right"] is is_right
    assert one.poll is not None
    (tried,) = one.poll.tried.values()  # a phone's last text counts
    assert (tried.said[:3], tried.right) == ("lim", True)
    # the switch of the step is on, whatever text a phone sends
    assert judged("attention", "We all saw a dog named")["right"] is True
    with pytest.raises(InvalidRequest, match="may have at most 300 characters"):
        judged("attention", "a" * 301)
    assert judged("attention", "We saw a dog named", phase="shown")["right"] is True  # too late

    def is_busy(*_: Any) -> Any:
        raise Busy()

    monkeypatch.setattr(OutputCheck, "grade", is_busy)
    with pytest.raises(Busy):  # not a wrong answer: the phone asks again
        judged("prediction", story.format("Plim", "P"))


def test_without_a_step_phones_are_asked_nothing(teacher):
    teacher.show(NUMBER, "guess")
    one = Phone(teacher)
    assert one.asked()["kind"] == "options"
    teacher.client.post("resources/show_step", json=teacher.held)
    assert one.asked()["name"] == ""


def test_only_the_holder_of_the_key_reads_and_ends_a_class(teacher):
    teacher.show(CHOICE, "task")
    foreign = teacher.held | {"key": "x" * 22}
    for path, more in (
        ("class/tally", {}),
        ("class/end", {}),
        ("show_step", {"name": "twice", "step": 1, "phase": "guess"}),
    ):
        for held in (foreign, {"code": teacher.code}, foreign | {"key": 7}):
            answer = teacher.client.post(f"resources/{path}", json=held | more)
            assert (answer.status_code, answer.json()) == GONE, path
    asked = Phone(teacher).asked()
    assert teacher.held["key"] not in str(asked)
    assert not {"counts", "phones"} & set(asked)


def test_a_wrong_code_leads_nowhere(teacher):
    client, code = teacher.client, teacher.code
    assert re.fullmatch(f"[{CODE_CHARACTERS}]{{{N_SIGNS}}}", code)
    for wrong in ("222222", code[:-1], code + "2", "", None, 7):
        for path in ("asked", "answer"):
            data = {"code": wrong, "phone": "mine"}
            answer = client.post(f"resources/class/{path}", json=data)
            assert (answer.status_code, answer.json()) == GONE
    page = client.get("class/222222", headers={"accept-language": "de"})
    assert (page.status_code, "<script type=" in page.text) == (404, False)
    assert 'lang="de"' in page.text
    teacher.end()
    assert client.get(f"class/{code}").status_code == 404


ORDERS = [5, [0, "a"], [None, 1], [[0], 1], [0.0, 1.0], [True, False], {"0": 1, "1": 0}, "01"]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_an_order_that_is_no_list_of_places_is_refused(teacher, order):
    data = {"name": "twice", "step": CHOICE, "phase": "guess", "run": teacher.facts["run"]}
    answer = teacher.client.post("resources/show_step", json=teacher.held | data | {"order": order})
    assert answer.status_code == 400, answer.text
    assert "order must be a list of whole numbers" in answer.json()["detail"]
    assert teacher.tally()["rev"] == 1
    assert "rev" in Phone(teacher).asked()


def test_a_key_that_is_no_text_of_utf_8_is_refused(teacher):
    sent = json.dumps(teacher.held | {"key": "\ud800"})
    headers = {"content-type": "application/json"}
    answer = teacher.client.post("resources/class/tally", content=sent, headers=headers)
    assert (answer.status_code, answer.json()) == GONE


def test_what_cannot_be_an_answer_is_refused(teacher):
    one = Phone(teacher)
    for step, phase, wrong in (
        (CHOICE, "task", (2, -1, True, 0.5, "0", None)),
        (NUMBER, "task", ("3", None, float("1e300"), [1])),
    ):
        teacher.show(step, phase)
        name = one.asked()["name"]
        for answer in wrong:
            assert one.answer(answer, name).status_code == 400, answer
    for phone in ("", "x" * 65, 7, None):
        one.phone = phone  # type: ignore[assignment]
        assert one.answer(1, name).status_code == 400
    assert teacher.tally()["counts"] == []


@pytest.mark.parametrize("language", languages())
def test_the_phones_page_speaks_the_phones_language(teacher, language):
    page = teacher.client.get(
        f"class/{teacher.code.lower()}", headers={"accept-language": language}
    )
    assert page.status_code == 200
    policy = teacher.client.get("").headers["content-security-policy"]
    assert page.headers["content-security-policy"] == policy
    script = re.search(r'src="([^"]+)"', page.text)[1]
    text = teacher.client.get(script).text
    waits = "Look at the screen: the next question comes here by itself."
    with speaking(language):
        assert json.dumps(say(waits), ensure_ascii=False) in text
    assert not re.search(r"https?://", page.text)


# --- limits and time ------------------------------------------------------------------------------


def test_a_class_ends_two_hours_after_its_teachers_last_request(clock):
    classes = Classes(MemoryBudget())
    one = classes.open()
    clock.now += CLASS_AGE_S - 1
    assert classes.owned(one.code, one.key) is one
    clock.now += CLASS_AGE_S - 1
    one.join("phone")
    assert classes.find(one.code) is one
    clock.now += 2
    with pytest.raises(Refused, match=str(NO_CLASS)):
        classes.find(one.code)
    assert classes.open().code != one.code


def test_the_class_of_the_most_silent_teacher_makes_room(clock):
    classes, made = Classes(MemoryBudget()), []
    for place in range(MAX_CLASSES):
        set_caller(address=f"10.0.0.{place % 2}")
        made.append(classes.open())
        made[-1].join("phone")
    set_caller(address="10.0.0.2")
    with pytest.raises(InvalidRequest, match="too many classes"):
        classes.open()
    clock.now += 30
    for one in made:
        if one not in made[4:6]:
            classes.owned(one.code, one.key)
    clock.now += 31
    for one in made:
        one.join("phone")
    assert classes.open().code
    assert [one.is_over for one in made[3:7]] == [False, True, False, False]
    assert classes.open().code
    assert made[5].is_over
    with pytest.raises(InvalidRequest, match="too many classes"):
        classes.open()


def test_pages_without_a_phone_do_not_hold_all_classes():
    classes, made = Classes(MemoryBudget()), []
    for place in range(MAX_CLASSES):
        set_caller(address=f"10.0.0.{place // MAX_ADDRESS_CLASSES}")
        made.append(classes.open())
    made[MAX_ADDRESS_CLASSES - 1].join("phone")
    set_caller(address="10.0.0.2")
    own = [classes.open()]
    ended = [place for place, one in enumerate(made) if one.is_over]
    assert ended == [MAX_ADDRESS_CLASSES - 2]  # the newest without a phone
    own += [classes.open() for _ in range(5)]
    with pytest.raises(InvalidRequest, match="too many classes"):
        classes.open()
    crowds = [made[:MAX_ADDRESS_CLASSES], made[MAX_ADDRESS_CLASSES:], own]
    left = [sum(not one.is_over for one in crowd) for crowd in crowds]
    assert sum(left) == MAX_CLASSES
    assert max(left) - min(left) <= 1


def test_a_class_whose_opener_has_left_without_its_key_makes_room():
    classes, gone = Classes(MemoryBudget()), threading.Event()
    for _ in range(MAX_ADDRESS_CLASSES):
        with renewed(math.inf, gone):
            classes.open()
    with pytest.raises(InvalidRequest, match="too many classes"):
        classes.open()
    gone.set()
    assert classes.open().code


def test_a_class_goes_back_to_its_last_eight_questions():
    class_ = Classes(MemoryBudget()).open()

    def poll(step: int, label: str = "the") -> Poll:
        return Poll(lesson="tokens", step=step, asks="task", kind="options", labels=[label])

    polls = [class_.asked(poll(step)) for step in range(9)]
    assert class_.asked(poll(1)) is polls[1]
    assert class_.asked(poll(0)) is not polls[0]
    assert class_.asked(poll(1)) is polls[1]
    assert class_.asked(poll(8, "a")) is not polls[8]  # of another text
    for largest in (1e12, -1e12):
        assert Poll(lesson="l", step=1, asks="task", kind="number").check(largest) == largest
        with pytest.raises(ValueError, match="the answer must be a number"):
            Poll(lesson="l", step=1, asks="task", kind="number").check(1.001 * largest)


def test_there_are_limits_of_classes_and_of_phones(monkeypatch):
    classes, made = Classes(MemoryBudget()), []
    for place in range(MAX_CLASSES):
        set_caller(address=f"10.0.0.{place // MAX_ADDRESS_CLASSES}")
        made.append(classes.open())
        made[-1].join("phone")
        is_full = place == MAX_CLASSES - 1 or place == MAX_ADDRESS_CLASSES - 1
        if is_full:
            with pytest.raises(InvalidRequest, match="too many classes"):
                classes.open()
    classes.end(made[0])
    one = classes.open()
    for place in range(MAX_CLASS_PHONES):
        one.join(f"phone {place}")
    one.join("phone 0")
    with pytest.raises(InvalidRequest, match=rf"{MAX_CLASS_PHONES} phones"):
        one.join("one more")
    later = time.monotonic() + 61
    monkeypatch.setattr(time, "monotonic", lambda: later)
    one.join("one more")  # the others are gone
    assert one.n_phones() == 1


@pytest.mark.slow
def test_two_hundred_phones_wait_without_a_place_and_cost_little(teacher):
    server = serving.second()

    async def phones() -> dict[str, Any]:
        # No connection rests between two requests: the server closes one after 5 s, which a busy
        # machine may take to send the next request.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits) as client:

            async def phone(place: int) -> None:
                mine = {"code": teacher.code, "phone": f"phone {place}"}
                asked = await client.post("resources/class/asked", json=mine | {"seen": 1})
                answer = mine | {"name": asked.json()["name"], "answer": place % 2}
                answered = await client.post("resources/class/answer", json=answer)
                assert answered.json()["answer"] == place % 2

            every = [asyncio.create_task(phone(place)) for place in range(MAX_CLASS_PHONES)]
            while teacher.tally()["phones"] < MAX_CLASS_PHONES:
                await asyncio.sleep(0.1)
            health = (await client.get("health")).json()
            before = server.cpu_s()
            teacher.show(CHOICE, "task")
            await asyncio.gather(*every)
            return health | {"cpu_s": server.cpu_s() - before}

    told = aio.run(phones())
    assert all(not one["running"] + one["waiting"] for one in told["resources"].values())
    assert told["cpu_s"] < 4  # 0.5, and what else a server does after its start
    tally = teacher.tally()
    assert (tally["phones"], tally["counts"]) == (200, [[0, 100], [1, 100]])
