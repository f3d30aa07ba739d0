"""Upload the page to a Space of Hugging Face, which is created if it does not exist.

The hub accepts no binary file by `git push`; huggingface_hub sends them as it requires.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token

ROOT = Path(__file__).resolve().parent.parent
FILES = ("README.md", "LICENSE", "app.py", "requirements.txt")
# Only the files directly in a model's folder: a training keeps its state in a subfolder.
PATTERNS = ("transformer/**/*", "checkpoints/*/*")


def files() -> list[str]:
    """The paths of the files that a Space needs: page, models, and pictures of README.md."""
    pictures = re.findall(r"!\[[^\]]*\]\(([^):]+)\)", (ROOT / "README.md").read_text("utf-8"))
    found = [path.relative_to(ROOT) for pattern in PATTERNS for path in ROOT.glob(pattern)]
    kept = [path for path in found if (ROOT / path).is_file() and "__pycache__" not in path.parts]
    return [*FILES, *pictures, *sorted(path.as_posix() for path in kept)]


def upload(space: str) -> str:
    """Upload the files to the Space, and return its address.

    In one commit, so that it is never built from half of them. Its other files stay, except in the
    folders of the package and of the models.
    """
    api, names = HfApi(), files()
    made = api.create_repo(space, repo_type="space", space_sdk="gradio", exist_ok=True)
    there = api.list_repo_files(space, repo_type="space")
    old = {name for name in there if name.startswith(("transformer/", "checkpoints/"))}
    api.create_commit(
        space,
        [
            *(CommitOperationDelete(name) for name in sorted(old - set(names))),
            *(CommitOperationAdd(name, ROOT / name) for name in names),
        ],
        commit_message="Update the page",
        repo_type="space",
    )
    return str(made)


def main() -> None:
    """Upload, or list what would be."""
    parser = argparse.ArgumentParser(prog="python deploy/space.py", description=__doc__)
    parser.add_argument(
        "space", nargs="?", metavar="OWNER/NAME", help="default: only list what it would hold"
    )
    space = parser.parse_args().space
    if space is None:
        names = files()
        size = sum((ROOT / name).stat().st_size for name in names)
        print(*names, f"{len(names)} files, {size / 1e6:.1f} MB", sep="\n")
        return
    if space.count("/") != 1:
        sys.exit(f"a Space is called OWNER/NAME; got {space!r}")
    if get_token() is None:
        sys.exit("the hub asks who you are: run `hf auth login`, or set HF_TOKEN to a write token")
    try:
        print(upload(space))
    except Exception as error:  # of many kinds: the network's, the hub's, the disk's
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        sys.exit(f"cannot upload to {space}: {first}")


if __name__ == "__main__":
    main()
