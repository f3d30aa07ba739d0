"""What all commands share: the name that they were started by, `--version`, and how they refuse."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

__version__ = "0.1.0"


def program() -> str:
    """The command as it can be typed again: "transformer-page", "python -m transformer.training"
    or "python app.py"."""
    spec = sys.modules["__main__"].__spec__
    if spec is not None:
        return f"python -m {spec.name.removesuffix('.__main__')}"
    path = Path(sys.argv[0])
    return f"python {path}" if path.suffix == ".py" else path.name


class Parser(argparse.ArgumentParser):
    """argparse's, under the name of `program`; a mistake is one sentence and exit status 2."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"prog": program(), **settings})
        self.add_argument("--version", action="version", version=f"%(prog)s {__version__}")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")
