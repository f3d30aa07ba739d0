"""Writes requirements.lock and requirements-dev.lock: every package with its hashes (`make lock`).

Versions stay as they are where they still fit; without the files all become the newest. They hold
for Linux, macOS and Windows and for Python from 3.11 on: uv asks PyPI for all files of a version.
torch and its GPU libraries are not in them: each of its indexes has different builds
(PyPI's for Linux with CUDA, PyTorch's without), and the machine decides which one to use.
requirements.txt pins its version, and pip checks it against its index's hash.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = re.compile(r"^[a-z].*?(?=^[a-z#-]|\Z)", flags=re.MULTILINE | re.DOTALL)
BY_INDEX = ("torch==", "triton==", "cuda-", "nvidia-")
HEAD = """# Every package that {} brings, but torch, with the hashes of its files.
# Written by `make lock`; to be installed with --require-hashes --no-deps.
"""


def packages(requirements: str, known: str) -> list[str]:
    """Each package's version, condition and hashes, in the known versions where these still fit.

    requirements: a file's name. known: locks' texts.
    """
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "lock"
        lock.write_text("".join(PACKAGE.findall(known)), encoding="utf-8")
        command = [
            sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal",
            "--generate-hashes", "--python-version", "3.11", "--no-annotate", "--no-header",
            "--output-file", lock, requirements,
        ]  # fmt: skip
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        found = PACKAGE.findall(lock.read_text(encoding="utf-8"))
    return [one for one in found if not one.startswith(BY_INDEX)]


def main() -> None:
    """Write both; the second holds what the first does not."""
    first, second = ROOT / "requirements.lock", ROOT / "requirements-dev.lock"
    known = [one.read_text(encoding="utf-8") if one.exists() else "" for one in (first, second)]
    page = packages("requirements.txt", known[0])
    text = "".join(page)
    more = [one for one in packages("requirements-dev.txt", text + known[1]) if one not in page]
    first.write_text(HEAD.format("requirements.txt") + text, encoding="utf-8")
    head = HEAD.format("requirements-dev.txt") + "-r requirements.lock\n"
    second.write_text(head + "".join(more), encoding="utf-8")


if __name__ == "__main__":
    main()
