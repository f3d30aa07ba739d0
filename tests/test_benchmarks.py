"""The benchmarks: they compare what is equal, and docs/figures.md says what they measured."""

import json
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import psutil
import pytest
import torch
from kit import aio, serving
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import transformer
from benchmarks import generation, report, results
from benchmarks.load import load, tasks_for
from benchmarks.networks import QUICK_SHAPES

pytestmark = pytest.mark.slow


def test_the_figures_show_the_measurements():
    assert report.FIGURES.read_text(encoding="utf-8") == report.report(results.load())


def test_every_document_sums_up_the_figures_of_one_cpu():
    found = {
        name: part
        for name, cpus in results.load().items()
        for place, part in cpus.items()
        if " cores of AMD EPYC, family 26, model 2 (" in place
    }
    (run,) = (
        one
        for one in found["generation"]["runs"]
        if one["sizes"].startswith("12 x 12 x 768") and one["threads"] == 2
    )
    seconds = run["seconds"]
    ours, theirs = seconds[report.OURS], seconds["transformers, attention kept (eager)"]
    load, desk = found["load"], found["page"]["desk"]
    minutes = load["visitors"] * load["seconds"] / 60
    readme, deploy = (
        " ".join((results.ROOT / name).read_text(encoding="utf-8").split())
        for name in ("README.md", "deploy/README.md")
    )
    for figure in (
        f"{load['visitors']}: a text in {load['generation_median_s']:.2f} s, "
        f"a click in {1e3 * load['click_median_s']:.0f} ms (median)",
        f"{load['generations'] / minutes:.1f} texts of 40 tokens, "
        f"{load['clicks'] / minutes:.0f} clicks",
        f"{load['memory_end_bytes'] / 1e9:.2f} GB; at most",
    ):
        assert figure in deploy
    for figure in (
        f"takes {ours:.2f} s, in transformers {theirs:.2f} s",
        f"first picture after {desk['picture_s']:.2f} s",
        f"{load['visitors']} visitors at once wait {load['generation_median_s']:.2f} s for a text",
        f"{1e3 * load['click_median_s']:.0f} ms for a click (medians), with {load['faults']} fault",
    ):
        assert figure in readme


@pytest.mark.parametrize(
    ("shape", "known"), [("quick", generation.PEERS), ("quick-llama", generation.LLAMA_PEERS)]
)
def test_every_installed_tool_is_timed_and_the_others_are_named(shape, known):
    run = generation.measure(QUICK_SHAPES[shape], rounds=1)
    timed = [name for name in run["seconds"] if not name.startswith("ours")]
    assert sorted([*timed, *run["missing"]]) == sorted(known)
    assert {name for name in known if name.startswith("transformers,")} <= set(timed)
    assert all(seconds > 0 for seconds in run["seconds"].values())
    assert 0 < run["floor_s"] < run["step_s"]


def test_a_tool_with_other_tokens_or_attention_is_not_timed():
    ids, weights = [1, 2, 3], torch.full((1, 1, 3, 3), 1 / 3)
    same = generation.Task(run=lambda: (ids, weights[:, :, :2]), read=lambda result: result)
    tasks = {report.OURS: generation.Task(run=lambda: (ids, weights), read=lambda result: result)}
    assert generation.check_equal(tasks | {"same": same}) == {report.OURS: 0.0, "same": 0.0}
    for wrong in (([1, 2, 4], None), (ids, weights + 0.01)):
        task = generation.Task(run=lambda wrong=wrong: wrong, read=lambda result: result)
        with pytest.raises(SystemExit, match=r"wrong: .*ours"):
            generation.check_equal(tasks | {"wrong": task})


def peers() -> list[Requirement]:
    """What `make bench` installs in the peers' environment."""
    project = tomllib.loads((results.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [Requirement(pin) for pin in project["dependency-groups"]["peers"]]


def peers_environment(folder: Path) -> dict[str, str]:
    """The variables with which `python -S` can import what the peers' packages bring, as far as it
    is installed here, and nothing else."""
    wanted, brought = peers(), set()
    while wanted:
        name = canonicalize_name(wanted.pop().name)
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if name not in brought:
            brought.add(name)
            needed = map(Requirement, found.requires or ())
            wanted += [
                one for one in needed if not one.marker or one.marker.evaluate({"extra": ""})
            ]
            for top in {path.parts[0] for path in found.files or ()} - {"..", "__pycache__"}:
                if not (folder / top).exists():
                    (folder / top).symlink_to(found.locate_file(top))
    return {**os.environ, "PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"}


def test_the_peers_environment_has_all_that_its_process_imports(tmp_path):
    (tmp_path / "site").mkdir()
    environment = peers_environment(tmp_path / "site")
    out = tmp_path / "figures.json"
    command = [sys.executable, "-S", "-m", "benchmarks.generation", "--shape", "quick"]
    command += ["--threads", "1", "--rounds", "1", "--out", str(out)]
    done = subprocess.run(
        command, cwd=results.ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "transformers, no attention (sdpa)" in json.loads(out.read_text())["seconds"]


def test_the_peers_run_on_the_versions_that_are_tested():
    installed = {canonicalize_name(one.name): one.version for one in metadata.distributions()}
    both = [one for one in peers() if canonicalize_name(one.name) in installed]
    assert {"torch", "babel", "transformers"} <= {one.name for one in both}
    for one in both:
        assert installed[canonicalize_name(one.name)].partition("+")[0] in one.specifier, one


def test_visitors_at_once_each_get_what_they_get_alone():
    server = serving.running()
    tasks = tasks_for([transformer.load("stories"), server.translator], 6)
    report = aio.run(load(server.url, tasks, visitors=6, seconds=4, server=None))
    assert report.failures() == []
    figures = report.figures()
    assert figures["pages_opened"] == 6
    assert figures["generations"] >= 6
    assert figures["clicks"] >= 6
    assert psutil.Process(server.process.pid).memory_info().rss < 1_500_000_000


def test_a_mixed_up_result_is_a_fault():
    server = serving.running()
    one, other = tasks_for([transformer.load("stories")], 2)
    (mixed,) = [type(one)(chosen=one.chosen, alone=other.alone)]
    report = aio.run(load(server.url, [mixed], visitors=1, seconds=0.2, server=None))
    assert any("other tokens than alone" in fault for fault in report.failures())
