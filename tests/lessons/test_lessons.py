"""Lesson files, what they can ask, and the grading: against numbers worked out here."""

import dataclasses
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from kit import aio
from kit.models import tiny

import transformer
from transformer import Model, bundled_names
from transformer.analysis.ablation import head_importance, log_probabilities_at
from transformer.analysis.logit_contribution import logit_contribution
from transformer.check_lessons import check as check_folder
from transformer.check_lessons import verify
from transformer.learning.training import STORIES
from transformer.lessons import FOLDER, ORDER, add_lessons, all_lessons, read_folder
from transformer.lessons.check_header import check_of
from transformer.lessons.checks import NumberCheck, written_number
from transformer.lessons.lesson import Step, language_paths, nearest, read_lesson
from transformer.lessons.measures import MEASURES, GradingContext, Measure, of
from transformer.lessons.stamps import behind, put_stamps
from transformer.server.http.guard import Guard
from transformer.server.kept.service import Service
from transformer.server.learn import lessons as lessons_of_page
from transformer.server.learn.lessons import shown_by, teacher_routes

TEXT = "Once upon a time a little fox met a bird."
SITE = "decoder.1.self"
LESSON = """# Looking back

```toml
minutes = 3
```

About it.

## First

```toml
state = {model = "tiny", tab = "attention", site = "decoder.1.self", head = 1, read = 3}
[check]
click = "head"
of = "first"
```

Two lines of
one paragraph.

Another with **strong**.

> Click a
> head.

1. Look
   closely.
2. Look again.

## Last

```toml
state = {tab = "masks"}
```

Nothing is asked.
"""


@pytest.fixture(scope="module")
def experiments(tiny_model: Model) -> Service:
    return Service([tiny_model])


@pytest.fixture(scope="module")
def ground(tiny_model: Model, experiments: Service) -> GradingContext:
    run = tiny_model.generate(TEXT, max_new_tokens=6)
    return GradingContext(run=run, models=experiments.queries)


def written(folder: Path, text: str, name: str = "mine", language: str = "en") -> Path:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / f"{language}.md").write_text(text, encoding="utf-8")
    return folder / name


def test_a_file_is_read_block_by_block(tmp_path):
    lesson = read_lesson(written(tmp_path, LESSON))["en"]
    first, last = lesson.steps
    assert (lesson.name, lesson.minutes, lesson.title) == ("mine", 3, "Looking back")
    assert first.says == ["Two lines of one paragraph.", "Another with **strong**."]
    assert first.task == "Click a head."
    assert first.hints == ["Look closely.", "Look again."]
    assert last.task == ""
    assert last.state == {"tab": "masks"}
    assert last.check is None


CHECK = 'click = "head"\nof = "first"'


def test_a_mistake_in_a_file_is_reported_with_its_line(tmp_path):
    for old, new, message in (
        ("# Looking", "Looking", "a lesson begins with"),
        ("## Last", "### Last", "line 30: one “# Title”"),
        ("minutes = 3", "minutes = 0", "minutes must be a whole number"),
        ("minutes = 3", "hours = 3", "header takes"),
        ("minutes = 3", "minutes =", "line 3:"),
        ("> Click a\n> head.\n", "", "a check needs a task"),
        ("1. Look\n   closely.", "- Look\n", "the check has 0 options; the text has 1"),
        (LESSON, "", "begins with"),
        (LESSON, "# A\n```toml\nminutes = 1\n", "without an end"),
        ('"first"', '"firsts"', r"mine/en.md: the step “First”.* one of .*weight"),
        (CHECK, f"{CHECK}\nhead = 1", "first takes .*; got .*site"),
        ("[check]", "ordered = 1\n[check]", "ordered must be true or false"),
        (
            'state = {tab = "masks"}',
            'state = "model=stories"',
            "state must be a table; got 'mod",
        ),
        ('{tab = "masks"}', "{model = 5}", "state.model must be a text; got 5"),
        ("[check]", "solution = 5\n[check]", "solution must be a table"),
        ("[check]", "hints = [1]\n[check]", "hints must be a table"),
        ("[check]", "measured = [1]\n[check]", "measured must be a list of tables"),
        (CHECK, 'click = "hat"', "click must be one of"),
        (CHECK, "guess = 1", "needs one of click, number, choose, run"),
        (CHECK, "run = 1", "run must be a table"),
        (CHECK, "run = {has = 1}", "run takes"),
        (CHECK, 'number = "weights"', "measure must be one of"),
        (CHECK, f'choose = "hidden"\nsite = "{SITE}"\nquery = 2', "bounds, or one"),
    ):
        assert old in LESSON
        with pytest.raises(ValueError, match=message):
            read_lesson(written(tmp_path, LESSON.replace(old, new)))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"holds no LANGUAGE\.md"):
        read_lesson(tmp_path / "empty")
    with pytest.raises(ValueError, match="no folder of lessons"):
        read_folder(tmp_path / "none")


def test_another_language_has_words_alone_and_as_many(tmp_path):
    french = LESSON.replace("# Looking back", "# Regarder").split("```toml")
    words = french[0] + "".join(part.split("```")[1] for part in french[1:])
    folder = written(tmp_path, LESSON)
    written(tmp_path, words, language="fr")
    lesson = read_lesson(folder)
    assert [*lesson] == ["en", "fr"]
    assert nearest(lesson, "fr").title == "Regarder"
    assert nearest(lesson, "zh").title == "Looking back"
    written(tmp_path, words.replace("2. Look again.\n", ""), language="fr")
    with pytest.raises(ValueError, match=r"mine/fr.md: the step “First” needs as many"):
        read_lesson(folder)


def test_what_is_clicked_is_right_where_its_number_is_nearly_the_best(ground, tiny_model):
    run, row = ground.run, {"site": SITE, "head": 1, "query": 5}
    first = run.trace.weights("decoder", "self")[:, 0, :, 1:, 0].mean(dim=-1)
    heads = {(f"decoder.{n}.self", h): float(first[n, h]) for n in range(2) for h in range(2)}
    weights = dict(enumerate(run.trace[SITE].pattern[0, 1, 5].tolist()))
    chances = dict(enumerate((one.chosen.probability for one in run.steps), run.n_prompt - 1))
    for given, values in (
        ({"click": "head", "of": "first"}, heads),
        ({"click": "token", "of": "weight", **row}, weights),
        ({"click": "token", "of": "probability"}, chances),
    ):
        names = ("site", "head") if values is heads else ("token",)
        for least, within in itertools.product((False, True), (0.0, 0.5, 1.0)):
            check = check_of({**given, "least": least, "within": within})
            best = (min if least else max)(values.values())
            room = within * (max(values.values()) - min(values.values()))
            for place, value in values.items():
                answer = dict(zip(names, place if values is heads else (place,), strict=True))
                found = check.grade(ground, answer)
                assert found.right == (abs(value - best) <= room)
                assert values is not heads or f"{value:.2f}" in found.says
            place = tuple(check.right_answer(ground)[name] for name in names)
            assert values[place if values is heads else place[0]] == best
        if values is weights:
            assert not check.grade(ground, answer | {"stack": "encoder"}).right
        with pytest.raises(ValueError, match=r"head must be a whole number from|has only tokens"):
            check.grade(ground, {"site": SITE, "head": 9, "token": -1})
    off = [transformer.Ablate("decoder", layer, heads=[0, 1]) for layer in range(2)]
    silent = dataclasses.replace(ground, run=tiny_model.trace(TEXT, off))
    assert check_of({"click": "head", "of": "first"}).right_answer(silent) is None


def test_a_number_has_its_tolerance(ground):
    given = {"site": SITE, "head": 0, "query": 4}
    row = ground.run.trace[SITE].pattern[0, 0, 4].double()
    bits = float(-(row[row > 0] * row[row > 0].log2()).sum())
    check = check_of({"number": "row_entropy", "tolerance": 0.1, **given})
    assert check.grade(ground, {"number": bits + 0.09}).right
    assert not check.grade(ground, {"number": bits + 0.11}).right
    for wrong in ("a", None, True):
        with pytest.raises(ValueError, match="must be a number"):
            check.grade(ground, {"number": wrong})


@pytest.mark.parametrize(
    ("value", "got", "is_right"),
    [
        (3.0, 3, True), (3.0, 3.01, False), (3.0, 4, False), (0.0, 0, True), (0.0, 1, False),
        (0.0952, 9.5, True), (0.0952, 9.6, False),  # in per cent
        (1.0, 100, True), (1.2, 120, False), (0.5, 1, False),
        (0.0952, 0.095, True), (0.0952, 0.1, False),  # rounded, but not by a twentieth
        (0.957, 0.96, True), (1234.5, 1234, True), (-0.25, -0.25, True), (-0.25, 0.25, False),
    ],
)  # fmt: skip
def test_a_number_may_be_given_in_fewer_digits_or_in_per_cent(
    monkeypatch, ground, value, got, is_right
):
    name = f"planted {value}"
    monkeypatch.setitem(MEASURES, name, Measure(words="the share", measure=lambda context: value))
    grade = NumberCheck(of=name).grade(ground, {"number": got})
    assert grade.right == is_right
    assert not is_right or grade.says == f"The share is {written_number(value)}."


@pytest.mark.parametrize(("words", "is_right"), [("of draws in a hundred", True), ("", False)])
def test_a_count_of_a_hundred_may_be_given_as_a_share(monkeypatch, ground, words, is_right):
    name = f"planted {words}"
    monkeypatch.setitem(MEASURES, name, Measure(words=f"the count {words}", measure=lambda _: 7.0))
    assert NumberCheck(of=name).grade(ground, {"number": 0.07}).right == is_right
    assert not NumberCheck(of=name).grade(ground, {"number": 0.08}).right


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"), (2.00005, "2"), (2.0002, "2.00"), (0.01, "0.01"), (0.0099, "0.0099"),
        (1234.5, "1234.50"), (0.0, "0"), (0.125, "0.12"),
    ],
)  # fmt: skip
def test_a_measured_number_has_two_decimals_or_four_if_it_is_small(value, text):
    assert written_number(value) == text


def test_one_of_several_is_the_largest(ground):
    scores = ground.run.trace[SITE].scores[0, 0, 6, [1, 3, 5]]
    check = check_of({"choose": "score", "site": SITE, "head": 0, "query": 6, "key": [1, 3, 5]})
    assert check.n_options == 3
    best = int(scores.argmax())
    assert [check.grade(ground, {"option": k}).right for k in range(3)] == [
        k == best for k in range(3)
    ]
    with pytest.raises(ValueError, match="answer must be a whole number from 0 to 2"):
        check.grade(ground, {"option": 3})
    for query in (0, 1, 5):  # or the range that it falls into
        bounds = [5, len(ground.run.labels) - 1 - query]
        check = check_of({"choose": "hidden", "site": SITE, "query": query, "bounds": bounds})
        assert (check.n_options, check.right_answer(ground)) == (3, {"option": 2})


def test_what_can_be_measured_is_what_is_recorded_or_the_network_says(ground, tiny_model):
    run = ground.run
    record, place = run.trace[SITE], {"site": SITE, "head": 1, "query": 7}
    step, token = run.steps[2], run.n_prompt + 1  # the last one read before that step
    other = step.candidates[1]
    seen = transformer.with_lens(tiny_model, run)
    asked = run.n_prompt
    best = seen.lens.ids[:, :asked, 0]
    chances = log_probabilities_at(tiny_model, run, token + 1)
    parts = logit_contribution(tiny_model, run, token + 1)
    added = parts.heads["self"][1, 1]
    change = head_importance(tiny_model, run, token + 1).change["decoder", "self"][1, 1]
    first = run.ids[token + 1]
    runner_up = next(one for one in chances.topk(2).indices.tolist() if one != first)
    off = transformer.Ablate(stack="decoder", layer=1, heads=[1])
    request = dataclasses.replace(run.request, interventions=(off,))
    without = log_probabilities_at(tiny_model, dataclasses.replace(run, request=request), token + 1)
    behind = logit_contribution(tiny_model, run, token + 1, target=runner_up)
    unit = {"unit": "1.1", "token": token}
    silent = {"site": SITE, "head": 1, "token": token}
    for measure, given, wanted in (
        ("weight", place | {"key": 2}, record.pattern[0, 1, 7, 2]),
        ("score", place | {"key": 2}, record.scores[0, 1, 7, 2]),
        ("hidden", {"site": SITE, "query": 7}, len(run.labels) - 8),
        ("probability", {"token": token}, step.chosen.probability),
        ("kept", {"token": token}, step.n_kept),
        ("candidate", {"token": token, "text": other.text}, other.probability),
        ("rank", {"token": token, "text": other.text}, 2),
        ("top_probability", {"token": token, "temperature": 2},
         (chances / 2).softmax(-1).max()),
        ("tail", {"token": token, "temperature": 1, "best": 3},
         1 - chances.exp().topk(3).values.sum()),
        ("weight_ratio", place | {"key": 2, "other": 3},
         record.pattern[0, 1, 7, 2] / record.pattern[0, 1, 7, 3]),
        ("mean_weight", {"site": SITE, "head": 1, "key": 2}, record.pattern[0, 1, 2:, 2].mean()),
        ("head_output", place | {"dimension": 3},
         (record.pattern[0, 1, 7] @ record.v[0, 1])[3]),
        ("head_output", place | {"query": -1, "dimension": 3},
         (record.pattern[0, 1, asked - 1] @ record.v[0, 1])[3]),
        ("generated", {}, 6),
        ("logit", {"token": token}, parts.logit),
        ("heads_add", {"token": token}, parts.heads["self"].sum()),
        ("feed_forwards_add", {"token": token}, parts.feed_forward.sum()),
        ("lens_agreement", {"layers": 1}, (best[1] == best[-1]).float().mean()),
        ("mean_surprisal", {}, sum(seen.surprisal[1:asked]) / (asked - 1)),
        ("equal_layers", {"token": -1, "other": TEXT}, 2),
        ("equal_layers", {"token": -1, "other": f"A bird. {TEXT}"}, 0),
        ("embedding_numbers", {}, tiny_model.network.embedding.tokens.weight.numel()),
        ("token_similarity", {"text": "a", "other": "a"}, 1),
        ("tokens", {}, len(run.ids)),
        ("heads", {}, 2),
        ("surprisal", {"token": 4}, seen.surprisal[4]),
        ("contribution", silent, added),
        ("importance", silent, abs(change)),
        ("lead_added", unit, added - behind.heads["self"][1, 1]),
        ("lead_lost", unit | {"by": "zero"},
         (chances - without)[first] - (chances - without)[runner_up]),
    ):  # fmt: skip
        assert of(ground, measure, given) == pytest.approx(float(wanted), abs=1e-5), measure
    with pytest.raises(ValueError, match="lacks the place that this question is about"):
        of(ground, "contribution", silent | {"head": 2})


def test_nothing_after_the_last_forced_token_is_all_as_before(tiny_model, experiments):
    intact = tiny_model.generate(TEXT, max_new_tokens=4).ids
    for n_tokens in (2, 4):
        run = tiny_model.generate(TEXT, max_new_tokens=n_tokens, forced_tokens=[70, 71])
        context = GradingContext(run=run, models=experiments.queries)
        later = [here == there for here, there in zip(run.ids[-2:], intact[-2:], strict=True)]
        share = 1 if n_tokens == 2 else sum(later) / 2
        assert of(context, "later_alike", {}) == share


def test_tokens_of_a_text_that_has_slid_keep_their_numbers(tiny_model, experiments):
    run = tiny_model.generate("the fox said hello to the dog and the cat", max_new_tokens=24)
    start = run.trace_start
    given = run.n_prompt - start  # of the traced tokens
    assert start > 0
    assert given > 2
    ground = GradingContext(run=run, models=experiments.queries)
    seen = transformer.with_lens(tiny_model, run)
    best = seen.lens.ids[:, :given, 0]
    agreed = (best[1] == best[-1]).double().mean()
    assert of(ground, "lens_agreement", {"layers": 1}) == pytest.approx(agreed)
    mean = sum(seen.surprisal[1:given]) / (given - 1)
    assert of(ground, "mean_surprisal", {}) == pytest.approx(mean)
    assert of(ground, "surprisal", {"token": start + 4}) == pytest.approx(seen.surprisal[4])
    with pytest.raises(ValueError, match=f"has only tokens {start} to"):
        of(ground, "surprisal", {"token": start - 1})


def test_only_sentences_of_three_words_are_counted_as_repeated(experiments):
    for text, wanted in (
        ("The dog ran. It sat. The dog ran. The dog ran.", 2),
        ("He ran. He ran. Hi. Hi. Hi. The dog ran.", 0),
        ("", 0),
    ):
        steps = [SimpleNamespace(text=word) for word in text]
        run = SimpleNamespace(n_prompt=1, steps=steps, request=SimpleNamespace(text="He sat."))
        ground = GradingContext(run=run, models=experiments.queries)
        assert of(ground, "repeated_sentences", {}) == wanted


def test_weights_are_counted_in_networks_of_any_kind(tokenizer, experiments):
    changes = dict(gated=True, n_heads=4, n_key_heads=2, head_size=6, attention_bias=False)
    model = tiny("grouped", "decoder", tokenizer, feed_forward_bias=False, **changes)
    ground = GradingContext(run=model.trace("the fox"), models=experiments.queries)
    layer = model.network.decoder.layers[0]
    for measure, part in (
        ("attention_weights", layer.self_attention), ("feed_forward_weights", layer.feed_forward),
    ):  # fmt: skip
        assert of(ground, measure, {}) == sum(one.numel() for one in part.parameters())


def test_what_the_network_says_is_graded_on_the_run(tiny_model, experiments):
    silence = transformer.Ablate(stack="decoder", layer=1, heads=[0, 1])
    intact = tiny_model.generate(TEXT, max_new_tokens=4)
    altered = tiny_model.generate(TEXT, max_new_tokens=4, interventions=[silence])
    forced = tiny_model.generate(TEXT, max_new_tokens=4, forced_tokens=[5])
    word, silenced = intact.steps[0].text, {"alters": ["ablate"]}
    assert altered.ids != intact.ids
    word = f"^{word.strip()}"
    wrong = [{"lacks": word}, {"has": "nowhere"}, {"text": "ox fox"}, {"method": "sample"}]
    wrong += [silenced, {"changed": True}, {"model": "stories"}, {"forced": True}]
    wrong += [
        {"other_than": "fox"},
        silenced | {"off": "1.0"},
        {"numbers": [{"of": "tokens", "below": 5}]},
    ]
    right = [{"has": word}, {"text": "fox"}, {"method": "greedy"}, {"model": "ti"}]
    right += [{"next": "same"}, {"numbers": [{"of": "tokens", "above": 5}]}]
    off, kept = silenced | {"off": "1.0"}, silenced | {"keeps": "0.0"}
    for run, checks, others in (
        (intact, right, wrong),
        (
            altered,
            [silenced, silenced | {"changed": True}, off, kept],
            [
                {"alters": ["break"]},
                {"has": word},
                silenced | {"keeps": "1.0"},
                off | {"most_heads": 1},
            ],
        ),
        (forced, [{"forced": True}], [silenced]),
    ):
        ground = GradingContext(run=run, models=experiments.queries)
        for check in (*checks, *others):
            assert check_of({"run": check}).grade(ground, {}).right == (check in checks), check


def test_a_step_is_graded_and_solved_on_the_pages_request(experiments, tmp_path, monkeypatch):
    """A lesson of this test next to the bundled ones, whose models are not served."""
    monkeypatch.setattr("transformer.lessons._LESSONS", dict(all_lessons()))
    written(tmp_path, LESSON)
    add_lessons([tmp_path])
    with pytest.raises(ValueError, match="two lessons are called 'mine'"):
        add_lessons([tmp_path])
    (only,) = lessons_of_page.lessons(experiments, {})["lessons"]
    assert (only["name"], only["title"], only["checks"]) == ("mine", "Looking back", 1)
    first, last = lessons_of_page.lesson(experiments, {"name": "mine"})["steps"]
    state = {"model": "tiny", "tab": "attention", "site": SITE, "head": 1, "read": 3}
    assert first["state"] == state
    assert (first["check"], first["types"], last["check"]) == ("head", False, "")
    run = experiments.examples["tiny"][0]
    given = {"name": "mine", "step": 1, "run": run}
    state = lessons_of_page.solve(experiments, given)["state"]
    answer = {"site": state["site"], "head": state["head"]}
    assert lessons_of_page.grade(experiments, given | {"answer": answer})["right"]
    for wrong, message in [
        ({"name": "none"}, "lesson must be one of"),
        ({"step": 0}, "step must be a whole number from 1 to 2"),
        ({"step": 2}, "asks nothing"),
        ({"answer": [1]}, "an answer must be an object"),
        ({"answer": {"hat": 1}}, "an answer must be an object"),
        ({"answer": {"site": SITE, "head": 9}}, "head must be a whole number from 0 to 1"),
        ({"answer": {}}, "a site is written"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            lessons_of_page.grade(experiments, given | {"answer": answer} | wrong)


def test_a_trained_network_is_opened_or_trained_as_the_answer(experiments):
    asked = {"name": "learning", "run": experiments.examples["tiny"][0]}
    opened = lessons_of_page.solve(experiments, asked | {"step": 6})["state"]
    assert opened["model"].startswith("induction-400~")
    assert (opened["tab"], opened["interventions"][0]["type"]) == ("attention", "ablate")
    answer = lessons_of_page.solve(experiments, asked | {"step": 5})
    assert answer["trains"]
    assert answer["state"]["learn.n_layers"] == 1


def test_faulty_steps_and_hints_are_reported(tmp_path, experiments):
    run = experiments.store.run(experiments.examples["tiny"][0])
    best = check_of({"click": "head", "of": "first"}).right_answer(
        GradingContext(run=run, models=experiments.queries)
    )
    site, head = best["site"], best["head"]
    found = f"{{site = '{site}', head = {head}}}"
    hides = f"click = 'cell'\nof = 'is_hidden'\nsite = '{SITE}'"
    counts = f"number = 'hidden'\nquery = 23\nsite = '{SITE}'"
    for old, new, hint, problem in (
        ("", "", "", "^$"),
        (CHECK, f"{CHECK}\nwithin = 1.0", "", "every answer is right"),
        ('tab = "attention"', 'picture = "none", colour = "red"', "", "a state takes .*colour"),
        ('model = "tiny"', 'model = "huge"', "", "model must be one of"),
        ("2. Look again.\n", "", "", "at least 2 hints"),
        (
            'site = "decoder.1.self", head = 1',
            f"site = '{site}', head = {head}",
            "",
            "answers it already",
        ),
        ("", "", f"1 = {found}", "^$"),
        ("", "", "1 = {site = 'decoder.1.self', head = 1}", "hint 1: First is "),
        (CHECK, hides, "1 = {cell = '2,3'}", "^$"),
        (CHECK, hides, "1 = {cell = '3,2'}", "The mask does not hide this"),
        (CHECK, counts, "2 = {read = 24}", "query 24 is selected; the "),
        (CHECK, counts, "2 = {cell = '5,1'}", "hint 2: query 25 is selected"),
        (CHECK, counts.replace("23", "22"), "2 = {read = 22}", "^query 23 is selected"),
        (CHECK, "number = 'tokens'", "1 = {read = 99}", "hint 1: read must be at most"),
    ):
        assert old in LESSON
        text = LESSON.replace(old, new) if old else LESSON
        if hint:
            text = text.replace("read = 3", "read = 23").replace(
                "[check]", f"hints.{hint}\n[check]"
            )
        first, last = verify(read_lesson(written(tmp_path, text))["en"], experiments)
        assert re.search(problem, first.problem), first.problem
        assert last.problem == ""
    with pytest.raises(ValueError, match=r"hint must be one of .*1.*2"):
        read_lesson(written(tmp_path, LESSON.replace("[check]", f"hints.3 = {found}\n[check]")))


@pytest.mark.slow
def test_every_bundled_lesson_works_in_every_language(capsys):
    assert check_folder(str(FOLDER), bundled_names()) == 0
    printed = capsys.readouterr().out
    assert "Every step can be held." in printed
    lessons = read_folder(FOLDER)
    assert set(lessons) == set(ORDER)
    for lesson in lessons.values():
        assert set(lesson) == {"en", "de", "es", "fr", "zh"}
        assert all(len(" ".join(one.explains).split()) <= 60 for one in lesson["en"].steps)


NUMBER = re.compile(r"\d+(?:\.\d+)?")
HEDGE = re.compile(
    r"\b(about|some|nearly|almost|less|little|few(er)?|mostly|hardly|part|roughly|often)\b"
)
ABSOLUTE = re.compile(r"\b(all|none|never|exactly|always|every|no|nothing|only|any|just)\b")
WORD = re.compile(r"[\w·.%]{3,}|\d")


def best(values: list[float]) -> list[int]:
    return [at for at, value in enumerate(values) if value == max(values)]


def in_sight(step: Step, options: Sequence[str]) -> list[int]:
    """The options with most words that the opened page and the step's text show."""
    text = " ".join([*step.says, step.guess, str(step.state.get("text", ""))]).lower()
    shown = set(WORD.findall(text))
    words = [WORD.findall(option.lower()) for option in options]
    return best([sum(word in shown for word in own) / max(1, len(own)) for own in words])


# What a pupil may pick without thinking: places, of which one is drawn.
STRATEGIES: dict[str, Callable[[Step, Sequence[str], bool], list[int]]] = {
    "first": lambda step, options, is_ordered: [0] if is_ordered else [*range(len(options))],
    "last": lambda step, options, is_ordered: (
        [len(options) - 1] if is_ordered else [*range(len(options))]
    ),
    "longest": lambda step, options, _: best([len(one.replace("*", "")) for one in options]),
    "shortest": lambda step, options, _: best([-len(one.replace("*", "")) for one in options]),
    "hedged": lambda step, options, _: best([bool(HEDGE.search(one)) for one in options]),
    "not absolute": lambda step, options, _: best([not ABSOLUTE.search(one) for one in options]),
    "in sight": lambda step, options, _: in_sight(step, options),
}


def own_steps() -> list[Step]:
    """The English steps of the course; those of the route are steps of other lessons."""
    lessons = (lesson["en"] for lesson in read_folder(FOLDER).values())
    return [step for lesson in lessons if not lesson.of_others for step in lesson.steps]


def test_no_strategy_guesses_more_than_38_percent():
    guesses = [step for step in own_steps() if step.guess]
    assert len(guesses) >= 54
    rates = {}
    for name, pick in STRATEGIES.items():
        right = 0.0
        for step in guesses:
            assert step.guessed, f"{step.title}: which guess is right?"
            picked = pick(step, step.guesses, step.ordered)
            right += (step.guessed - 1 in picked) / len(picked)
        rates[name] = right / len(guesses)
    assert max(rates.values()) <= 0.38, rates


@pytest.mark.slow
def test_no_fixed_answer_passes_the_course():
    """Choices by the strategies; heads and runs by head 5·0; numbers by the largest in sight."""
    service = Service([transformer.load(name) for name in bundled_names()], trainings=0)
    passed, asked = Counter[str](), Counter[str]()
    for step in own_steps():
        check, state = step.check, step.state
        if check is None:
            continue
        if check.kind == "run":
            off = [{"type": "ablate", "stack": "decoder", "layer": 5, "heads": [0]}]
            if state["model"] == "stories" and "text" in state:
                asked["5.0"] += 1
                altered = shown_by(service, {**state, "interventions": off})
                passed["5.0"] += check.grade(altered, {}).right
            continue
        shown = shown_by(service, state)
        if check.kind == "choose":
            option = check.right_answer(shown)["option"]
            for name, pick in STRATEGIES.items():
                asked[name] += 1
                picked = pick(step, step.options, check.is_ordered)
                passed[name] += (option in picked) / len(picked)
        elif check.kind == "number":
            asked["largest"] += 1
            text = " ".join([*step.says, step.task, *step.guesses])
            largest = max(map(float, NUMBER.findall(text)), default=0.0)
            passed["largest"] += check.grade(shown, {"number": largest}).right
    assert sum(asked.values()) >= 80
    rates = {name: passed[name] / n for name, n in asked.items()}
    assert max(rates.values()) <= 0.5, rates


def test_a_translation_of_a_changed_text_is_named(tmp_path):
    english = "# A\n\n```toml\nminutes = 1\n```\n\nAbout.\n\n## One\n\n```toml\n```\n\nOld text.\n"
    folder = written(tmp_path, english)
    written(
        tmp_path, '# A\n\nDavon.\n\n## Eins\n\n```toml\naim = "x"\n```\n\nText.\n', language="de"
    )
    assert [*behind(folder)] == []  # without stamps nothing is known
    put_stamps(folder, "de")
    assert [*behind(folder)] == []
    assert read_lesson(folder)["de"].steps[0].says == ["Text."]
    written(tmp_path, english.replace("Old", "New"))
    assert [*behind(folder)] == ["de: 1 says"]
    put_stamps(folder, "de")
    assert [*behind(folder)] == []
    for bundled in FOLDER.iterdir():
        if any(bundled.glob("*.md")):
            assert [*behind(bundled)] == []
            assert all(
                "made_from" in path.read_text("utf-8") for path in language_paths(bundled)[1:]
            )


def test_a_recorded_text_in_a_lesson_is_what_the_network_wrote():
    written = {one["step"]: one["text"] for one in json.loads(STORIES.read_text("utf-8"))}
    plain = {step: " ".join(text.split()) for step, text in written.items()}
    for lesson in read_folder(FOLDER)["learning"].values():
        stammers = lesson.steps[6]
        quoted = [one.partition(": ") for one in stammers.says if one[:1] == "*"]
        steps = {
            label[1]: step
            for label, _, text in quoted
            for step in plain
            if plain[step].startswith(text.removesuffix(" …"))
        }
        assert len(quoted) == len(steps) == 4, quoted
        orders = [[steps[label] for label in one.split(", ")] for one in stammers.guesses]
        assert orders.index(sorted(written)) + 1 == stammers.guessed


HOSTILE = "<img src=x onerror=alert(1)> &amp; \"' {title} </p><script>alert(1)</script> **<b>**"
ELEMENTS = {
    "a", "body", "dd", "dl", "dt", "em", "h1", "h2", "head", "html", "li", "meta", "p", "section",
    "span", "strong", "style", "title", "ul",
}  # fmt: skip


class Elements(HTMLParser):
    """The elements and attributes of a page, and its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names, self.attributes, self.text = set[str](), set[str](), ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_teachers_page_has_each_step_and_no_markup_of_a_lesson(tmp_path, monkeypatch):
    hostile = json.dumps(HOSTILE)
    notes = "".join(f"{name} = {hostile}\n" for name in ("aim", "misconception", "ask"))
    notes += 'minutes = 4\nwho = "projector"\n'
    name = 'a "b" <i> \''
    plan = f'{{for = "students", minutes = 9, leave_out = [1], add = [{json.dumps(name + ".1")}]}}'
    text = LESSON.replace("minutes = 3", f"minutes = 3\naim = {hostile}\nplans = [{plan}]")
    text = re.sub("state = .*", lambda _: f'{notes}state = {{tab = "masks"}}', text)
    text = re.sub(r"(?m)^(#+ |> |1\. )?(?=[A-Z])", lambda mark: f"{mark[0]}{HOSTILE} ", text)
    written(tmp_path, text, name, 'e"n')
    monkeypatch.setattr("transformer.lessons._LESSONS", dict(all_lessons()))
    add_lessons([tmp_path])
    inside, service = FastAPI(), Service([transformer.load("stories")], trainings=0)
    inside.include_router(teacher_routes(service))
    app = Guard().around(inside)

    lesson = all_lessons()["prediction"]
    bundled = aio.answer(app, "/lessons/prediction/teacher").text
    for number, step in enumerate(lesson["en"].steps, 1):
        assert f'"../../#lesson=prediction.{number}"' in bundled
        assert f"{number}. {step.title}" in Elements(bundled).text
        assert step.misconception in Elements(bundled).text
    french = aio.answer(app, "/lessons/prediction/teacher?__lang=fr").text
    assert "Idée fausse</dt><dd><p>Il va chercher des phrases" in french
    own = Elements(aio.answer(app, f"/lessons/{quote(name)}/teacher").text)
    assert own.names <= ELEMENTS
    assert own.attributes == {"charset", "class", "content", "href", "lang", "name"}
    assert own.text.count(HOSTILE.replace("**", "")) == 18
    assert own.text.count("9 minutes, second-year students: without ") == 1
    assert own.text.count("In all 8 minutes.") == 1  # two steps of 4: one left out, one added
    assert own.text.count("4 minutes, projector") == 2
    route = aio.answer(app, "/lessons/route/teacher").text
    assert '<li class="right">once ✓</li>' in route
    unknown = aio.answer(app, "/lessons/other/teacher")
    assert unknown.status_code == 404
    assert unknown.json()["detail"].startswith("lesson must be one of")


def test_a_teachers_plan_takes_about_the_minutes_that_it_is_for():
    for name, lesson in all_lessons().items():
        plans = {(plan.whom, plan.minutes): plan.total for plan in lesson["fr"].plans}
        assert all(abs(total - minutes) <= 2 for (_, minutes), total in plans.items()), name
        wanted = {(whom, minutes) for whom in ("pupils", "students") for minutes in (30, 60)}
        assert name == "opener" or wanted <= set(plans), name
        assert lesson["en"].class_minutes == sum(step.minutes for step in lesson["en"].steps)


@pytest.mark.slow
def test_the_lesson_of_the_documentation_works(tmp_path, capsys):
    folder = FOLDER.parents[2] / "docs" / "teaching"
    text = (folder / "writing.md").read_text(encoding="utf-8")
    written(tmp_path, text.split("````markdown\n")[1].split("````")[0], "names")
    assert check_folder(str(tmp_path), ["stories"]) == 0
    written(tmp_path, LESSON.replace('"tiny"', '"stories"').replace("r.1.self", "r.9.self"))
    assert check_folder(str(tmp_path), ["stories"]) == 1
    printed = capsys.readouterr().out
    assert "mine (3 minutes; en)" in printed
    assert "1 steps cannot be held." in printed
    text = (folder / "quantities.md").read_text(encoding="utf-8")
    for name, quantity in MEASURES.items():
        assert f"`{name}`" in text, "python names it, docs/teaching/quantities.md does not"
        assert all(f"`{argument}`" in text for argument in quantity.arguments)
