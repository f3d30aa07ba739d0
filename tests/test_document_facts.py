"""What documents repeat of the code: limits, names, presets, scores and packages."""

import re
import tomllib
from pathlib import Path

import pytest

import transformer
from transformer.checkpoint.adapters.families import FAMILIES
from transformer.lessons import all_lessons
from transformer.server.http import limits
from transformer.server.kept.service import Service
from transformer.server.programs.api import endpoints_of

ROOT = Path(__file__).resolve().parent.parent
LIMIT = {name: row["limit"] for name, row in limits.table().items()}
# Where a document says a limit in a sentence, as the site's table of all cannot.
SENTENCES = {
    "deploy/README.md": (
        "a request's headers within ten seconds" if LIMIT["header_seconds"] == 10 else "",
        f"accepts no data for {LIMIT['client_seconds']} s",
        f"take at most {LIMIT['unread_bytes'] / 1e6:.0f} MB together",
        f"at most {LIMIT['connections']} connections",
        f"{limits.of_one_address(limits.MAX_CONNECTIONS)} of them may come from one address",
    ),
    "docs/library/server.md": (
        f"of more than {LIMIT['listed']:,} numbers",
        "kept for a minute" if LIMIT["left_age"] == 60 else "",
    ),
    "docs/page/learn.md": (
        "one network at a time" if LIMIT["trainings"] == 1 else "",
        f"for {LIMIT['training_seconds']:.0f} s at most",
        "an hour after your last question" if LIMIT["learned_age"] == 3600 else "",
    ),
    "docs/serving/limits.md": (f"takes at most {LIMIT['kept_bytes'] / 1e6:.0f} MB more",),
    "docs/serving/privacy.md": (
        "deleted a minute after their visitor leaves" if LIMIT["left_age"] == 60 else "",
        "otherwise ten minutes after" if LIMIT["run_age"] == 600 else "",
    ),
    "docs/teaching/class.md": (
        "for two hours" if LIMIT["class_age"] == 7200 else "",
        f"at most {LIMIT['class_phones']} phones, and a server {LIMIT['classes']} classes, "
        f"at most {limits.of_one_address(limits.MAX_CLASSES)} of them from one address",
    ),
}


def words(name: str) -> str:
    """A document in one line."""
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def first_cells(name: str) -> set[str]:
    """What the rows of a document's tables begin with, each name alone."""
    text = (ROOT / name).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+) \|.*\n(?!\| ---)", text, re.MULTILINE)
    return {cell for row in rows for cell in re.findall(r"`([^`]+)`", row)}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_sentence_of_a_document_says_the_limit_that_holds(name):
    text = words(name)
    assert [sentence for sentence in SENTENCES[name] if not sentence or sentence not in text] == []


def test_every_endpoint_is_in_the_guide_and_no_other():
    service = Service([transformer.load("fill-in")], trainings=0)
    assert first_cells("docs/library/server.md") == {f"/{name}" for name in endpoints_of(service)}


def test_every_preset_is_in_the_guide_and_no_other():
    assert first_cells("docs/library/build.md") == transformer.PRESETS.keys()


def test_every_family_that_is_read_is_in_the_guide_and_no_other():
    assert first_cells("docs/your-model.md") == FAMILIES.keys()


def test_every_recipe_of_a_training_is_named():
    text = "".join(words(f"docs/training/{name}.md") for name in ("index", "translator"))
    names = {path.stem for path in (ROOT / "transformer/training/recipes").glob("*.toml")}
    assert {name for name in names if f"`{name}`" not in text} == set()


def test_every_dependency_has_its_reason():
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras = project["optional-dependencies"]
    of_extras = {line for name, lines in extras.items() if name != "test" for line in lines}
    packages = {re.split(r"[\[<>=]", line)[0] for line in (*project["dependencies"], *of_extras)}
    text = (ROOT / "docs/how/dependencies.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    named = set(re.findall(r"`([\w-]+)`", rows)) - extras.keys()
    assert named | {"ray", "mcp"} == packages  # two are called as their extras are


@pytest.mark.parametrize("name", ["README.md", "docs/training/scores.md"])
def test_a_documents_scores_are_those_of_the_checkpoints(name):
    models = {model: transformer.load(model) for model in transformer.bundled_names()}
    stories, text = models["stories"].metadata["scores"]["valid"], words(name)
    assert f"perplexity {stories['perplexity']:.2f}" in text
    assert f"{stories['bits_per_byte']:.3f} bits per byte" in text
    (beams,) = re.findall(r"^\| beam 4 .*$", models["translate-en-fr"].card, re.MULTILINE)
    bleu, chrf = map(float, re.findall(r"\d+\.\d+", beams)[:2])
    assert f"BLEU {bleu:.1f}, chrF {chrf:.1f}" in text


def test_the_table_of_45_minutes_is_that_of_the_lessons_own_steps():
    opener, opener_2, *steps = all_lessons()["route"]["en"].steps
    who = {"pairs": "pairs", "projector": "projector", "everybody": "each alone"}
    rows = [(opener.minutes + opener_2.minutes, "projector")]
    rows += [(step.minutes, who[step.who] + ", phones" * step.phones) for step in steps]
    text = (ROOT / "docs/teaching/forty-five-minutes.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", text, re.MULTILINE)
    assert [(int(minutes), people) for minutes, people in table] == rows
    assert sum(minutes for minutes, _ in rows) == 45
