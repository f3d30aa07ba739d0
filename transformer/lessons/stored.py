"""A check as verdicts: what it says of every answer, so that a page without a network says it too.

    stored(check, context)  # {"kind": "token", "verdicts": {"own 3": [True, 0], …}, "says": […], …}

An answer is written as the page gives it, its values with spaces between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from transformer.lessons.attention_measures import OF_A_BATCH, first_row
from transformer.lessons.checks import Check, Choose, Click, Number
from transformer.lessons.measures import GradingContext
from transformer.messages import say, translated

Told = tuple[bool | None, str]  # None: it cannot be graded, and why


def stored(check: Check, context: GradingContext) -> dict[str, Any] | None:
    """{"kind", "answer"}, and of a number {"value", "tolerance", "says"}, else {"verdicts", "says",
    "elsewhere"}; None where only the network can grade, or where it is about a batch.

    verdicts: by answer, whether it is right, and which of `says` is said of it. elsewhere: the
    verdict on every other answer. answer: the one that is shown in the end.
    """
    if not isinstance(check, Click | Number | Choose) or check.of in OF_A_BATCH:
        return None
    found = {
        "kind": check.kind,
        "answer": _shown(check, context, check.right_answer(context) or {}),
    }
    if isinstance(check, Number):
        number, _ = check.answers(context)
        return found | {
            "value": number["number"], "tolerance": check.tolerance,
            "says": check.grade(context, number).says,
        }  # fmt: skip
    verdicts, says = {}, dict[str, int]()
    right: bool | None
    for answer in _answers(check, context):
        try:
            graded = check.grade(context, answer)
            right, told = graded.right, graded.says
        except ValueError as error:
            right, told = None, translated(error)
        shown = _shown(check, context, answer)
        verdicts[" ".join(map(str, shown.values()))] = [right, says.setdefault(told, len(says))]
    return found | {"verdicts": verdicts, "says": list(says), "elsewhere": _elsewhere(check)}


def _answers(check: Click | Choose, context: GradingContext) -> Iterator[Mapping[str, Any]]:
    """All that can be given, those too that have no number."""
    if check.kind == "head":
        for site in context.run.trace.sites:
            n_heads = context.run.trace[site].pattern.shape[1]
            yield from ({"site": str(site), "head": head} for head in range(n_heads))
    elif isinstance(check, Click) and check.kind == "token":
        of_keys = max(one["token"] for one in check.answers(context)) + 1
        by_key = isinstance(check, Click) and "key" in check.free
        n_tokens = of_keys if by_key else len(context.run.labels)
        yield from ({"token": token} for token in range(n_tokens))
    else:
        yield from check.answers(context)


def _shown(check: Check, context: GradingContext, answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as the page gives it; empty: none."""
    if not answer:
        return {}
    if isinstance(check, Click) and check.kind == "cell":
        site = str(check.arguments["site"])
        row = answer["query"] - first_row(context.run, site)
        return {"site": site, "row": row, "key": answer["key"]}
    if isinstance(check, Click) and check.kind == "token":
        return {"stack": check.stack, "token": answer["token"]}
    if "number" in answer:
        return {"number": round(answer["number"], 2)}
    return dict(answer)


def _elsewhere(check: Click | Choose) -> Told:
    if isinstance(check, Click) and check.kind == "cell":
        site = check.arguments["site"]
        return None, say("this is about {site}; another place is shown", site=site)
    return False, say("This token is of the other text.")
