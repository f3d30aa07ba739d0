"""Upload the page to a Space of Hugging Face, which is created if it does not exist.

With --static the Space serves files alone, and the networks run in the visitors' browsers.

The hub accepts no binary file by `git push`; huggingface_hub sends them as it requires.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "build" / "static"
FILES = ("README.md", "LICENSE", "app.py", "requirements.txt")
# Only the files directly in a model's folder: a training keeps its state in a subfolder.
PATTERNS = ("transformer/**/*", "checkpoints/*/*")
# Folders whose files of an earlier version go.
REPLACED = {
    "gradio": ("transformer/", "checkpoints/"),
    "static": ("browser/", "models/", "server/", "words/"),
}


def files() -> list[str]:
    """The paths of the files that a Space needs: page, models, and pictures of README.md."""
    pictures = re.findall(r"!\[[^\]]*\]\(([^):]+)\)", (ROOT / "README.md").read_text("utf-8"))
    found = [path.relative_to(ROOT) for pattern in PATTERNS for path in ROOT.glob(pattern)]
    kept = [path for path in found if (ROOT / path).is_file() and "__pycache__" not in path.parts]
    return [*FILES, *pictures, *sorted(path.as_posix() for path in kept)]


def static_files(folder: Path = STATIC) -> dict[str, bytes | Path]:
    """Those of a Space without a server: what `make static` has written, and a README.md that says
    so. Raises ValueError where nothing has been written."""
    if not (folder / "index.html").is_file():
        raise ValueError(f"{folder} holds no page: run `make static` first")
    settings = (ROOT / "README.md").read_text("utf-8").split("\n---\n")[0].splitlines()
    of_server = ("sdk", "python_version", "app_file")
    kept = [line for line in settings if not line.startswith(of_server)]
    readme = "\n".join([*kept, "sdk: static", "---", ""])
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    pages = {path.relative_to(folder).as_posix(): path for path in paths}
    return {**pages, "LICENSE": ROOT / "LICENSE", "README.md": readme.encode()}


def upload(space: str, held: Mapping[str, bytes | Path], sdk: str) -> str:
    """Upload files, by their names there, to the Space, and return its address.

    In one commit, so that it is never built from half of them. Its other files stay, except in the
    folders that are REPLACED.
    """
    api = HfApi()
    made = api.create_repo(space, repo_type="space", space_sdk=sdk, exist_ok=True)
    there = api.list_repo_files(space, repo_type="space")
    old = {name for name in there if name.startswith(REPLACED[sdk])}
    api.create_commit(
        space,
        [
            *(CommitOperationDelete(name) for name in sorted(old - set(held))),
            *(CommitOperationAdd(name, content) for name, content in held.items()),
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
    parser.add_argument("--static", action="store_true", help="what `make static` has written")
    options = parser.parse_args()
    held: Mapping[str, bytes | Path]
    if options.static:
        try:
            held = static_files()
        except ValueError as error:
            sys.exit(str(error))
        sdk = "static"
    else:
        held = {name: ROOT / name for name in files()}
        sdk = "gradio"
    if options.space is None:
        sizes = [
            len(one) if isinstance(one, bytes) else one.stat().st_size for one in held.values()
        ]
        print(*held, f"{len(held)} files, {sum(sizes) / 1e6:.1f} MB", sep="\n")
        return
    if options.space.count("/") != 1:
        sys.exit(f"a Space is called OWNER/NAME; got {options.space!r}")
    if get_token() is None:
        sys.exit("the hub asks who you are: run `hf auth login`, or set HF_TOKEN to a write token")
    try:
        print(upload(options.space, held, sdk))
    except Exception as error:  # of many kinds: the network's, the hub's, the disk's
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        sys.exit(f"cannot upload to {options.space}: {first}")


if __name__ == "__main__":
    main()
