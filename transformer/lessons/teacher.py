"""The teacher's page of a lesson: HTML to print, without scripts, made from the lesson's file."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from transformer.lessons.lesson import Plan, Step, Translations, nearest
from transformer.messages import language, mark, say, say_list, say_n, speaking

# Who does a step, as the page says it.
WHO = {"pairs": mark("in pairs"), "projector": mark("projector"), "everybody": mark("each alone")}
# For whom a plan is, as the page says it.
WHOM = {"pupils": mark("pupils"), "students": mark("second-year students")}
_STRESS = re.compile(r"\*\*([^*]+)\*\*|\*([^*]+)\*|`([^`]+)`")  # as in web/text.js
_ELEMENTS = {1: "strong", 2: "em", 3: "code"}
_THEME = Path(__file__).parents[1] / "web" / "theme.css"
_STYLE = """
      body { max-width: 46em; margin: 2em auto; padding: 0 1em }
      body { color: var(--viz-text); background: var(--viz-paper) }
      body { font: 16px/1.4 system-ui, sans-serif }
      a { color: var(--viz-accent) }
      h1 { margin: 0; font-size: 26px }
      h2 { margin: 0; font-size: 18px }
      p, ul { margin: 0 0 4px }
      section { margin-top: 14px; border-top: 1px solid var(--viz-line) }
      section { padding-top: 10px }
      section { break-inside: avoid }
      dl { display: grid; grid-template-columns: 9em 1fr; gap: 4px 12px; margin: 8px 0 0 }
      dt, .facts { color: var(--viz-muted) }
      dd { margin: 0 }
      ul { padding-left: 1.2em }
      .right { font-weight: 600 }
      .projected { border: 1px solid; border-radius: 3px; padding: 0 6px; font: 14px sans-serif }
      @media (max-width: 32em) { dl { display: block } dd { margin-bottom: 8px } }
      @page { size: A4; margin: 10mm 12mm }
      @media print {
        body { max-width: none; margin: 0; padding: 0; font-size: 8pt; line-height: 1.22 }
        h1 { font-size: 15pt } h2 { font-size: 10.5pt } .projected { font-size: 8.5pt }
        section { margin-top: 5pt; padding-top: 4pt } p, ul { margin-bottom: 1pt }
        dl { gap: 1pt 8pt; margin-top: 3pt; grid-template-columns: 7.5em 1fr }
      }
"""
_PAGE = """<!doctype html>
<html lang="{language}">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>{name}</title>
    <style>{style}    </style>
  </head>
  <body>
    <p class="facts">{facts}</p>
    <h1>{title}</h1>
    {sections}
  </body>
</html>
"""


def teacher_page(translations: Translations, page: str) -> str:
    """The lesson for its teacher, in the language of this request or else the lesson's own.

    page: the address of the page that opens the steps.
    """
    lesson = nearest(translations, language())
    with speaking(lesson.language):
        title, for_teacher = html.escape(lesson.title), html.escape(say("For the teacher"))
        facts = [for_teacher, html.escape(_minutes(lesson.class_minutes))]
        plans = [_planned(plan, [step.title for step in lesson.steps]) for plan in lesson.plans]
        rows = _row(say("Aim"), [lesson.aim]) + _row(say("Other plans"), (), plans)
        sections = [f"{_paragraphs([lesson.about])}<dl>{rows}</dl>"]
        for number, step in enumerate(lesson.steps, 1):
            address = f"{page}#{urlencode({'lesson': f'{lesson.name}.{number}'})}"
            sections.append(_section(number, address, step))
    return _PAGE.format(
        language=html.escape(lesson.language), name=f"{title} · {for_teacher}",
        style=_colours() + _STYLE, facts=" · ".join(facts), title=_inline(lesson.title),
        sections="\n    ".join(sections),
    )  # fmt: skip


def _colours() -> str:
    """The page's light ones."""
    return re.findall(r":root \{[^}]*\}", _THEME.read_text(encoding="utf-8"))[0]


def _section(number: int, address: str, step: Step) -> str:
    link = f'<a href="{html.escape(address)}">{number}. {_inline(step.title)}</a>'
    facts = [_minutes(step.minutes)] if step.minutes else []
    facts += [say(WHO[step.who])] if step.who else []
    badge = f' <span class="projected">{html.escape(say_list(facts))}</span>' if facts else ""
    rows = (
        _row(say("Aim"), [step.aim]),
        _row(say("Guess"), [step.guess], step.guesses, step.guessed),
        _row(say("Task"), [step.task], step.options),
        _row(say("Explanation"), step.explains),
        _row(say("Misconception"), [step.misconception]),
        _row(say("Ask the class"), [step.ask]),
    )
    heading = f"<h2>{link}{badge}</h2>"
    return f"<section>{heading}{_paragraphs(step.says)}<dl>{''.join(rows)}</dl></section>"


def _planned(plan: Plan, titles: Sequence[str]) -> str:
    """A plan in a sentence."""
    words = {
        "minutes": _minutes(plan.minutes), "whom": say(WHOM[plan.whom]),
        "total": _minutes(plan.total),
    }  # fmt: skip
    if plan.leave_out:
        words["steps"] = say_list(_name(titles[number - 1]) for number in plan.leave_out)
    if plan.titled:
        words["added"] = say_list(
            f"{_name(title)} ({_plain(lesson)})" if lesson else _name(title)
            for title, lesson in plan.titled
        )
    if plan.leave_out and plan.titled:
        return say("{minutes}, {whom}: without {steps}; also {added}. In all {total}.", **words)
    if plan.leave_out:
        return say("{minutes}, {whom}: without {steps}. In all {total}.", **words)
    if plan.titled:
        return say("{minutes}, {whom}: also {added}. In all {total}.", **words)
    return say("{minutes}, {whom}: all steps. In all {total}.", **words)


def _name(title: str) -> str:
    return f"*{_plain(title)}*"


def _plain(title: str) -> str:
    """A title without its own emphasis."""
    return title.replace("*", "")


def _minutes(n: int) -> str:
    return say_n("{n} minute", "{n} minutes", n)


def _row(label: str, texts: Sequence[str], options: Sequence[str] = (), right: int = 0) -> str:
    """A label and its texts with their options, as a row of a list; "" without any. right: the
    option to mark, from 1."""
    items = "".join(
        f'<li class="right">{_inline(option)} ✓</li>'
        if n == right
        else f"<li>{_inline(option)}</li>"
        for n, option in enumerate(options, 1)
    )
    body = _paragraphs(texts) + (f"<ul>{items}</ul>" if items else "")
    return f"<dt>{html.escape(label)}</dt><dd>{body}</dd>" if body else ""


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{_inline(text)}</p>" for text in texts if text)


def _inline(text: str) -> str:
    """A lesson's text as HTML: **strong**, *emphasis*, `code`, and nothing else."""
    return _STRESS.sub(_element, html.escape(text))


def _element(match: re.Match[str]) -> str:
    name = _ELEMENTS[match.lastindex or 1]
    return f"<{name}>{match[match.lastindex or 1]}</{name}>"
