"""Write README.md's tables of figures from the JSON that the benchmarks wrote.

python -m benchmarks.report
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import command_line, tables
from benchmarks.results import load, place_of

README = Path(__file__).resolve().parent.parent / "README.md"
NOISY = 0.1  # share of the cores, busy with other work, above which the report says so
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
PARTS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "page": (
        "The page in Chromium: medians of {rounds} loads and {clicks} clicks.",
        tables.page_table,
    ),
    "scale": (
        "Large networks with random weights on the real page, {clicks} clicks each.",
        tables.scale_table,
    ),
    "drawing": (
        "The same weights drawn by other tools ({versions}), all heads on one page. What "
        "a page loads from elsewhere comes from the disk.",
        tables.drawing_table,
    ),
    "generation": (
        "A 16-token prompt, 64 greedy tokens and the attention of all heads over the text, beside "
        "{versions}, which hold the same weights and give the same tokens. Medians of interleaved "
        "rounds; GOMP_SPINCOUNT={spincount} for all.",
        tables.generation_table,
    ),
    "training": (
        "Training steps of our loop, as the recipes set it, beside a plain loop around PyTorch's "
        "own modules with AdamW, and a GPT by hand in nanoGPT's way: medians of {steps} steps in "
        "turn, {threads} threads. The decoders have neither dropout nor biases.",
        tables.training_table,
    ),
    "visitors": (
        "Simultaneous visitors through the page's queue, `{model}`. The server holds {loaded_mb} "
        "MB once it answers, {used_mb} MB after {n_runs} runs.",
        tables.visitors_table,
    ),
    "load": (
        "A class on one server: each visitor opens the page, generates and clicks heads, over and "
        "over, and every result is compared with the same one made alone (`make load`).",
        tables.load_table,
    ),
    "load_learning": (
        "The same while networks are trained in *Learn*, one after the other (`python -m "
        "benchmarks.load --learners 1`).",
        tables.load_table,
    ),
    "soak": ("The same for longer (`make soak`).", tables.load_table),
}


def main() -> None:
    """Replace what stands between README.md's two marks."""
    command_line(__spec__, __doc__).parse_args()
    text = README.read_text(encoding="utf-8")
    README.write_text(replaced(text, report(load())), encoding="utf-8")


def report(results: dict[str, Any]) -> str:
    """The sections of all parts that were measured, with their dates and machines.

    What a part says of each CPU stands in a section of its own; generation has a column for each.
    """
    sections = []
    for name in (name for name in PARTS if name in results):
        by_cpu: dict[str, dict[str, Any]] = results[name]
        if name == "generation":
            *_, last = by_cpu.values()
            every = {lib: one for part in by_cpu.values() for lib, one in part["versions"].items()}
            said = PARTS[name][0].format(**_with_versions(last | {"versions": every}))
            places = "; ".join(map(_where, by_cpu.values()))
            sections.append(f"{said} Measured on {places}.\n\n{tables.by_shape(by_cpu)}")
            continue
        sentence, make = PARTS[name]
        for part in by_cpu.values():
            said = sentence.format(**_with_versions(part))
            sections.append(f"{said} Measured on {_where(part)}.\n\n{make(part)}")
    return "\n\n".join(sections)


def _with_versions(part: dict[str, Any]) -> dict[str, Any]:
    return part | {"versions": _named(part.get("versions", {}))}


def replaced(text: str, content: str) -> str:
    """The text with new content between its marks. Raises ValueError if it lacks them."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"the text must have one {BEGIN} and, after it, one {END}")
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{content}\n{END}{rest.split(END)[1]}"


def between(text: str) -> str:
    """What stands between the marks now."""
    found = re.search(f"{BEGIN}\n(.*)\n{END}", text, flags=re.DOTALL)
    return found[1] if found else ""


def _where(part: dict[str, Any]) -> str:
    others = part["others_share"] or 0.0
    noisy = f", just then {others:.0%} busy with other work" if others > NOISY else ""
    return f"{part['date']}, {place_of(part['machine'])}{noisy}"


def _named(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


if __name__ == "__main__":
    main()
