"""The figures of all benchmarks: by part, then by the CPU they are of.

A benchmark adds its figures to MEASURED, which is not in the repository. `python -m
benchmarks.report --save` moves them into PUBLISHED, which is.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks import ROOT

SAMPLE_S = 2.0  # of rest after a benchmark, to see what else the machine does
MEASURED = ROOT / "build" / "benchmarks.json"
PUBLISHED = ROOT / "benchmarks" / "results.json"
INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "neon", "asimd")
OF_A_RUN = ("date", "others_share", "spincount", "versions")  # else those of the part
_HELD = "ATEN_CPU_CAPABILITY"  # PyTorch's own name for what its kernels may use
LIBRARIES = ("torch", "numpy", "gradio", "plotly", "tokenizers")


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Let a benchmark's command line choose the file for its figures."""
    default = MEASURED.relative_to(ROOT)
    parser.add_argument(
        "--json", type=Path, default=MEASURED, help=f"where figures go; default {default}"
    )


def add(part: str, figures: dict[str, Any], path: Path) -> None:
    """Put a part's figures into a file, see `merged`."""
    about: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "others_share": psutil.cpu_percent(SAMPLE_S) / 100,
    }
    added = {part: {place_of(about["machine"]): _rounded(about | figures)}}
    save(merged(load(path), added), path)


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Both; of a part measured twice on one CPU the new figures, and old runs of a shape or with a
    number of threads that the new ones lack. Each run keeps when and with what it was measured.
    """
    both = {part: dict(by_cpu) for part, by_cpu in old.items()}
    for part, by_cpu in new.items():
        places = both.setdefault(part, {})
        for place, figures in by_cpu.items():
            runs = [*_runs(places.get(place, {})), *_runs(figures)]
            latest = {(run["shape"], run["threads"]): run for run in runs}
            places[place] = figures | ({"runs": [*latest.values()]} if latest else {})
    return both


def _runs(figures: dict[str, Any]) -> list[dict[str, Any]]:
    about = {name: figures[name] for name in OF_A_RUN if name in figures}
    return [about | run for run in figures.get("runs", [])]


def save(figures: dict[str, Any], path: Path) -> None:
    """Write them to a file; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    """Round every float to four digits, which is more than a measurement supports."""
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def load(path: Path) -> dict[str, Any]:
    """All parts, by name, the figures of each CPU by its name; none where there is no file."""
    if not path.is_file():
        return {}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def machine() -> dict[str, Any]:
    """What the figures were measured on, and with."""
    usable = [name for name in INSTRUCTIONS if name in _cpu_lines("flags", "Features")]
    held = os.environ.get(_HELD) == "avx2"
    return {
        "cpu": cpu_name(),
        "model": f"{cpu_model()}, held to AVX2".removeprefix(", ") if held else cpu_model(),
        "cores": os.cpu_count(),
        "instructions": [name for name in usable if name == "avx2" or not held],
        "python": platform.python_version(),
        "versions": versions(*LIBRARIES),
    }


def held_to_avx2() -> dict[str, str]:
    """Environment in which PyTorch, its libraries and our compiled step use no AVX-512."""
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), "cc")
    return {
        _HELD: "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "CC": f"{compiler} -mno-avx512f",
    }


def place_of(machine: dict[str, Any]) -> str:
    """What tells one machine's figures from another's."""
    model = f", {machine['model']}" if machine.get("model") else ""
    instructions = ", ".join(machine["instructions"])
    return f"{machine['cores']} cores of {machine['cpu']}{model} ({instructions})"


def versions(*names: str, python: str = sys.executable) -> dict[str, str]:
    """Of those of these libraries that a Python has, which may be another environment's."""
    code = "from importlib.metadata import distributions as all; "
    code += "print({one.name: one.version for one in all()})"
    told = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout
    found = ast.literal_eval(told)
    return {name: found[name] for name in names if name in found}


def cpu_name() -> str:
    """As the system calls it."""
    names = _cpu_lines("model name")
    return " ".join(names) or platform.processor() or platform.machine()


def cpu_model() -> str:
    """What tells CPUs of one name apart, where the system says it."""
    family, model = (" ".join(_cpu_lines(key)) for key in ("cpu family", "model"))
    return f"family {family}, model {model}" if family and model else ""


def _cpu_lines(*keys: str) -> list[str]:
    """The words of the first line of Linux's list of processors that begins with a key."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in keys:
            return value.split()
    return []
