"""Check a run's output and the settings that produced it.

check = {run = {has = "Bram", alters = ["ablate"]}}
check = {run = {numbers = [{of = "top_probability", token = -1, temperature = 1, above = 0.5}]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transformer.analysis.ablation import intact_ids
from transformer.analysis.masked_token import masked_token
from transformer.interventions.descriptions import Ablate
from transformer.lessons.checks import Answer, Check, CheckResult, stated
from transformer.lessons.measures import GradingContext, of
from transformer.messages import mark, say
from transformer.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class OutputCheck(Check):
    """Conditions on a run's output (generated text, or tokens found for [MASK]) and its request.

    has, lacks: words that the output contains or lacks. text, other_than: a part that the input has
    or has not. alters: kinds of interventions in the network. off, keeps: a head that is switched
    off, or stays on, "5.0". forced: a token was replaced by another. changed, same: the intact
    network writes something else, or the same. method: greedy, sample or beam. model: a prefix of
    the model's name. numbers: measures with their arguments, each with `above` or `below`, the
    least or largest right number.
    All conditions must hold.
    """

    kind: str = "run"
    has: str = ""
    lacks: str = ""
    text: str = ""
    other_than: str = ""
    alters: tuple[str, ...] = ()
    off: str = ""
    keeps: str = ""
    forced: bool = False
    changed: bool = False
    same: bool = False
    numbers: tuple[Mapping[str, Any], ...] = ()
    method: str = ""
    model: str = ""

    def grade(self, context: GradingContext, answer: Answer) -> CheckResult:
        """Grade the run itself; `answer` is not used."""
        if missing := self._missing(context.run):
            return CheckResult(False, missing)
        said = written(context)
        right = self.has in said and not (self.lacks and self.lacks in said)
        if right and (self.changed or self.same):
            intact = context.models.ask(intact_ids, context.run, forced=False)
            right = (intact == context.run.ids) == self.same
        says = say("The network says “{text}”.", text=said.strip())
        for one in self.numbers if right else ():
            asked = {name: value for name, value in one.items() if name not in COMPARED}
            number = of(context, asked.pop("of"), asked)
            right = one.get("above", number) <= number <= one.get("below", number)
            says = stated(one["of"], number)
            if not right:
                break
        return CheckResult(right, says)

    def _missing(self, run: Run) -> str:
        """A sentence on the first unmet condition, or ""."""
        altered = {one.type for one in run.request.interventions}
        if not run.model.startswith(self.model):
            return say("This is the model {got}; another one is asked for.", got=run.model)
        if self.text not in run.request.text:
            return say("The text that it is given does not hold “{text}” yet.", text=self.text)
        if self.other_than and self.other_than in run.request.text:
            return say("The text still holds “{text}”.", text=self.other_than)
        ablated = [one for one in run.request.interventions if isinstance(one, Ablate)]
        off = {f"{one.layer}.{head}" for one in ablated for head in one.heads or ()}
        if self.keeps in off:
            return say("Head {head} is switched off.", head=self.keeps.replace(".", "·"))
        if self.off and self.off not in off:
            return say("Head {head} is not switched off yet.", head=self.off.replace(".", "·"))
        if missing := [one for one in self.alters if one not in altered]:
            return say("Nothing of the kind “{what}” is altered in the network yet.",
                       what=say(KINDS[missing[0]]))  # fmt: skip
        if self.forced and not run.request.forced_tokens:
            return say("No token has been replaced yet.")
        sampled = "greedy" if run.request.sampling is None else "sample"
        if self.method not in ("", "beam" if run.request.beams > 1 else sampled):
            return say("The tokens were chosen by another method.")
        return ""


COMPARED = ("above", "below")
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
