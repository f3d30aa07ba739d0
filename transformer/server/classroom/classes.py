"""Classes whose phones answer the steps of lessons; in memory alone."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from transformer.checks import InvalidRequest, check_whole, is_number, shortened
from transformer.inference.deadline import current
from transformer.server.http.errors import NO_CLASS, Refused
from transformer.server.http.limits import (
    MAX_CLASS_PHONES,
    MAX_CLASSES,
    MAX_HASH,
    of_one_address,
)
from transformer.server.http.requests import caller
from transformer.server.kept.store import CLASSES, MemoryBudget

# No two look alike, and without vowels they make no words: 482 million codes of six.
CODE_CHARACTERS = "23456789BCDFGHJKMNPQRSTVWXYZ"
N_SIGNS = 6
ABSENT_S = 60.0  # after which a phone, or a class, that asks no more makes room for another
CLASS_BYTES = 400_000  # of MAX_POLLS steps, two with 200 texts, and the tokens of four texts
MAX_POLLS = 8  # steps whose answers a class keeps, to go back to
LARGEST = 1e12  # of the numbers that can be answered
GUESS, TASK = "guess", "task"

MAX_TEXT = 300  # characters of a text that a phone sends


@dataclass(frozen=True, slots=True)
class Tried:
    """A text of a phone. said: what the network went on with; says: the verdict, for the phone."""

    text: str
    said: str
    says: str
    right: bool


PollAnswer = int | float  # the place of an option, or a number


@dataclass(slots=True, eq=False)
class Poll:
    """A question to the phones: the guess or the task of a step of a lesson.

    kind: "options" to tap, a "number" to enter, a "text" for the network, or "": nothing is asked.
    order: the options as the page shows them. labels: of tokens or heads; a lesson's options have
    none. tried: each phone's text.
    stack: whose tokens they are, the text's ("own") or the "encoder"'s.
    answers: by phone. is_over: whether the answer is shown. right: then the right ones among the
    options or the given numbers; None: nothing is right or wrong. best: the right one.
    """

    lesson: str
    step: int
    asks: str
    kind: str
    order: Sequence[int] = ()
    look: str = "list"  # or "tokens", "heads"
    labels: Sequence[str] = ()
    stack: str = "own"
    answers: dict[str, PollAnswer] = field(default_factory=dict)
    tried: dict[str, Tried] = field(default_factory=dict)
    is_over: bool = False
    right: frozenset[PollAnswer] | None = None
    best: PollAnswer | None = None

    @property
    def name(self) -> str:
        """Its name for phones and in a class."""
        return f"{self.lesson}.{self.step}.{self.asks}"

    def check(self, answer: Any) -> PollAnswer:
        """An answer that can be counted. Raises ValueError for any other."""
        if self.kind in ("", "text"):
            raise ValueError("this step asks a phone for nothing that is counted")
        if self.kind == "options":
            return check_whole("answer", answer, 0, len(self.order) - 1)
        if not is_number(answer) or not abs(answer) <= LARGEST:
            raise ValueError(f"the answer must be a number; got {shortened(answer)}")
        return answer


@dataclass(slots=True, eq=False)
class Class:
    """A class by its code.

    key: its teacher's secret. address: its opener's. taught_at: when its teacher last asked. gone:
    set if its opener left before it had the key. rev: counts the polls shown. seen: when each
    phone, by its secret, last asked.
    """

    code: str
    key: str
    address: str
    taught_at: float
    gone: threading.Event | None = None
    rev: int = 1
    poll: Poll | None = None
    is_over: bool = False
    seen: dict[str, float] = field(default_factory=dict)
    polls: OrderedDict[str, Poll] = field(default_factory=OrderedDict)

    def silent_s(self) -> float:
        """Seconds since its teacher's page last asked."""
        has_teacher = self.gone is None or not self.gone.is_set()
        return time.monotonic() - self.taught_at if has_teacher else math.inf

    def join(self, phone: Any) -> str:
        """Count a phone by its secret. Raises InvalidRequest where there are too many."""
        if not isinstance(phone, str) or not 1 <= len(phone) <= MAX_HASH:
            raise ValueError(
                f"phone must have from 1 to {MAX_HASH} characters; got {shortened(phone)}"
            )
        now = time.monotonic()
        if phone not in self.seen and len(self.seen) >= MAX_CLASS_PHONES:
            self.seen = {name: at for name, at in self.seen.items() if now - at < ABSENT_S}
        if phone not in self.seen and len(self.seen) >= MAX_CLASS_PHONES:
            raise InvalidRequest(
                "class_full",
                "{most} phones answer in this class already, and it takes no more.",
                most=MAX_CLASS_PHONES,
            )
        self.seen[phone] = now
        return phone

    def n_phones(self) -> int:
        """The number of phones that are connected or have answered the current question."""
        now, poll = time.monotonic(), self.poll
        answered = {*poll.answers, *poll.tried} if poll else set()
        return sum(now - at < ABSENT_S or phone in answered for phone, at in self.seen.items())

    def asked(self, poll: Poll) -> Poll:
        """The poll of this name, with its answers if it was asked before; else this one."""
        if (kept := self.polls.get(poll.name)) is not None and kept.labels == poll.labels:
            self.polls.move_to_end(poll.name)
            return kept
        self.polls[poll.name] = poll
        if len(self.polls) > MAX_POLLS:
            self.polls.popitem(last=False)
        return poll

    def show(self, poll: Poll | None) -> None:
        """Show a poll on the phones, or that there is nothing to answer."""
        self.poll = poll
        self.rev += 1


class Classes:
    """All classes of a server. Its memory budget ends each two hours after its teacher last asked.
    n_waiting: phones that wait for a question."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self.n_waiting = 0

    def open(self) -> Class:
        """A new class. If there is no room, the class of the teacher who has been silent longest
        ends; if none is silent, the newest without phones of the address with most classes. Raises
        InvalidRequest if there is none either."""
        every: list[Class] = self._budget.of(CLASSES)
        address = caller().address
        own = [class_ for class_ in every if class_.address == address]
        for crowd, most in ((own, of_one_address(MAX_CLASSES)), (every, MAX_CLASSES)):
            if len(crowd) < most:
                continue
            ending = max(crowd, key=Class.silent_s)
            if ending.silent_s() <= ABSENT_S:
                ending = _unused(crowd, len(own))
            self.end(ending)
            every.remove(ending)
        codes = {class_.code for class_ in every}
        code = ""
        while not code or code in codes:
            code = "".join(secrets.choice(CODE_CHARACTERS) for _ in range(N_SIGNS))
        key = secrets.token_urlsafe(16)
        class_ = Class(
            code=code, key=key, address=address, taught_at=time.monotonic(), gone=current().flag
        )
        self._budget.put(CLASSES, code, class_, CLASS_BYTES)
        return class_

    def find(self, code: object) -> Class:
        """The class of a code. Raises Refused."""
        class_: Class | None = self._budget.peek(CLASSES, code) if isinstance(code, str) else None
        if class_ is None:
            raise Refused(404, NO_CLASS)
        return class_

    def owned(self, code: object, key: object) -> Class:
        """A class for its teacher, whose question keeps it. Raises Refused also for a wrong key."""
        class_ = self.find(code)
        secret = key.encode(errors="surrogatepass") if isinstance(key, str) else b""
        if not secrets.compare_digest(class_.key.encode(), secret):
            raise Refused(404, NO_CLASS)
        class_.taught_at = time.monotonic()
        self._budget.get(CLASSES, code)
        return class_

    def end(self, class_: Class) -> None:
        """Forget a class."""
        class_.is_over = True
        self._budget.discard(CLASSES, class_.code)


def _unused(classes: Sequence[Class], n_own: int) -> Class:
    """The newest class without phones of the address with most, if it has two more than n_own, the
    caller's. Raises InvalidRequest."""
    count = Counter(class_.address for class_ in classes)
    address, most = count.most_common(1)[0]
    unused = [class_ for class_ in classes if class_.address == address and not class_.n_phones()]
    if most < n_own + 2 or not unused:
        raise InvalidRequest(
            "too_many_classes",
            "There are too many classes at the moment; try again when one is over.",
        )
    return unused[-1]
