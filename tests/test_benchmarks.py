"""The benchmarks: they compare what is equal, and docs/figures/ says what they measured."""

import subprocess
import sys
from collections import Counter

import psutil
import pytest
import torch
from kit import aio, serving

import transformer
from benchmarks import generation, report, results
from benchmarks.load import load, tasks_for
from benchmarks.networks import QUICK_SHAPES

pytestmark = pytest.mark.slow


def test_the_figures_show_the_measurements():
    written = {path.name: path.read_text("utf-8") for path in report.FIGURES.glob("*.md")}
    assert written == report.pages(results.load(results.PUBLISHED))


def test_a_measurement_changes_no_file_of_the_repository():
    if not (results.ROOT / ".git").exists():
        pytest.skip("not a clone")
    ignored = ["git", "check-ignore", "-q", str(results.MEASURED)]
    assert subprocess.run(ignored, cwd=results.ROOT, check=False).returncode == 0


def test_published_figures_keep_other_cpus_and_earlier_shapes(tmp_path, monkeypatch):
    figures, *_ = results.load(results.PUBLISHED)["generation"].values()
    other, here = "2 cores of another (avx2)", results.place_of(results.machine())
    for name in ("MEASURED", "PUBLISHED"):
        monkeypatch.setattr(results, name, tmp_path / "folder" / name)
    monkeypatch.setattr(report, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(results, "SAMPLE_S", None)
    first, second, *_ = figures["runs"]
    earlier = {other: figures, here: figures | {"runs": [first, second]}}
    results.save({"generation": earlier}, results.PUBLISHED)
    again = first | {"rounds": 99}
    results.add("generation", figures | {"runs": [again]}, results.MEASURED)
    monkeypatch.setattr(sys, "argv", ["report", "--save"])
    report.main()
    published = results.load(results.PUBLISHED)
    assert published["generation"][other] == figures
    kept = [{name: run[name] for name in first} for run in published["generation"][here]["runs"]]
    assert kept == [again, second]
    written = {path.name: path.read_text("utf-8") for path in report.FIGURES.glob("*.md")}
    assert written == report.pages(published)
    assert results.load(results.MEASURED) == {}


def test_a_shape_measured_again_takes_no_version_or_date_from_the_others():
    run = {"shape": "S", "sizes": "small", "threads": 1} | dict.fromkeys(("floor_s", "step_s"), 1.0)
    run |= dict.fromkeys(("step_at_64_s", "step_at_256_s"), 1.0)
    run |= {"seconds": {report.OURS: 1.0, report.BARE: 1.0}}
    about = {"spincount": "1", "others_share": 0.5, "date": "2026-01-02"}
    old = about | {"versions": {"torch": "2.1", "peer": "1.0"}, "runs": [run, run | {"shape": "G"}]}
    new = about | {"date": "2026-03-04", "others_share": 0.0, "versions": {"torch": "2.2"}}
    place = "2 cores of a CPU (avx2)"
    both = results.merged(
        {"generation": {place: old}}, {"generation": {place: new | {"runs": [run]}}}
    )
    assert (
        "2026-01-02 to 2026-03-04; torch 2.1 and 2.2, peer 1.0; GOMP_SPINCOUNT=1; "
        "50% of the cores busy with other work."
    ) in report.pages(both)["a-cpu.md"]


def test_the_plan_for_many_visitors_starts_from_one_measurement():
    (load,) = (
        part
        for place, part in results.load(results.PUBLISHED)["load"].items()
        if " cores of AMD EPYC, family 26, model 2 (" in place
    )
    minutes = load["visitors"] * load["seconds"] / 60
    text = " ".join((results.ROOT / "docs/serving/how-many.md").read_text(encoding="utf-8").split())
    for figure in (
        f"{load['visitors']}: a text in {load['generation_median_s']:.2f} s, "
        f"a click in {1e3 * load['click_median_s']:.0f} ms (median)",
        f"{load['generations'] / minutes:.1f} texts of 40 tokens, "
        f"{load['clicks'] / minutes:.0f} clicks",
        f"{load['memory_end_bytes'] / 1e9:.2f} GB; at most",
    ):
        assert figure in text


@pytest.mark.parametrize(
    ("shape", "known"), [("quick", generation.PEERS), ("quick-gemma", generation.TRANSFORMERS)]
)
def test_every_installed_tool_is_timed_and_the_others_are_named(shape, known):
    run = generation.measure(QUICK_SHAPES[shape], rounds=1)
    timed = [name for name in run["seconds"] if not name.startswith("ours")]
    assert sorted([*timed, *run["missing"]]) == sorted(known)
    assert {name for name in known if name.startswith("transformers,")} <= set(timed)
    assert all(seconds > 0 for seconds in run["seconds"].values())
    assert 0 < run["floor_s"] < run["step_s"]


def test_a_tool_that_takes_long_is_timed_as_it_is_checked_and_not_again(monkeypatch):
    monkeypatch.setattr(generation, "LONG_S", 0)
    calls: Counter[str] = Counter()
    peers = generation.peers_of

    def counted(shape):
        def make(name, build):
            def built(*given):
                peer = build(*given)
                run = peer.run
                peer.run = lambda *sizes, **more: calls.update([name]) or run(*sizes, **more)
                return peer

            return built

        return {name: (of, make(name, build)) for name, (of, build) in peers(shape).items()}

    monkeypatch.setattr(generation, "peers_of", counted)
    figures = generation.measure(QUICK_SHAPES["quick"], rounds=3)
    assert calls
    assert set(calls.values()) == {1}
    assert calls.keys() <= figures["seconds"].keys()


def test_a_tool_with_other_tokens_or_attention_is_not_timed():
    ids, weights = [1, 2, 3], torch.full((1, 1, 3, 3), 1 / 3)
    same = generation.Task(run=lambda: (ids, weights[:, :, :2]), read=lambda result: result)
    tasks = {report.OURS: generation.Task(run=lambda: (ids, weights), read=lambda result: result)}
    differences, seconds = generation.check_equal(tasks | {"same": same})
    assert differences == {report.OURS: 0.0, "same": 0.0}
    assert seconds.keys() == differences.keys()
    for wrong in (([1, 2, 4], None), (ids, weights + 0.01)):
        task = generation.Task(run=lambda wrong=wrong: wrong, read=lambda result: result)
        with pytest.raises(SystemExit, match=r"wrong: .*ours"):
            generation.check_equal(tasks | {"wrong": task})


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
