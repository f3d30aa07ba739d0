"""A Space: what it is given, that the page starts from it alone, and how it gets there."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import httpx
import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from kit import serving

import transformer
from deploy import space
from deploy.space import files

pytestmark = pytest.mark.slow

ROOT = serving.ROOT
SPACE = "someone/attention"
GONE = ("checkpoints/old/config.json", "transformer/gone.py")  # files of an earlier version


def test_a_space_is_given_the_page_and_its_models_and_nothing_else(monkeypatch, capsys):
    """None of the tests and figures; of the package all that is tracked."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout; this is a copy without one")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    parts = ("transformer/", "checkpoints/")
    named = set(files())
    assert len(named) == len(files())
    assert named <= set(tracked.splitlines())
    assert {name for name in named if name.startswith(parts)} == {
        name for name in tracked.splitlines() if name.startswith(parts)
    }
    others = {name for name in named if not name.startswith(parts)}
    assert {"app.py", "requirements.txt", "README.md", "LICENSE", "docs/screenshot.png"} <= others
    assert all(name.endswith(".png") for name in others if "/" in name)
    commanded(monkeypatch)
    *listed, total = capsys.readouterr().out.splitlines()
    size = sum((ROOT / name).stat().st_size for name in named)
    assert set(listed) == named
    assert total == f"{len(named)} files, {size / 1e6:.1f} MB"


def as_nobody() -> list[str]:
    """A command prefix that runs it as an unprivileged user; empty unless tests run as root."""
    if os.geteuid() != 0:
        return []
    above = [*Path(sys.executable).resolve().parents, *Path(sys.prefix).parents]
    closed = any(not folder.stat().st_mode & stat.S_IXOTH for folder in above)
    kept = "-all,+dac_read_search" if closed else "-all"  # it may read root's Python, no more
    capabilities = [f"--{kind}={kept}" for kind in ("bounding-set", "inh-caps", "ambient-caps")]
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *capabilities]


@pytest.fixture
def unwritable() -> Iterator[Path]:
    """A folder with a Space's files and an empty home, which their reader cannot change."""
    folder = Path(tempfile.mkdtemp(prefix="transformer-space-"))
    for name in files():
        (folder / "app" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / "app" / name)
    (folder / "home").mkdir()
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    yield folder
    for path in folders:
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_the_page_starts_from_these_files_where_nothing_can_be_written(unwritable, tmp_path):
    """As a Space starts it, by a user who owns nothing."""
    port, log = serving.free_port(), tmp_path / "log"
    env = {
        "PATH": os.environ["PATH"], "HOME": str(unwritable / "home"), "SPACE_ID": SPACE,
        "GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    command = [*as_nobody(), sys.executable, "app.py"]
    with log.open("w") as file:
        process: Any = subprocess.Popen(
            command, cwd=unwritable / "app", env=env, stdout=file, stderr=file
        )
    try:
        url = f"http://127.0.0.1:{port}/"
        serving.wait(f"{url}health", process, log)
        health = httpx.get(f"{url}health").json()
        assert health["status"] == "ok"
        assert health["models"] == transformer.bundled_names()
        page = httpx.get(url)
        assert page.status_code == 200
        assert "Transformer, seen from inside" in page.text
        assert "Traceback" not in log.read_text()
    finally:
        serving.stop(process)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The hub's client, called as it can be called: it makes the Space and holds other files."""
    api = create_autospec(HfApi, instance=True)
    api.create_repo.return_value = f"https://hub.example/spaces/{SPACE}"
    api.list_repo_files.return_value = [*GONE, "notes.md", "app.py", "transformer/__init__.py"]
    monkeypatch.setattr(space, "HfApi", lambda: api)
    monkeypatch.setattr(space, "get_token", lambda: "hf_written_for_a_test")
    return api


def commanded(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["deploy/space.py", *arguments])
    space.main()


def test_every_file_arrives_as_it_is_in_one_commit(hub, monkeypatch, capsys):
    """And what is the Space's own stays, but in the folders of the page and its models."""
    commanded(monkeypatch, SPACE)
    assert capsys.readouterr().out == f"https://hub.example/spaces/{SPACE}\n"
    made = {"repo_type": "space", "space_sdk": "gradio", "exist_ok": True}
    hub.create_repo.assert_called_once_with(SPACE, **made)
    hub.create_commit.assert_called_once()
    (name, operations), settings = hub.create_commit.call_args
    assert (name, settings["repo_type"]) == (SPACE, "space")
    added = [one for one in operations if isinstance(one, CommitOperationAdd)]
    assert [one.path_in_repo for one in added] == files()
    assert all(one.path_or_fileobj == str(ROOT / one.path_in_repo) for one in added)
    others = {one.path_in_repo for one in operations if isinstance(one, CommitOperationDelete)}
    assert others == set(GONE)
