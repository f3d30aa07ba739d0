"""Check a run's output and the settings that produced it.

check = {run = {has = "Bram", alters = ["ablate"]}}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from transformer.analysis.ablation import intact_ids
from transformer.analysis.masked_token import masked_token
from transformer.lessons.checks import Answer, Check, CheckResult
from transformer.lessons.measures import GradingContext
from transformer.messages import mark, say
from transformer.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class OutputCheck(Check):
    """Conditions on a run's output (generated text, or tokens found for [MASK]) and its request.

    has, lacks: words that the output contains or lacks. text: a part of the input. alters: kinds
    of interventions in the network. forced: a token was replaced by another. changed: the intact
    network writes something else. method: greedy, sample or beam. model: a prefix of the model's
    name. All conditions must hold.
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

    def grade(self, context: GradingContext, answer: Answer) -> CheckResult:
        """Grade the run itself; `answer` is not used."""
        if missing := self._missing(context.run):
            return CheckResult(right=False, says=missing)
        said = written(context)
        right = self.has in said and not (self.lacks and self.lacks in said)
        if right and self.changed:
            right = context.models.ask(intact_ids, context.run, forced=False) != context.run.ids
        return CheckResult(right=right, says=say("The network says “{text}”.", text=said.strip()))

    def _missing(self, run: Run) -> str:
        """A sentence on the first unmet condition, or ""."""
        altered = {one.type for one in run.request.interventions}
        if not run.model.startswith(self.model):
            return say("This is the model {got}; another one is asked for.", got=run.model)
        if self.text not in run.request.text:
            return say("The text that it is given does not hold “{text}” yet.", text=self.text)
        if missing := [one for one in self.alters if one not in altered]:
            return say("Nothing of the kind “{what}” is altered in the network yet.",
                       what=say(KINDS[missing[0]]))  # fmt: skip
        if self.forced and not run.request.forced_tokens:
            return say("No token was taken in place of another yet.")
        sampled = "greedy" if run.request.sampling is None else "sample"
        if self.method not in ("", "beam" if run.request.beams > 1 else sampled):
            return say("The tokens were chosen by another method.")
        return ""

    def right_answer(self, context: GradingContext) -> Answer | None:
        """None: the step's solution is a state of the page."""
        return None

    def answers(self, context: GradingContext) -> Iterator[Answer]:
        """The run as it is."""
        yield {}


KINDS = {
    "ablate": mark("ablation"), "break": mark("break"), "patch": mark("patch"),
    "mask": mark("mask"),
}  # fmt: skip


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
