"""A lesson as one HTML file: what its steps hold, each run once, and nothing that gives answers."""

from __future__ import annotations

import pytest

from transformer import lesson as command
from transformer.lessons.lesson import Lesson, check_of, read_lesson
from transformer.lessons.measures import GradingContext
from transformer.lessons.stored import stored
from transformer.messages import speaking
from transformer.ui.lessons import lesson_file
from transformer.ui.service import Service
from transformer.views.export import lesson as page

STATE = "model=tiny&site=decoder.1.self&head=1"
STEP = """
## {title}

```toml
{header}
```

Words.

> Do it.
{options}
1. One.
2. Two.
"""
OTHER = "model=tiny&text=Once&method=greedy&length=3"
HEADERS = {
    "Head": f'state = "{STATE}&read=3"\n[check]\nclick = "head"\nof = "first"',
    "Number": f'state = "{STATE}&tab=masks"\n[check]\nnumber = "hidden"\n'
    'site = "decoder.0.self"\nquery = 25',
    "Stays": '[check]\nnumber = "tokens"',
    "Run": f'state = "{STATE}"\nsolution = "{OTHER}"\n[check.run]\nlacks = "x"',
    "After": '[check]\nclick = "head"\nof = "first"',
    "Learn": 'state = "model=tiny&tab=learn"\n[check]\nnumber = "tokens"',
    "Batch": 'state = "model=tiny&tab=masks&lines=a%0Ab"\n[check]\nnumber = "padding"\n'
    "sentence = 1",
    "Other": f'state = "{OTHER}&tab=prediction&read=2"\n[check]\nclick = "token"\n'
    'of = "surprisal"',
}  # fmt: skip


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    folder = tmp_path_factory.mktemp("lessons") / "mine"
    folder.mkdir()
    steps = (STEP.format(title=one, header=two, options="") for one, two in HEADERS.items())
    text = "# Mine\n\n```toml\nminutes = 3\n```\n" + "".join(steps)
    (folder / "en.md").write_text(text, encoding="utf-8")
    return read_lesson(folder)


def test_steps_share_runs_and_what_needs_the_page_says_so(lesson, tiny_model, monkeypatch):
    made = {}
    monkeypatch.setattr(page, "page", lambda *given: made.update(given=given) or "")
    with speaking("de"):
        lesson_file(lesson, Service([tiny_model], trainings=0))
    title, steps, runs = made["given"]
    assert title == "Mine"
    assert [step["run"] for step in steps] == [0, 0, 0, None, None, None, None, 1]
    assert len({step["needs"] for step in steps}) == 2
    assert all(bool(step["needs"]) == (step["run"] is None) for step in steps)
    assert all(run.lens is not None for run in runs)
    head, number, *_ = steps
    assert head["shows"] == {
        "tab": "attention", "site": "decoder.1.self", "head": 1, "stage": "weights",
        "token": {"stack": "own", "index": 3},
    }  # fmt: skip
    assert number["shows"]["tab"] == "masks"
    heads = [f"decoder.{layer}.self {head}" for layer in range(2) for head in range(2)]
    assert list(head["check"]["verdicts"]) == heads
    tokens = [f"own {token}" for token in range(len(runs[1].labels))]
    assert list(steps[-1]["check"]["verdicts"]) == tokens


def test_what_is_stored_is_said_of_each_answer_as_the_page_gives_it(tiny_model):
    run = tiny_model.generate("Once upon a time", max_new_tokens=130, temperature=0.7, seed=1)
    assert run.trace_start > 0  # rows of the picture are not places of the text
    site = "decoder.1.self"
    ground = GradingContext(run=run, models=Service([tiny_model]).queries)
    cell = check_of({"click": "cell", "of": "score", "site": site, "head": 0})
    found = stored(cell, ground)
    assert found
    right, said = found["verdicts"][f"{site} 2 1"]
    verdict = cell.grade(ground, {"query": run.trace_start + 2, "key": 1})
    assert (right, found["says"][said]) == (verdict.right, verdict.says)
    shown = " ".join(map(str, found["answer"].values()))
    assert found["verdicts"][shown][0]
    assert found["elsewhere"][0] is None
    token = check_of({"click": "token", "of": "weight", "site": site, "head": 1, "query": 125})
    found = stored(token, ground)
    assert found
    assert found["elsewhere"] == (False, "This token is of the other text.")
    assert found["verdicts"][f"own {found['answer']['token']}"][0]
    number = stored(check_of({"number": "tokens"}), ground)
    assert number
    assert (number["value"], number["answer"]) == (len(run.labels), {"number": len(run.labels)})


def test_a_lesson_is_written_in_a_language(lesson, tiny_model, tmp_path, monkeypatch, capsys):
    tiny_model.save(tmp_path / "tiny")
    monkeypatch.setattr(command, "all_lessons", lambda: {"mine": lesson})
    out, served = tmp_path / "lesson.html", [str(tmp_path / "tiny")]
    command.export("mine", served, "fr", out)
    text = out.read_text("utf-8")
    assert '<html lang="fr">' in text
    assert "http://" not in text.replace("http://www.w3.org/", "")  # names of SVG and MathML
    assert "https://" not in text
    assert "MB" in capsys.readouterr().out
    with pytest.raises(ValueError, match="lesson must be one of"):
        command.export("none", served, "en", out)
