"""A lesson as one HTML file: what its steps hold, each run once, and nothing that gives answers."""

import pytest
import serving

from transformer import lesson as command
from transformer.lessons.lesson import check_of, read_lesson
from transformer.lessons.measures import GradingContext
from transformer.ui.lessons import stored
from transformer.ui.service import Service


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


def test_a_lesson_is_written_in_a_language(tmp_path, monkeypatch, capsys):
    serving.tiny_model().save(tmp_path / "tiny")
    monkeypatch.setattr(
        command, "all_lessons", lambda: {"mine": read_lesson(serving.LESSONS / "twice")}
    )
    out, served = tmp_path / "lesson.html", [str(tmp_path / "tiny")]
    command.export("mine", served, "fr", out)
    text = out.read_text("utf-8")
    assert '<html lang="fr">' in text
    assert "http://" not in text.replace("http://www.w3.org/", "")  # names of SVG and MathML
    assert "https://" not in text
    assert "MB" in capsys.readouterr().out
    with pytest.raises(ValueError, match="lesson must be one of"):
        command.export("none", served, "en", out)
