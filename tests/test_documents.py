"""README and the documents: their Python runs, and their links lead somewhere."""

import asyncio
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from kit import own_view, prefork, serving
from kit.documents import DOCUMENTS, ROOT, document_name

from tools.pictures import PICTURES

pytestmark = pytest.mark.slow

ONLINE = "# Needs the internet"  # how a block begins that is not run here
# Each answers one question; not the README, nor what only lists.
ENGLISH = [
    path
    for path in (*DOCUMENTS, *ROOT.glob("transformer/*/README.md"))
    if not re.search(r"^(docs/)?README|CHANGELOG\.md$|reference/", document_name(path))
]
PAGE = "http://127.0.0.1:7860"


def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def prose(document: Path) -> str:
    """A document without what its fences hold."""
    return re.sub(r"^(`{3,}).*?^\1$", "", text_of(document), flags=re.MULTILINE | re.DOTALL)


def blocks(document: Path) -> list[str]:
    """Its Python blocks, each at its own line number."""
    text = text_of(document)
    found = re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return ["\n" * text[: one.start(1)].count("\n") + one[1] for one in found]


def run(document: Path) -> dict[str, Any]:
    """Run its blocks one after the other; what they have named."""
    named: dict[str, Any] = {}
    for block in blocks(document):
        code = compile(block, document_name(document), "exec")
        if not block.lstrip().startswith(ONLINE):
            exec(code, named)
    return named


WITH_PYTHON = [one for one in DOCUMENTS if blocks(one)]


@pytest.mark.parametrize("document", WITH_PYTHON, ids=document_name)
def test_the_python_of_a_document_runs_as_it_stands(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if PAGE in text_of(document):
        import gradio_client

        url, connect = serving.bundled().url.rstrip("/"), gradio_client.Client
        monkeypatch.setattr(
            gradio_client, "Client", lambda address: connect(address.replace(PAGE, url))
        )
    loops: list[asyncio.AbstractEventLoop] = []
    begin = asyncio.new_event_loop
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: loops.append(begin()) or loops[-1])
    named = run(document)
    for loop in loops:  # Gradio leaves those open that it makes for a page's locks
        loop.close()
    if "steps" in named:  # docs/training/small.md trains a network
        assert named["step"].accuracy >= 0.97
        assert named["model"].generate("kfbdhqk", max_new_tokens=5).text == "kfbdhqkfbdhq"


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives a document's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(document), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def links(document: Path) -> list[tuple[Path, str]]:
    """Where its relative links lead: a file and an anchor, which may be empty."""
    found = re.findall(r"\]\(([^)\s]+)\)", prose(document))
    parts = [one.partition("#") for one in found if not re.match(r"[a-z]+:", one)]
    return [
        ((document.parent / path).resolve() if path else document, anchor)
        for path, _, anchor in parts
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=document_name)
def test_every_link_of_a_document_has_a_target(document):
    for path, anchor in links(document):
        assert path.exists(), path
        assert not anchor or anchor in anchors(path), (path, anchor)


@pytest.mark.parametrize("document", ENGLISH, ids=document_name)
def test_a_document_says_at_once_for_whom_it_is_and_is_short(document):
    title, purpose = [line for line in text_of(document).splitlines() if line][:2]
    assert title.startswith("# ")
    assert re.match(r"For [a-z]", purpose), "say in the first line for whom and what for"
    assert len(text_of(document).splitlines()) <= 200


def test_every_picture_is_one_that_the_command_takes_and_is_small():
    shown = {
        document_name((path.parent / link).resolve())
        for path in DOCUMENTS
        for link in re.findall(r"!\[[^\]]+\]\(([^):]+)\)", prose(path))
    }
    assert shown == PICTURES.keys()
    assert {document_name(path) for path in ROOT.glob("docs/**/*.png")} == shown
    assert max((ROOT / name).stat().st_size for name in shown) < 64_000


def test_every_document_can_be_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += [path for path, _ in links(one) if path in DOCUMENTS]
    assert reached == set(DOCUMENTS)


def test_the_views_of_the_document_fit_into_the_package(tmp_path):
    """As they are, they pass what every view of the package passes."""
    for name in ("transformer", "tests", "benchmarks", "checkpoints", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name)  # compiled files, too
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    own_view.put_into(tmp_path / "transformer")

    checked = prefork.run([sys.executable, "-m", "transformer.messages", "check"], cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tests = ("views/test_sweep.py", "messages/test_catalogues.py", "test_imports.py")
    theirs = "label_lengths or first_letters or fits_it or imports"
    forked = ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    command = [sys.executable, "-m", "pytest", "-q", *forked, "-k", theirs]
    command += [f"tests/{name}" for name in tests]
    tried = prefork.run(command, cwd=tmp_path, timeout=300)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "first_letters" not in tried.stdout
    assert int(re.search(r"(\d+) passed", tried.stdout)[1]) >= 11, tried.stdout
