"""Shared by all commands: the program's name, `--version`, output and error messages."""

from __future__ import annotations

import argparse
import io
import os
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


class Output(io.TextIOWrapper):
    """Standard output or error that takes any character, whatever its encoding.

    Once nothing can be written (a full disk), a command ends with a sentence, and a server, for
    which `needed` is false, goes on without.
    """

    needed = True

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._fail(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if self.needed and isinstance(error, BrokenPipeError):  # the reader, such as `head`, ended
            raise error
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # for what is still to be flushed
        if self.needed:
            sys.exit(f"{program()}: cannot write the output: {error.strerror}")


def prepare_output(needed: bool) -> None:
    """Replace standard output and error by an Output; a closed one becomes the null device, or
    ends a command that needs it."""
    for name in ("stdout",) if needed else ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None and needed:
            sys.exit(f"{program()}: cannot write the output: it is closed")
        elif stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif stream is getattr(sys, f"__{name}__"):
            output = Output(stream.buffer, stream.encoding, "backslashreplace", line_buffering=True)
            output.needed = needed
            setattr(sys, name, output)


class Parser(argparse.ArgumentParser):
    """argparse's, under the name of `program`; a mistake is one sentence and exit status 2.

    needs_output: whether the command has failed if its output cannot be written.
    """

    def __init__(self, *, needs_output: bool = True, **settings: Any) -> None:
        prepare_output(needs_output)
        super().__init__(**{"prog": program(), **settings})
        self.add_argument("--version", action="version", version=f"%(prog)s {__version__}")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")
