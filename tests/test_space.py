"""A Space: what it is given, that the page starts from it alone, and how it gets there."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
import serving

import transformer
from deploy.space import files

pytestmark = pytest.mark.slow

ROOT = serving.ROOT
SPACE = "someone/attention"
TOKEN = "hf_written_for_a_test"


def test_a_space_is_given_the_page_and_its_models_and_nothing_else() -> None:
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
    done = space()
    *listed, total = done.stdout.splitlines()
    size = sum((ROOT / name).stat().st_size for name in named)
    assert set(listed) == named
    assert total == f"{len(named)} files, {size / 1e6:.1f} MB"


def as_nobody() -> list[str]:
    """What starts a command as a user who owns nothing; empty where the tests are not root's."""
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


def test_the_page_starts_from_these_files_where_nothing_can_be_written(
    unwritable: Path, tmp_path: Path
) -> None:
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


class Hub(BaseHTTPRequestHandler):
    """What an upload asks of the hub. As there, a binary file must come by large-file storage."""

    made: ClassVar[list[dict[str, Any]]]
    held: ClassVar[dict[str, bytes]]  # the Space's files
    stored: ClassVar[dict[str, bytes]]  # large files by their hash
    commits: ClassVar[list[str]]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        assert self.path.startswith(f"/api/spaces/{SPACE}/tree/main")
        entries = [dict(type="file", path=name, oid="0" * 40, size=1) for name in self.held]
        self.answer(entries)

    def do_PUT(self) -> None:
        self.stored[self.path.removeprefix("/large/")] = self.body()
        self.answer({})

    def do_POST(self) -> None:
        body = self.body()
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.answer({"error": "Invalid user token."}, 401)
        elif self.path == "/api/repos/create":
            self.made.append(json.loads(body))
            self.answer({"url": f"{self.home()}/spaces/{SPACE}"}, 409 if self.commits else 200)
        elif self.path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif self.path == f"/api/spaces/{SPACE}/preupload/main":
            asked = json.loads(body)["files"]
            self.answer({"files": [self.mode(one) for one in asked]})
        elif self.path == f"/spaces/{SPACE}.git/info/lfs/objects/batch":
            asked = json.loads(body)["objects"]
            self.answer({"transfer": "basic", "objects": [self.action(one) for one in asked]})
        else:
            assert self.path == f"/api/spaces/{SPACE}/commit/main"
            self.commit([json.loads(line) for line in body.splitlines()])

    @staticmethod
    def mode(asked: dict[str, Any]) -> dict[str, Any]:
        binary = b"\0" in base64.b64decode(asked["sample"])
        mode = "lfs" if binary else "regular"
        return {"path": asked["path"], "uploadMode": mode, "shouldIgnore": False}

    def action(self, asked: dict[str, Any]) -> dict[str, Any]:
        upload = {"href": f"{self.home()}/large/{asked['oid']}"}
        return asked | {"actions": {"upload": upload}}

    def commit(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                self.commits.append(value["summary"])
            elif line["key"] == "deletedFile":
                del self.held[value["path"]]
            elif line["key"] == "lfsFile":
                self.held[value["path"]] = self.stored[value["oid"]]
                assert hashlib.sha256(self.stored[value["oid"]]).hexdigest() == value["oid"]
            else:
                self.held[value["path"]] = base64.b64decode(value["content"])
                assert b"\0" not in self.held[value["path"]], value["path"]
        self.answer({"commitUrl": f"{self.home()}/spaces/{SPACE}/commit/1", "commitOid": "1"})

    def home(self) -> str:
        return f"http://{self.headers['Host']}"

    def body(self) -> bytes:
        if self.headers["Transfer-Encoding"] != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"] or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def answer(self, content: Any, status: int = 200) -> None:
        told = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)


@pytest.fixture
def hub() -> Iterator[str]:
    """The address of an empty hub on this machine."""
    Hub.made, Hub.held, Hub.stored, Hub.commits = [], {}, {}, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def space(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command, ended."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return subprocess.run(
        [sys.executable, "deploy/space.py", *arguments],
        # Large files go to a server of another kind, which takes their chunks; here in one piece.
        cwd=ROOT, env=kept | {"HF_HUB_DISABLE_XET": "1", "HF_HOME": "/nowhere"} | environment,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_every_file_arrives_as_it_is_in_one_commit(hub: str) -> None:
    """First in a Space that is made for it, then in one where other files are."""
    expected = {name: (ROOT / name).read_bytes() for name in files()}
    done = space(SPACE, HF_ENDPOINT=hub, HF_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{hub}/spaces/{SPACE}\n"
    made = {"name": "attention", "organization": "someone", "type": "space", "sdk": "gradio"}
    assert Hub.made == [made]
    assert Hub.held == expected
    assert len(Hub.stored) == len([name for name in expected if b"\0" in expected[name]])
    own = {".gitattributes": b"*.safetensors filter=lfs\n", "notes.md": b"ours\n"}
    Hub.held |= own | {"transformer/gone.py": b"", "checkpoints/old/config.json": b"{}"}
    again = space(SPACE, HF_ENDPOINT=hub, HF_TOKEN=TOKEN)
    assert again.returncode == 0, again.stderr
    assert Hub.held == expected | own
    assert len(Hub.commits) == 2


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        ([SPACE], {}, "the hub asks who you are: run `hf auth login`, or set HF_TOKEN to a write"),
        (["attention"], {"HF_TOKEN": TOKEN}, "a Space is called OWNER/NAME; got 'attention'"),
        (["a b/c"], {"HF_TOKEN": TOKEN}, "cannot upload to a b/c: "),
        ([SPACE], {"HF_TOKEN": "hf_other"}, f"cannot upload to {SPACE}: "),
        (
            [SPACE],
            {"HF_TOKEN": TOKEN, "HF_ENDPOINT": "http://127.0.0.1:9"},
            f"cannot upload to {SPACE}: ",
        ),
    ],
)
def test_what_keeps_an_upload_from_succeeding_is_told_in_one_sentence(
    hub: str, arguments: list[str], environment: dict[str, str], sentence: str
) -> None:
    done = space(*arguments, **({"HF_ENDPOINT": hub} | environment))
    assert done.returncode == 1
    assert done.stderr.startswith(sentence)
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not Hub.held
