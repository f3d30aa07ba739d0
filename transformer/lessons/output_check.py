"""Check a run: its text, what was changed in the network, and what the network wrote with and
without that change.

check = {run = {alters = ["ablate"], most_heads = 1, intact = {has = "ram"}, lacks = "ram"}}
check = {run = {numbers = [{of = "top_probability", token = -1, temperature = 1, above = 0.5}]}}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from transformer.analysis.ablation import intact_ids, next_token
from transformer.analysis.masked_token import masked_token
from transformer.interventions.breaks import BREAKS
from transformer.interventions.descriptions import Ablate, Break, EditMask, Intervention, Patch
from transformer.lessons.checks import (
    Check,
    CheckResult,
    PupilAnswer,
    stated,
    worded,
    written_number,
)
from transformer.lessons.measures import GradingContext, of
from transformer.messages import capital, mark, numeral, say, say_list
from transformer.model.sites import sites_of
from transformer.plain_text import IN_CAPITALS, is_in_capitals
from transformer.runs.run import Run
from transformer.tokenizer import HIDDEN, TYPED_MASK

COMPARED = ("above", "below")
CHANGES = ("order", "mask", "word")  # of a text's words


@dataclass(frozen=True, kw_only=True)
class OutputCheck(Check):
    """Conditions on a run, all of which must hold.

    Of its request. model: a prefix of the model's name, of the step's state unless it is given.
    text, begins, ends, other_than: words that the text holds, but not within a name, begins with,
    ends in, lacks. changes:
    {text, by}: it is that text with its words in another "order", with more of them behind a
    "mask", or with one other "word". method: greedy, sample or beam. forced: a token was replaced
    by another. tokens: how many are written at least, unless the text ends by itself.

    Of the change in the network; without any of these it has to be whole. breaks: the switch of
    *What if?* that is on. alters: the kinds of interventions: "ablate" for heads, "feed-forward",
    "mask", "patch".
    attention: whose heads are switched off, "self" or "cross". off, keeps: a head that is switched
    off, or stays on, "5.0". most_heads, most_forwards, most_cells, most_rows: of heads and
    feed-forwards switched off, cells forbidden, rows patched.

    Of what it says: the generated text, or the tokens found for [MASK]. has, lacks: whole words,
    "*" for any word, "a/b" for either, "!a/b" for any but these; or "^a", with which it begins.
    changed: the whole network
    writes another text. next: its likeliest next token is the "same", an "other" one, or another
    "name". intact: {has, lacks, numbers} of the whole network on the same request. numbers:
    measures with their arguments, each with `above` or `below`, the least or largest right number.
    """

    kind: str = "run"
    model: str = ""
    text: str = ""
    begins: str = ""
    ends: str = ""
    other_than: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    method: str = ""
    forced: bool = False
    tokens: int = 0
    breaks: str = ""
    alters: tuple[str, ...] = ()
    attention: str = ""
    off: str = ""
    keeps: str = ""
    most_heads: int = 0
    most_forwards: int = 0
    most_cells: int = 0
    most_rows: int = 0
    has: str = ""
    lacks: str = ""
    changed: bool = False
    next: str = ""
    intact: Mapping[str, Any] = field(default_factory=dict)
    numbers: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.breaks and self.breaks not in BREAKS:
            raise ValueError(f"breaks must be one of {[*BREAKS]}; got {self.breaks}")
        if self.changes and (
            set(self.changes) != {"text", "by"} or self.changes["by"] not in CHANGES
        ):
            raise ValueError(f"changes takes a text, and by: one of {list(CHANGES)}")
        if self.next not in ("", *WRONG_NEXT):
            raise ValueError(f"next must be one of {[*WRONG_NEXT]}; got {self.next}")
        if unknown := set(self.intact) - {"has", "lacks", "numbers"}:
            raise ValueError(f"intact takes has, lacks, numbers; got {sorted(unknown)}")

    def grade(self, context: GradingContext, answer: PupilAnswer) -> CheckResult:
        """Grade the run itself; `answer` is not used."""
        for refusal in (*self._of_request(context.run), *self._of_change(context.run)):
            return CheckResult(False, refusal)
        for refusal in self._of_output(context):
            return CheckResult(False, _with_space(context.run, refusal))
        says = say("The network says “{text}”.", text=written(context).strip())
        for number in self.numbers if not self.has else ():
            says = stated(number["of"], _measured(context, number))
        if self.next:
            says = say("Whole network: “{intact}”. Changed: “{now}”.", **dict(_next_words(context)))
        return CheckResult(True, says)

    def _of_request(self, run: Run) -> Iterator[str]:
        text = run.request.text
        if not run.model.startswith(self.model):
            yield say(
                "The shown model is {got}; this step is about {model}.",
                got=run.model, model=self.model,
            )  # fmt: skip
        if not _match(text, self.text, names=False):
            if other_sense := _match(text, re.sub(r"![\w/]+", "*", self.text)):
                yield say(
                    "In “{words}” it is a name, or means something else; take another text.",
                    words=other_sense,
                )  # fmt: skip
            yield say("The text has to hold “{text}”.", text=shown(self.text))
        if words_of(text)[: len(words_of(self.begins))] != words_of(self.begins):
            yield say("The text has to begin with “{text}”.", text=self.begins)
        ending = words_of(self.ends)
        is_open = text.rstrip()[-1:].isalnum()  # no full stop after it
        if ending and (words_of(text)[-len(ending) :] != ending or not is_open):
            yield say("The text has to end with “{text}”.", text=self.ends)
        if self.other_than and holds(text, self.other_than):
            yield say(
                "The text still holds “{text}”: take another one.",
                text=_match(text, self.other_than),
            )  # fmt: skip
        if self.changes and not _is_changed(text, self.changes["text"], self.changes["by"]):
            yield say(HOW_CHANGED[self.changes["by"]], text=self.changes["text"])
        if self.forced and not run.request.forced_tokens:
            yield say("No token has been replaced yet: click a candidate that was not taken.")
        sampled = "greedy" if run.request.sampling is None else "sample"
        method = "beam" if run.request.beams > 1 else sampled
        wanted = self.method
        if not wanted and sampled == "sample" and (self.has or self.lacks or self.changed):
            wanted = "greedy"  # what luck wrote or lost says nothing of the network
        if wanted not in ("", method):
            yield say(
                "The tokens were chosen by “{got}”; this step is about “{method}”.",
                got=say(METHODS[method]), method=say(METHODS[wanted]),
            )  # fmt: skip
        if run.request.forced_tokens and not self.forced:
            yield say("A token was replaced by hand: press “Write on” to let the network choose.")
        if len(run.steps) < self.tokens and run.stopped != "end":
            yield say(
                "It wrote new tokens: {n}. It has to write {least}, or a text that ends by itself.",
                n=len(run.steps), least=self.tokens,
            )  # fmt: skip

    def _of_change(self, run: Run) -> Iterator[str]:
        """What is missing among the changes of the network, and what is too much."""
        wanted: list[Intervention] = []
        others: list[Intervention] = []
        for change in run.request.interventions:
            (wanted if self._is_asked(change, run) else others).append(change)
        if not self.breaks and not self.alters:
            if others:
                yield say(
                    "The network is changed ({what}); this step is about the whole one.",
                    what=say_list(map(str, others)),
                )
            return
        if not wanted:
            yield self._nothing_yet(others)
        if others:
            yield say(
                "This is changed as well: {what}. Take it back.", what=say_list(map(str, others))
            )
        heads = _heads_off(wanted, run)
        head = {"head": (self.keeps or self.off).replace(".", "·")}
        if self.keeps and any(f"{layer}.{n}" == self.keeps for *_, layer, n in heads):
            yield say("Head {head} is switched off; it has to stay on.", **head)
        if self.off and not any(f"{layer}.{n}" == self.off for *_, layer, n in heads):
            yield say("Head {head} is not switched off yet.", **head)
        cells = {
            cell for change in wanted if isinstance(change, EditMask) for cell in change.forbid
        }
        rows = [at for change in wanted if isinstance(change, Patch) for at in change.positions]
        forwards = [
            change for change in wanted if isinstance(change, Ablate) and change.part != "z"
        ]
        for sentence, most, n in (
            (mark("Heads switched off: {n}; at most {most} allowed."), self.most_heads, len(heads)),
            (mark("Feed-forwards switched off: {n}; at most {most} allowed."), self.most_forwards,
             len(forwards)),
            (mark("Cells forbidden: {n}; at most {most} allowed."), self.most_cells, len(cells)),
            (mark("Rows replaced: {n}; at most {most} allowed."), self.most_rows, len(rows)),
        ):  # fmt: skip
            if most and n > most:
                yield say(sentence, n=n, most=most)
        if self.most_cells and any(None in cell for cell in cells):
            yield say("A whole row or column is forbidden; forbid single cells.")

    def _is_asked(self, change: Intervention, run: Run) -> bool:
        if self.breaks:
            all_off = self.breaks == "no-attention" and _all_heads_off(run)
            return all_off or (isinstance(change, Break) and change.what == self.breaks)
        if isinstance(change, Ablate) and change.positions is not None:
            return False
        if isinstance(change, Ablate) and change.part != "z":
            return change.part == "mlp_out" and "feed-forward" in self.alters
        if isinstance(change, Ablate) and self.attention not in ("", change.kind):
            return False
        if isinstance(change, EditMask) and not change.forbid:
            return False
        return change.type in self.alters

    def _nothing_yet(self, others: Sequence[Intervention]) -> str:
        if self.breaks:
            needed = say("“{what}” is not switched on yet.", what=capital(str(Break(self.breaks))))
        else:
            needed = say(NOTHING_YET[self.alters[0]])
            if self.attention == "cross":
                needed = say("No head of cross-attention is switched off yet.")
        if not others:
            return needed
        return say(
            "This is changed: {what}. {needed}", what=say_list(map(str, others)), needed=needed
        )

    def _of_output(self, context: GradingContext) -> Iterator[str]:
        said, reader = written(context).strip(), context.models.model(context.run.model).reader
        loses = reader.source_text and (self.lacks or self.changes)
        if loses and is_in_capitals(context.run.request.text):  # nearly every word is lost
            yield say(IN_CAPITALS)
        if self.intact:
            yield from self._of_intact(context)
        if self.has and not holds(said, self.has):
            yield say(
                "The network says “{text}”; “{words}” would count.",
                text=said, words=shown(self.has),
            )  # fmt: skip
        if self.lacks and holds(said, self.lacks):
            yield say(
                "The network says “{text}”: “{words}” is still there.",
                text=said, words=_match(said, self.lacks),
            )  # fmt: skip
        if self.changed and (
            context.models.ask(intact_ids, context.run, forced=False) == context.run.ids
        ):
            yield say("The network says “{text}”, as it does without the change.", text=said)
        if self.next:
            words = _next_words(context)
            is_same, are_names = words["intact"] == words["now"], _are_names(words.values())
            if is_same != (self.next == "same") or (self.next == "name" and not are_names):
                yield say(WRONG_NEXT[self.next], **dict(words))
        for number in self.numbers:
            yield from _out_of_bounds(context, number)

    def _of_intact(self, context: GradingContext) -> Iterator[str]:
        """What the whole network should say on the same request, and does not."""
        run = context.run
        text = context.models.ask(intact_text, run).strip()
        has, lacks = self.intact.get("has", ""), self.intact.get("lacks", "")
        if has and not holds(text, has):
            yield say(
                "Even the whole network says “{text}”, without “{words}”: nothing to lose.",
                text=text, words=shown(has),
            )  # fmt: skip
        if lacks and holds(text, lacks):
            yield say(
                "The whole network also says “{text}”: that is not due to the change.",
                text=text,
            )
        request = replace(run.request, interventions=())
        whole = replace(context, run=replace(run, request=request))
        for number in self.intact.get("numbers", ()):
            for refusal in _out_of_bounds(whole, number):
                yield say("Of the whole network: {refusal}", refusal=refusal)


NOTHING_YET = {
    "ablate": mark("No head is switched off yet."),
    "feed-forward": mark("No feed-forward is switched off yet."),
    "patch": mark("No row has been replaced by one from another text yet."),
    "mask": mark("No cell of the mask is forbidden yet."),
    "break": mark("Nothing is switched off yet."),
}
METHODS = {
    "greedy": mark("greedy: always the likeliest"),
    "sample": mark("sample"),
    "beam": mark("beam search"),
}
HOW_CHANGED = {
    "order": mark("The text has to be the words of “{text}” in another order, each once."),
    "mask": mark("The text has to be “{text}” with [MASK] in place of further words."),
    "word": mark("The text has to be “{text}” with one other word in place of a word."),
}
WRONG_NEXT = {
    "same": mark("Whole network: “{intact}”. Changed: “{now}”. The two have to be the same."),
    "other": mark("Whole network: “{intact}”. Changed: “{now}”. The two have to differ."),
    "name": mark(
        "Whole network: “{intact}”. Changed: “{now}”. They have to be two different names."
    ),
}


# ---- whole words ----

_WORD = re.compile(r"\[mask\]|\w+", re.IGNORECASE)


def words_of(text: str) -> list[str]:
    """The words of a text in small letters; [MASK] is one."""
    return _WORD.findall(TYPED_MASK.sub(HIDDEN, text).casefold())


def holds(text: str, phrase: str) -> bool:
    """Whether these words follow each other in a text; "*": any word, "a/b": either, "!a/b": any
    but these, all within a sentence; "^a": the text begins with it."""
    return bool(_match(text, phrase))


def _match(text: str, phrase: str, names: bool = True) -> str:
    """The words of the text that a phrase matches, or ""; "…" for an empty phrase. names: whether
    the words of a name count, too, such as "Green Street" for "green"."""
    if not phrase:
        return "…"
    if phrase.startswith("^"):
        return phrase[1:] if text.strip().startswith(phrase[1:]) else ""
    wanted = re.findall(r"\[mask\]|\*|!?[\w/]+", phrase.casefold())
    if not wanted:  # signs alone
        return phrase if phrase in text else ""
    text = TYPED_MASK.sub(HIDDEN, text)
    is_pattern = any(part[0] in "*!" for part in wanted)
    for sentence in re.split(r"[.!?;:]\s", text) if is_pattern else [text]:
        words = re.findall(_WORD, sentence)
        for start in range(len(words) - len(wanted) + 1):
            end = start + len(wanted)
            if all(map(_fits, words[start:end], wanted)) and (
                names or not is_pattern or not _has_name(words[start:end])
            ):
                return " ".join(words[start:end])
    return ""


def _fits(word: str, part: str) -> bool:
    is_in = word.casefold() in part.lstrip("!").split("/")
    return part == "*" or is_in is not part.startswith("!")


def _has_name(words: Sequence[str]) -> bool:
    """Whether two words in a row have a capital letter, such as "Green Street", not counting the
    first, which may begin a sentence."""
    return any(word.istitle() and following.istitle() for word, following in pairwise(words[1:]))


def shown(phrase: str) -> str:
    """A phrase as a visitor reads it: the first of the alternatives, "…" for any word."""
    words = re.sub(r"![\w/]+|\*", "…", phrase)
    return re.sub(r"(\w)/[\w/]+", r"\1", words).lstrip("^").strip()


def _is_changed(text: str, original: str, by: str) -> bool:
    """Whether it is the original text with its words changed in one of CHANGES' ways."""
    now, before = words_of(text), words_of(original)
    if by == "order":
        return now != before and sorted(now) == sorted(before)
    if len(now) != len(before):
        return False
    pairs = [pair for pair in zip(now, before, strict=True) if pair[0] != pair[1]]
    if by == "mask":
        return bool(pairs) and all(word == "[mask]" for word, _ in pairs)
    return len(pairs) == 1 and "[mask]" not in pairs[0]


# ---- the network's words ----


def written(context: GradingContext) -> str:
    """The run's output: generated text, an encoder's likeliest tokens for hidden ones, or else the
    text that it read."""
    run = context.run
    if run.steps or run.config.family != "encoder":
        return "".join(step.text for step in run.steps) if run.steps else run.text
    tokenizer = context.models.model(run.model).tokenizer
    guesses = [
        context.models.ask(masked_token, run, position=position).ids[0]
        for position, index in enumerate(run.ids)
        if index == tokenizer.mask_id
    ]
    return "".join(map(tokenizer.text, guesses)) or run.text


def intact_text(model: Any, run: Run) -> str:
    """The text that the whole network writes on the run's request."""
    ids = intact_ids(model, run, forced=False)[run.n_prompt :]
    return "".join(model.tokenizer.text(index) for index in ids)


def _next_words(context: GradingContext) -> Mapping[str, str]:
    """The likeliest next token of the whole network ("intact") and of the changed one ("now")."""
    run = context.run
    logits = context.models.ask(next_token, run, position=run.n_prompt, n_kept=1)
    text_of = context.models.model(run.model).tokenizer.text
    intact, now = (int(values.argmax()) for values in (logits.intact, logits.intervened))
    return {"intact": text_of(logits.ids[intact]).strip(), "now": text_of(logits.ids[now]).strip()}


def _are_names(words: Iterable[str]) -> bool:
    return all(word[:1].isupper() and word[1:].islower() for word in words)


def _measured(context: GradingContext, number: Mapping[str, Any]) -> float:
    arguments = {name: value for name, value in number.items() if name not in (*COMPARED, "of")}
    return of(context, number["of"], arguments)


def _out_of_bounds(context: GradingContext, number: Mapping[str, Any]) -> Iterator[str]:
    value = _measured(context, number)
    quantity = worded(number["of"])
    if "above" in number and value < number["above"]:
        got, least = _told_apart(value, number["above"])
        yield say(
            "{quantity} is {value}; {least} or more would count.",
            quantity=quantity, value=got, least=least,
        )  # fmt: skip
    if "below" in number and value > number["below"]:
        got, most = _told_apart(value, number["below"])
        yield say(
            "{quantity} is {value}; {most} or less would count.",
            quantity=quantity, value=got, most=most,
        )  # fmt: skip


def _told_apart(value: float, bound: float) -> tuple[str, str]:
    """A measured number and its bound as text, with enough decimals to differ."""
    got, allowed = written_number(value), written_number(bound)
    return (numeral(value, ".4f") if got == allowed else got), allowed


def _with_space(run: Run, refusal: str) -> str:
    """The refusal; a decoder's text that ends with a space may be refused for that alone."""
    if run.config.family != "decoder" or not run.request.text[-1:].isspace():
        return refusal
    return say(
        "{refusal} The text ends with a space, which the network reads too: delete it.",
        refusal=refusal,
    )


def _heads_off(changes: Sequence[Intervention], run: Run) -> set[tuple[str, str, int, int]]:
    """The heads that are switched off: stack, kind, layer, head."""
    return {
        (change.stack, change.kind, change.layer, head)
        for change in changes
        if isinstance(change, Ablate) and change.part == "z" and change.positions is None
        for head in (range(run.config.n_heads) if change.heads is None else change.heads)
    }


def _all_heads_off(run: Run) -> bool:
    n_sites = len(sites_of(run.config))
    return len(_heads_off(run.request.interventions, run)) == n_sites * run.config.n_heads
