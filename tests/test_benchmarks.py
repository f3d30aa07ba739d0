"""The benchmarks: they compare what is equal, and docs/figures.md says what they measured."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import serving
import torch

from benchmarks import (
    drawing,
    floor,
    generation,
    networks,
    report,
    results,
    training,
    visitors,
)
from benchmarks.__main__ import with_earlier
from transformer import load

pytestmark = pytest.mark.slow

TRANSFORMERS = [name for name in generation.PEERS if name.startswith("transformers,")]


def test_the_figures_say_what_was_measured():
    assert report.FIGURES.read_text(encoding="utf-8") == report.report(results.load())


def test_the_readme_sums_up_the_figures_of_one_cpu():
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
    readme = " ".join((results.ROOT / "README.md").read_text(encoding="utf-8").split())
    for figure in (
        f"takes {ours:.2f} s, in transformers {theirs:.2f} s",
        f"first picture after {desk['picture_s']:.2f} s",
        f"{load['visitors']} visitors at once wait {load['generation_median_s']:.2f} s for a text",
        f"{1e3 * load['click_median_s']:.0f} ms for a click (medians), with {load['faults']} fault",
    ):
        assert figure in readme


def test_a_part_replaces_its_own_old_figures_of_this_cpu_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "SAMPLE_S", 0.01)
    path = tmp_path / "results.json"
    for part, value in (("page", 1), ("training", 2), ("page", 3)):
        results.add(part, {"value": value}, path)
    monkeypatch.setattr(results, "cpu_name", lambda: "another")
    results.add("page", {"value": 4}, path)
    found = results.load(path)
    values = {part: [one["value"] for one in cpus.values()] for part, cpus in found.items()}
    assert values == {"page": [3, 4], "training": [2]}
    (here, there) = found["page"]
    assert "another" in there
    assert found["page"][here]["machine"]["versions"]["torch"] == torch.__version__


def test_figures_that_were_measured_beside_other_work_say_so():
    seen = dict.fromkeys(("picture_s", "heads_s", "head_s", "click_ms"), 1.0)
    part = {"date": "2026-01-01", "rounds": 1, "clicks": 1}
    part |= {"imports_s": 1.0, "start_s": 1.0, "desk": seen, "phone": seen}
    quiet, noisy = (
        report.report({"page": {"2 cores of X (avx2)": part | {"others_share": share}}})
        for share in (0.01, 0.4)
    )
    assert "other work" not in quiet
    assert "; 40% of the cores busy with other work." in noisy


def test_every_installed_tool_is_timed_and_the_others_are_named(tmp_path):
    path = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--json", str(path)]
    printed = subprocess.run(
        command, cwd=results.ROOT, check=True, capture_output=True, text=True, timeout=120
    ).stdout
    (part,) = json.loads(path.read_text(encoding="utf-8"))["generation"].values()
    both = (generation.PEERS, generation.LLAMA_PEERS)
    for run, known in zip(part["runs"], both, strict=True):
        timed = [name for name in run["seconds"] if not name.startswith("ours")]
        assert sorted([*timed, *run["missing"]]) == sorted(known)
        assert set(TRANSFORMERS) <= set(timed)
        assert all(seconds > 0 for seconds in run["seconds"].values())
        assert 0 < run["floor_s"] < run["step_s"]
        assert all(name in printed for name in (report.OURS, *known))


def test_each_cpu_has_a_section_with_a_column_for_each_number_of_threads():
    seconds = dict.fromkeys((report.OURS, report.BARE), 0.5)
    run = {"sizes": "1 x 2", "seconds": seconds, "floor_s": 1, "step_s": 2}
    run |= {"step_at_64_s": 1, "step_at_256_s": 1, "prompt_s": {report.OURS: 0.25}}
    part = {"date": "2026-01-01", "others_share": 0.0, "spincount": 5}
    part["runs"] = [run | {"threads": threads} for threads in (1, 2)]
    cpus = {f"2 cores of {name} (avx2)": part for name in ("B", "A, model 1")}
    found = report.report({"generation": cpus})
    assert [line for line in found.splitlines() if line.startswith("## ")] == [
        "## A, model 1",
        "## B",
    ]
    _, first, second = found.split("\n## ")
    assert first.split("\n", 1)[1] in second
    assert "| 1 x 2 | 1 thread | 2 threads |" in first
    assert f"| {report.OURS} | 500 ms | 500 ms |" in first
    assert f"| a prompt of 512 tokens: {report.OURS} | 250 ms | 250 ms |" in first


def test_a_run_replaces_that_of_its_shape_and_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "SAMPLE_S", 0.01)
    path, made = tmp_path / "results.json", [("G", 2, 1), ("S", 1, 2)]
    before = [dict(shape=shape, threads=threads, value=value) for shape, threads, value in made]
    results.add("generation", {"runs": before}, path)
    found = with_earlier([dict(shape="S", threads=1, value=3)], path)
    assert [(run["shape"], run["value"]) for run in found] == [("S", 3), ("G", 1)]


def test_memory_is_read_whole_in_every_way(monkeypatch):
    buffer = torch.ones(3 * 4096)
    before = torch.get_num_threads()
    for threads in (1, 3):
        torch.set_num_threads(threads)
        assert {float(read()) for read in floor.ways(buffer)} == {float(len(buffer))}
    torch.set_num_threads(before)
    monkeypatch.setattr(floor, "_library", lambda: None)
    assert {float(read()) for read in floor.ways(buffer)} == {float(len(buffer))}


def test_a_tool_with_other_tokens_or_attention_is_not_timed():
    ids, weights = [1, 2, 3], torch.full((1, 1, 3, 3), 1 / 3)
    same = generation.Task(run=lambda: (ids, weights[:, :, :2]), read=lambda result: result)
    tasks = {report.OURS: generation.Task(run=lambda: (ids, weights), read=lambda result: result)}
    assert generation.check_equal(tasks | {"same": same}) == {report.OURS: 0.0, "same": 0.0}
    for wrong in (([1, 2, 4], None), (ids, weights + 0.01)):
        task = generation.Task(run=lambda wrong=wrong: wrong, read=lambda result: result)
        with pytest.raises(SystemExit, match=r"wrong: .*ours"):
            generation.check_equal(tasks | {"wrong": task})


@pytest.mark.parametrize("name", networks.QUICK_SHAPES)
def test_drawn_weights_give_a_varied_text_that_never_ends_early(name, tmp_path):
    networks.write(tmp_path, networks.QUICK_SHAPES[name])
    model = load(tmp_path)
    run = model.generate(networks.PROMPT, max_new_tokens=40)
    assert run.n_prompt == networks.N_PROMPT == 16
    assert len(run.steps) == 40
    assert len({step.token for step in run.steps}) > 5
    assert run.trace.weights("decoder").std() > 0.05
    stored = {"quick": "float32", "quick-llama": "bfloat16"}[name]
    assert model.engine.about.startswith(f"{stored} in vectors")
    if name == "quick":  # four and eight squares, their biases, two norms; the last norm, the head
        numbers = 2 * (12 * 32**2 + 13 * 32) + 2 * 32 + 300 * 32
        assert networks.decoder_bytes(model.network) == 4 * numbers


@pytest.mark.parametrize("shape", training.QUICK_SHAPES, ids=str)
def test_our_loop_and_the_plain_ones_learn_the_same_rows(shape):
    found = training.measure(shape, n_steps=3)
    assert len(found["tokens_per_s"]) == (4 if shape.pairs else 5)
    assert all(speed > 0 for speed in found["tokens_per_s"].values())
    part = {"shapes": [found], "threads": 1, "steps": 3}
    assert str(shape) in report.training_table(part)


def test_visitors_at_once_all_get_their_tokens():
    url = serving.running().url
    clients = [visitors.visitor(url) for _ in range(3)]
    try:
        found = visitors.measure(clients, rounds=1, n_new=5)
    finally:
        for client in clients:
            client.close()
    assert found["visitors"] == 3
    assert found["tokens_per_s"] > 0 < found["alone_tokens_per_s"]
    assert found["longest_ratio"] >= 1


@pytest.mark.browser
def test_a_tools_page_gets_its_libraries_and_nothing_else(browser, tmp_path):
    page = tmp_path / "page.html"
    script = b"document.querySelector('#vis').innerHTML = '<svg></svg>';"
    for part in drawing.LIBRARIES:
        address = f"https://cdn.example/ajax/libs{part}one.min.js"
        page.write_text(f"<body><p id=vis></p><script src={address}></script>")
        size, seconds, nodes = drawing._draw(browser, page, "#vis svg", 20, {part: script})
        assert size == "0.0 MB"
        assert seconds.endswith(" s")
        assert int(nodes) == 6
    without = drawing._draw(browser, page, "#vis svg", 1, {})
    assert without == ["0.0 MB", "nothing drawn in 1 s", "–"]
