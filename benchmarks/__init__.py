"""Measurements, each a module to be run: python -m benchmarks.page."""

from __future__ import annotations

import argparse
from importlib.machinery import ModuleSpec


def command_line(module: ModuleSpec | None, description: str | None) -> argparse.ArgumentParser:
    """An empty command line, named as the module is run. module: its `__spec__`."""
    assert module is not None
    return argparse.ArgumentParser(
        prog=f"python -m {module.name.removesuffix('.__main__')}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
