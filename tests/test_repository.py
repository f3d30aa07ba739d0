"""What a Space, a fresh clone and a reader rely on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import transformer

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 10_000_000  # bytes of one file that a Space takes without large-file storage


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout; this is a copy without one")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists()]


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def front_matter() -> dict[str, str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    head = re.match(r"---\n(.*?)\n---\n", text, flags=re.DOTALL)
    assert head is not None
    found = re.findall(r"^(\w+): (.+)$", head[1], flags=re.MULTILINE)
    return {name: value.strip('"') for name, value in found}


def test_the_spaces_front_matter_agrees_with_the_requirements():
    head = front_matter()
    assert head["sdk"] == "gradio"
    assert head["sdk_version"] == pins()["gradio"]
    assert (ROOT / head["app_file"]).is_file()
    assert head["python_version"] == "3.11"
    assert len(head["short_description"]) <= 60


def test_every_requirement_is_pinned_exactly():
    for name in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            assert not line or line.startswith(("#", "-r ")) or "==" in line, line


def test_no_tracked_file_is_too_large_for_a_space():
    assert not [path for path in tracked() if path.stat().st_size >= LARGEST]


def test_files_the_readme_links_to_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert links
    for link in links:
        assert link.startswith("http") or (ROOT / link).exists(), link


@pytest.mark.parametrize("name", transformer.bundled_names())
def test_every_bundled_model_loads_writes_and_has_a_card(name):
    model = transformer.load(name)
    for heading in ("## Data", "## Training", "## Scores", "## Limits"):
        assert heading in model.card
    run = model.generate("Once upon a time", max_new_tokens=8)
    assert len(run.steps) > 0
    weights = run.trace.weights("decoder", "self")
    assert weights.sum(-1).sub(1).abs().max() < 1e-5
