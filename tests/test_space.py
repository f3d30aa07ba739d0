"""A Space: what it is given, that the page starts from it alone, and how it gets there."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import httpx
import psutil
import pytest
from gradio_client import Client
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from kit import aio, serving

import transformer
from deploy import space
from deploy.space import files
from transformer.server.kept.store import KINDS

pytestmark = pytest.mark.slow

ROOT = serving.ROOT
# Limits of a Space: processor time to start, and memory with all bundled models.
MOST_SECONDS, MOST_BYTES = 60, 1.5e9
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
    """A folder with a Space's files and an empty home, which their reader cannot change, and an
    empty folder for temporary files."""
    folder = Path(tempfile.mkdtemp(prefix="transformer-space-"))
    for name in files():
        (folder / "app" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / "app" / name)
    (folder / "home").mkdir()
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    (folder / "temporary").mkdir()
    (folder / "temporary").chmod(0o777)
    for path in folders:
        path.chmod(0o555)
    yield folder
    for path in folders:
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_a_space_starts_within_its_limits_and_cleans_up(unwritable, tmp_path):
    """Of these files, where it can write into one folder alone, by a user who owns nothing; it is
    interrupted while it generates. Ended by SIGTERM: server/test_process.py."""
    port, log, names = serving.free_port(), tmp_path / "log", transformer.bundled_names()
    env = {
        "PATH": os.environ["PATH"], "HOME": str(unwritable / "home"), "SPACE_ID": SPACE,
        "TMPDIR": str(unwritable / "temporary"), "OMP_NUM_THREADS": "1",
        "GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port),
    }  # fmt: skip
    command = [*as_nobody(), sys.executable, "app.py"]

    def left() -> list[str]:
        """What it has written, but for PyTorch's own."""
        written = [path.name for path in (unwritable / "temporary").iterdir()]
        return [name for name in written if not name.startswith("torchinductor_")]

    with log.open("w") as file:
        process: Any = subprocess.Popen(
            command, cwd=unwritable / "app", env=env, stdout=file, stderr=file
        )
    try:
        url = f"http://127.0.0.1:{port}/"
        serving.wait(url, process, log)
        used = psutil.Process(process.pid)
        assert used.cpu_times().user + used.cpu_times().system < MOST_SECONDS
        assert {name[:12] for name in left()} == {"transformer-"}
        page = httpx.get(url)
        assert page.status_code == 200
        assert "Transformer, seen from inside" in page.text
        client = Client(url, verbose=False, analytics_enabled=False)
        filled = client.predict("Once upon a [MASK].", model="fill-in", api_name="/fill")
        assert filled["text"] == "Once upon a time."
        for model in ("stories", "translate-en-fr"):
            for seed in range(3):
                data = {"model": model, "max_new_tokens": 60, "temperature": 0.8, "seed": seed}
                client.predict("Once upon a time", **data, api_name="/generate")
        client.close()
        assert used.memory_info().rss < MOST_BYTES
        with httpx.Client(base_url=url, timeout=60) as caller, ExitStack() as reading:
            health = caller.get("health").json()
            assert (health["status"], health["models"]) == ("ok", names)
            assert list(health["weight_bytes"]) == names
            assert sum(health["weight_bytes"].values()) < health["memory_bytes"] < MOST_BYTES
            assert set(health["kept"]) == set(KINDS)
            assert health["kept"]["runs"]["count"] > 0
            assert health["kept_bytes"] == sum(one["bytes"] for one in health["kept"].values()) > 0
            data = ["Once upon a time", "stories", 200, *[None] * 4, 1, 1, 1.0, None, None]
            for _ in range(6):  # a text begins when its answer is read
                called = caller.post("gradio_api/call/generate", json={"data": data}).json()
                event = f"gradio_api/call/generate/{called['event_id']}"
                reading.enter_context(caller.stream("GET", event))
            aio.wait_until(lambda: caller.get("health").json()["running"])
            process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        assert left() == []
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
