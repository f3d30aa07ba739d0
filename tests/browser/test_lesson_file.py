"""A lesson's file opened from disk, without a network: a check is failed, and passed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from transformer import Model
from transformer.lessons.lesson import check_of, read_lesson
from transformer.ui.experiments import Experiments
from transformer.ui.lessons import lesson_file, shown_by, state_of
from transformer.ui.service import Service

pytestmark = pytest.mark.browser
SITE = "decoder.1.self"
STATE = f"model=tiny&text=Once+upon+a+time+a+fox&method=greedy&length=6&site={SITE}&head=0"
CHECK = {"click": "token", "of": "weight", "site": SITE, "head": 0, "query": 5}
LESSON = f"""# Looking, *again*

```toml
minutes = 3
```

## A token

```toml
state = "{STATE}&read=5"
[check]
click = "token"
of = "weight"
site = "{SITE}"
head = 0
query = 5
within = 0.0
```

The **darkest** one. <img src=x onerror=alert(1)>

> Click it.

1. Look.
2. Look again.

## Another run

```toml
state = "{STATE.replace("a+fox", "the+cat")}"
[check]
number = "tokens"
```

Words.

> How many tokens are there?

1. Count.
2. Count again.

## A change

```toml
state = "{STATE}"
solution = "{STATE}"
[check.run]
alters = ["ablate"]
```

Words.

> Ablate a head.

1. One.
2. Two.
"""


def test_a_check_is_failed_and_passed_without_a_network(
    browser: Any, tiny_model: Model, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "en.md").write_text(LESSON, encoding="utf-8")
    experiments = Experiments(Service([tiny_model], trainings=0))
    lesson = read_lesson(folder)
    (tmp_path / "lesson.html").write_text(lesson_file(lesson, experiments), encoding="utf-8")
    grounds = [shown_by(experiments, state_of(step.state)) for step in lesson.steps[:2]]
    weights = grounds[0].run.trace[SITE].pattern[0, 0, 5]

    tab = browser.new_context(offline=True).new_page()
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto((tmp_path / "lesson.html").as_uri())
    tab.wait_for_selector(".attention[data-rev]")
    verdict = tab.locator(".card-verdict")
    expect(tab.locator(".card-title")).to_have_text("A token")
    expect(verdict).to_be_hidden()
    tokens = tab.locator("#tokens .text-tokens button.token")
    shade = "box => Number(box.style.getPropertyValue('--read'))"
    shades = [one.evaluate(shade) for one in tokens.all()[:6]]
    assert shades == pytest.approx([float(one) ** (2 / 3) for one in weights[:6]], abs=1e-3)

    best = int(weights.argmax())
    tokens.nth(int(weights[:5].argmin())).click()
    expect(verdict).to_contain_text("Not yet. The weight is")
    tokens.nth(best).click()
    said = check_of(CHECK).grade(grounds[0], {"token": best}).says
    expect(verdict).to_have_text(f"Right. {said}")

    tab.click(".card-next")
    n = len(grounds[1].run.labels)
    expect(tokens).to_have_count(n)
    tab.fill(".card-form input", str(n + 1))
    tab.click(".card-form button")
    expect(verdict).to_have_text(f"Not yet. It is not {n + 1}.")
    for _ in range(2):
        tab.click(".card-hint")
    tab.click(".card-solve")
    expect(verdict).to_contain_text("Right.")
    expect(tab.locator(".card-form input")).to_have_value(str(n))

    tab.click(".card-next")
    expect(tab.locator(".card-look")).to_contain_text("This step needs the page")
    expect(tab.locator("main")).to_be_hidden()
    expect(tab.locator(".card-check > button:visible")).to_have_count(0)
    assert complaints == []
    tab.context.close()
