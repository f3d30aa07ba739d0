"""Write docs/figures.md from the JSON that the benchmarks wrote.

python -m benchmarks.report
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import command_line, tables
from benchmarks.results import ROOT, load

FIGURES = ROOT / "docs" / "figures.md"
INTRODUCTION = """\
# Figures

`make bench` measures these figures on the CPU at hand, and writes them here and into
[results.json](../benchmarks/results.json) beside those of other CPUs. Weights are random where only
their shape matters."""
NOISY = 0.1  # share of the cores, busy with other work, above which the report says so


class Part(NamedTuple):
    """One benchmark: its name, what it measures, with what (filled in from its figures), and
    the function that makes its tables."""

    title: str
    about: str
    using: str
    table: Callable[[dict[str, Any]], str]


PARTS = {
    "generation": Part(
        "Generation",
        "A 16-token prompt, 64 greedy tokens, and the attention of every head over that text, "
        "beside other libraries that hold the same weights and give the same tokens. Medians of "
        "interleaved rounds; × is the time divided by ours.",
        "{versions}; GOMP_SPINCOUNT={spincount}",
        tables.generation_tables,
    ),
    "page": Part(
        "The page",
        "The page in Chromium: start-up, loading, and a click on a head. Medians.",
        "{rounds} loads, {clicks} clicks",
        tables.page_table,
    ),
    "scale": Part(
        "Large networks on the page",
        "Networks with random weights on the real page.",
        "{clicks} clicks each",
        tables.scale_table,
    ),
    "drawing": Part(
        "Other tools",
        "The same weights drawn by other tools, all heads on one page. What such a page loads "
        "from elsewhere is read from the disk.",
        "{versions}",
        tables.drawing_table,
    ),
    "training": Part(
        "Training",
        "Steps of our training loop with the settings of its recipes, beside a plain loop around "
        "PyTorch's own modules with AdamW and a GPT written by hand as in nanoGPT. Medians of "
        "interleaved steps; the decoders have neither dropout nor biases.",
        "{steps} steps, {threads} threads",
        tables.training_table,
    ),
    "visitors": Part(
        "Visitors at once",
        "Simultaneous requests through the page's queue, beside the same requests one after the "
        "other.",
        "`{model}`; the server holds {loaded_mb} MB once it answers, {used_mb} MB after {n_runs} "
        "runs",
        tables.visitors_table,
    ),
    "load": Part(
        "A class on one server",
        "Each visitor opens the page, generates and clicks heads, over and over; every result is "
        "compared with the same one made alone (`make load`).",
        "",
        tables.load_table,
    ),
    "load_learning": Part(
        "A class, and networks trained in *Learn*",
        "The same while networks are trained one after the other (`python -m benchmarks.load "
        "--learners 1`).",
        "",
        tables.load_table,
    ),
    "soak": Part(
        "A class for longer", "The same for 15 minutes (`make soak`).", "", tables.load_table
    ),
}


def main() -> None:
    """Write the figures anew."""
    command_line(__spec__, __doc__).parse_args()
    FIGURES.write_text(report(load()), encoding="utf-8")


def report(results: dict[str, Any]) -> str:
    """The whole document: what is measured, then a section for each CPU, by its name."""
    places = sorted({place for by_cpu in results.values() for place in by_cpu})
    measured = "\n".join(f"- **{part.title}.** {part.about}" for part in PARTS.values())
    cpus = [_of_cpu(place, results) for place in places]
    return "\n\n".join([INTRODUCTION, measured, *cpus]).rstrip("\n") + "\n"


def _of_cpu(place: str, results: dict[str, Any]) -> str:
    found = {name: results[name][place] for name in PARTS if place in results.get(name, {})}
    cores, _, cpu = place.partition(" cores of ")
    name, _, instructions = cpu.rstrip(")").rpartition(" (")
    parts = [
        f"### {PARTS[part].title}\n\n{_measured(PARTS[part], figures)}\n\n"
        f"{PARTS[part].table(figures)}"
        for part, figures in found.items()
    ]
    return "\n\n".join([f"## {name}", f"{cores} cores with {instructions}.", *parts])


def _measured(part: Part, figures: dict[str, Any]) -> str:
    """When, with what, and beside how much other work."""
    versions = ", ".join(f"{name} {of}" for name, of in figures.get("versions", {}).items())
    using = part.using.format(**figures | {"versions": versions})
    others = figures["others_share"] or 0.0
    noisy = f"{others:.0%} of the cores busy with other work" if others > NOISY else ""
    return "; ".join(filter(None, (figures["date"], using, noisy))) + "."


if __name__ == "__main__":
    main()
