"""A step that asks for a run: what the network is to say, and how that is to come about.

check = {run = {has = "Bram", alters = ["silence"]}}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from transformer.lessons.checks import Answer, Check, Verdict
from transformer.lessons.quantities import Ground
from transformer.messages import mark, say
from transformer.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class Said(Check):
    """The network's own text, or what it finds for [MASK], and how that came about; all that is
    named has to be so.

    has, lacks: words in it, or not. text: a part of what it was given. alters: kinds of what is
    altered in the network. forced: a token was taken in place of another. changed: the intact
    network says something else. method: greedy, sample or beam. model: how the name of the model
    begins that is to say it.
    """

    has: str = ""
    lacks: str = ""
    text: str = ""
    alters: tuple[str, ...] = ()
    forced: bool = False
    changed: bool = False
    method: str = ""
    model: str = ""
    kind: str = field(default="run", init=False)

    def grade(self, ground: Ground, answer: Answer) -> Verdict:
        """By the run alone."""
        if missing := self._missing(ground.run):
            return Verdict(right=False, says=missing)
        said = written(ground)
        right = self.has in said and not (self.lacks and self.lacks in said)
        if right and self.changed:
            right = ground.lab.intact_ids(ground.run, forced=False) != ground.run.ids
        return Verdict(right=right, says=say("The network says “{text}”.", text=said.strip()))

    def _missing(self, run: Run) -> str:
        """What the run is not yet, in a sentence; empty: nothing."""
        altered = {one.type for one in run.request.interventions}
        if not run.model.startswith(self.model):
            return say("This is the model {got}; another one is asked for.", got=run.model)
        if self.text not in run.request.text:
            return say("The text that it is given does not hold “{text}” yet.", text=self.text)
        if missing := [one for one in self.alters if one not in altered]:
            return say("Nothing of the kind “{what}” is altered in the network yet.",
                       what=say(missing[0]))  # fmt: skip
        if self.forced and not run.request.forced_tokens:
            return say("No token was taken in place of another yet.")
        if self.method and method_of(run) != self.method:
            return say("The tokens were chosen by another method.")
        return ""

    def right_answer(self, ground: Ground) -> Answer | None:
        """A state of the page, which the step names."""
        return None

    def answers(self, ground: Ground) -> Iterator[Answer]:
        """The run as it is."""
        yield {}


KINDS = (mark("silence"), mark("break"), mark("patch"), mark("mask"))


def method_of(run: Run) -> str:
    """How its tokens were chosen."""
    request = run.request
    return "beam" if request.beams > 1 else "greedy" if request.sampling is None else "sample"


def written(ground: Ground) -> str:
    """What the network itself added to a text: its likeliest tokens where an encoder's text hides
    some; of any other encoder, the text that was read."""
    run = ground.run
    if run.steps or run.config.family != "encoder":
        return "".join(step.text for step in run.steps) if run.steps else run.text
    tokenizer = ground.lab.model(run.model).tokenizer
    found = [
        ground.lab.masked_token(run, place).ids[0]
        for place, index in enumerate(run.ids)
        if index == tokenizer.mask_id
    ]
    return "".join(map(tokenizer.text, found)) or run.text
