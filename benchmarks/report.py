"""Print what the benchmarks measured here, or publish it in docs/figures/.

    python -m benchmarks.report [--save]

Each part's figures are a Markdown table, which its own command prints too. --save moves them into
benchmarks/results.json beside those of other CPUs, and writes docs/figures/ from it: a page a CPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from benchmarks import command_line, results
from benchmarks.results import ROOT

FIGURES = ROOT / "docs" / "figures"
INTRODUCTION = """\
# Figures

For people who ask how fast it is, compared with what: a page for each CPU that was measured.

`make bench` measures these figures on the CPU at hand and prints them. After that,
`python -m benchmarks.report --save` adds them to these pages and to
[results.json](../../benchmarks/results.json). Weights are random where only their shape matters.

In the table: the time to write 64 tokens with a network of GPT-2's size on two threads, keeping the
attention, here and in transformers; and the medians of what each of sixty visitors at once waits
for a text and for a click on a head.

Processor time, which other work on the machine hardly changes (2026-11-28, AMD EPYC, family 25,
model 17, one thread): `python app.py` until the page answers, 1.11 times `import torch, gradio`; a
text of 24 tokens by `stories`, written and recorded, 15 ms; two sentences by `translate-en-fr`,
39 ms, and three with their masks, 50 ms."""
NOISY = 0.1  # share of the cores, busy with other work, above which the report says so
BY_HAND = "by hand, bf16"  # a GPT in a few lines, trained without this project

OURS = "ours, attention kept"
BARE = "ours, no attention"
THEIRS = "transformers, attention kept (eager)"
GPT_2 = "12 x 12 x 768"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def generation_tables(part: dict[str, Any]) -> str:
    """Of one CPU, a table for each shape, with a column for each number of threads."""
    shapes = dict.fromkeys(run["sizes"] for run in part["runs"])
    return "\n\n".join(
        _one_shape(sizes, [run for run in part["runs"] if run["sizes"] == sizes])
        for sizes in shapes
    )


def _one_shape(sizes: str, runs: list[dict[str, Any]]) -> str:
    def compared(of: str, start: str = "") -> list[list[str]]:
        names = dict.fromkeys(name for run in runs for name in run.get(of, {}))
        return [[start + name, *(_cell(run.get(of, {}), name) for run in runs)] for name in names]

    costs: dict[str, Callable[[dict[str, Any]], str]] = {
        "attention kept ÷ not kept": lambda run: _ratio(run["seconds"][OURS], run["seconds"][BARE]),
        "reading the weights once, of our step": lambda run: (
            f"{100 * run['floor_s'] / run['step_s']:.0f} %"
        ),
        "our step at 256 tokens ÷ at 64": lambda run: _ratio(
            run["step_at_256_s"], run["step_at_64_s"]
        ),
    }
    rows = compared("seconds") + [[name, *map(cost, runs)] for name, cost in costs.items()]
    rows += compared("prompt_s", "a prompt of 512 tokens: ")
    threads = [f"{run['threads']} thread{'s' if run['threads'] > 1 else ''}" for run in runs]
    return table([sizes, *threads], rows)


def training_table(part: dict[str, Any]) -> str:
    """Tokens a second, a column for each shape: our loop with both optimizers against PyTorch's
    modules and, for a decoder, a GPT by hand.

    The goal was set for AdamW, so that is what is compared with it.
    """
    names = list(dict.fromkeys(name for one in part["shapes"] for name in one["tokens_per_s"]))
    ours = [name for name in names if name.startswith("ours")]
    plain = [name for name in names if name.startswith("plain")]
    ratios = [
        *(f"{name} ÷ the faster plain" for name in ours),
        "AdamW ÷ by hand",
        "AdamW ÷ our goal",
    ]
    columns = [["tokens a second", *names, *ratios]]
    for shape in part["shapes"]:
        speeds: dict[str, float] = shape["tokens_per_s"]
        cells = [f"{speeds[name]:,.0f}" if name in speeds else "–" for name in names]
        fastest = max(speeds[name] for name in plain)
        cells += [_ratio(speeds[name], fastest) for name in ours]
        last = speeds[ours[-1]]
        cells.append(_ratio(last, speeds[BY_HAND]) if BY_HAND in speeds else "–")
        goal = shape["goal"]
        cells.append(f"{_ratio(last, goal)} ({goal:,})" if goal else "–")
        columns.append([shape["sizes"], *cells])
    head, *rows = zip(*columns, strict=True)
    return table(head, rows)


def load_table(part: dict[str, Any]) -> str:
    """What many visitors did, how long they waited, and what the server's memory did."""
    settled, end = part["memory_settled_bytes"], part["memory_end_bytes"]
    rows = [
        ["texts generated", f"{part['generations']:,}"],
        ["heads clicked", f"{part['clicks']:,}"],
        *([["networks trained", f"{part['trainings']:,}"]] if part.get("trainings") else []),
        *([["left at a random moment", f"{part['departures']:,}"]] if "departures" in part else []),
        ["faults and mixed-up results", f"{part['faults']:,}"],
        ["a text, from the button to its end: median", f"{part['generation_median_s']:.2f} s"],
        ["a click: median", f"{1e3 * part['click_median_s']:.0f} ms"],
        ["a click: 95 of 100 within", f"{1e3 * part['click_p95_s']:.0f} ms"],
        ["memory, settled", f"{settled / 1e6:.0f} MB"],
        ["memory at the end", f"{end / 1e6:.0f} MB ({100 * (end / settled - 1):+.1f} %)"],
    ]
    return table([f"{part['visitors']} visitors, {part['seconds']:.0f} s", "figure"], rows)


def page_table(part: dict[str, Any]) -> str:
    """Start-up, first pictures and a click, in Chromium."""
    start, imports = part["start_s"], part["imports_s"]
    desk, phone = part["desk"], part["phone"]
    bare = "bare_s" if "bare_s" in desk else ""

    def seconds(what: str, name: str, beside: str = "") -> list[list[str]]:
        """A row, or none if it was not measured then; beside: of what it is told as a multiple."""
        told = [
            f"{one[name]:.2f} s" + (f" ({_ratio(one[name], one[beside])} times)" if beside else "")
            for one in (desk, phone)
            if name in one
        ]
        return [[what, *told]] if told else []

    rows = [
        ["`import torch, gradio` alone", f"{imports:.2f} s", ""],
        [
            "`python app.py` until the page answers",
            f"{start:.2f} s ({_ratio(start, imports)} times)",
            "",
        ],
        *seconds("from the request to the first paint", "picture_s"),
        *seconds("to all heads", "heads_s"),
        *seconds("until it is of use: the text, the journey, its card, the bars", "usable_s", bare),
        *seconds("until Gradio's controls are of use, too", "controls_s", bare),
        *seconds("a page of Gradio's with a text box and a button alone", "bare_s"),
        *seconds("until the journey is painted", "head_s"),
        [
            "a click on a head until it is painted",
            f"{desk['click_ms']:.0f} ms",
            f"{phone['click_ms']:.0f} ms",
        ],
    ]
    if "shift" in desk:
        shifts = [f"{one['shift']:.2f}" for one in (desk, phone)]
        on = f"; {part['projector']['shift']:.2f} on a projector"
        rows.append(["how far what is seen moves by itself (CLS)", shifts[0] + on, shifts[1]])
    head = ["the page, as bundled", "here", "processor 4 times as slow, 10 Mbit/s, 40 ms away"]
    return table(head, rows)


def scale_table(part: dict[str, Any]) -> str:
    """Large runs on the real page."""
    head = ["layers x heads x tokens", "sent before a click", "a click on a head", "DOM nodes"]
    rows = [
        [
            found["shape"],
            f"{found['bytes'] / 1e6:.2f} MB",
            f"{found['click_ms']:.0f} ms (to {found['longest_click_ms']:.0f})",
            f"{found['nodes']:,}",
        ]
        for found in part["shapes"]
    ]
    return table(head, rows)


def _ratio(a: float, b: float) -> str:
    return f"{a / b:.2f}"


def _cell(seconds: dict[str, float], name: str) -> str:
    if name not in seconds:
        return "–"
    ratio = "" if name == OURS else f" ({seconds[name] / seconds[OURS]:.2f}×)"
    ms = 1e3 * seconds[name]
    return f"{ms:,.0f} ms{ratio}" if ms >= 10 else f"{ms:.2f} ms{ratio}"


class Part(NamedTuple):
    """One benchmark: its name, what it measures, with what (filled in from its figures), and
    the function that makes its"""

    title: str
    about: str
    using: str
    table: Callable[[dict[str, Any]], str]


PARTS = {
    "generation": Part(
        "Generation",
        "A 16-token prompt, 64 greedy tokens, and the attention of every head over that text, "
        "compared with other libraries that hold the same weights and give the same tokens. "
        "Medians of interleaved rounds; × is the time divided by ours.",
        "{versions}; GOMP_SPINCOUNT={spincount}",
        generation_tables,
    ),
    "page": Part(
        "The page",
        "The page in Chromium: start-up, loading, and a click on a head. Medians.",
        "{rounds} loads, {clicks} clicks",
        page_table,
    ),
    "scale": Part(
        "Large networks on the page",
        "Networks with random weights on the real page.",
        "{clicks} clicks each",
        scale_table,
    ),
    "training": Part(
        "Training",
        "Steps of our training loop with the settings of its recipes, compared with a plain loop "
        "around PyTorch's own modules with AdamW and a GPT written by hand as in nanoGPT. Medians "
        "of interleaved steps; the decoders have neither dropout nor biases. Figures before "
        "2026-11-26 are of an attention gradient written by hand: without it a step in bfloat16 "
        "took 1.01 to 1.07 times as long on an Intel Xeon.",
        "{steps} steps, {threads} threads",
        training_table,
    ),
    "load": Part(
        "A class on one server",
        "Each visitor opens the page, generates and clicks heads, over and over; every result is "
        "compared with the same one made alone (`make load`).",
        "",
        load_table,
    ),
    "load_learning": Part(
        "A class, and networks trained in *Learn*",
        "The same while networks are trained one after the other (`python -m benchmarks.load "
        "--learners 1`).",
        "",
        load_table,
    ),
    "soak": Part(
        "A class for longer",
        "The same for 15 minutes, and twenty more who ask and leave at random moments (`make "
        "soak`); what the leavers asked for is kept too, which fills the memory for runs.",
        "",
        load_table,
    ),
}


def main() -> None:
    """Print the figures that were measured here, or publish them."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--save", action="store_true", help="publish them")
    options = parser.parse_args()
    if options.save:
        figures = results.merged(*map(results.load, (results.PUBLISHED, results.MEASURED)))
        write_pages(figures)
        results.save(figures, results.PUBLISHED)
        results.MEASURED.unlink(missing_ok=True)
    else:
        measured = results.load(results.MEASURED)
        print("\n\n".join(_of_cpu(place, measured) for place in _places(measured)))


def write_pages(figures: dict[str, Any]) -> None:
    """Write the pages, and remove those of CPUs that are no longer in the figures."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    written = pages(figures)
    for name, text in written.items():
        (FIGURES / name).write_text(text, encoding="utf-8")
    for path in FIGURES.glob("*.md"):
        if path.name not in written:
            path.unlink()


def pages(figures: dict[str, Any]) -> dict[str, str]:
    """The documents by file name: what is measured with a row for each CPU, and a page for each."""
    places = _places(figures)
    measured = "\n".join(f"- **{part.title}.** {part.about}" for part in PARTS.values())
    rows = [[f"[{_name(place)}]({_file(place)})", *_summary(place, figures)] for place in places]
    head = ["CPU", "64 tokens, GPT-2's size", "in transformers", "a text, 60 visitors", "a click"]
    listed = "\n".join(["```{toctree}", ":hidden:", "", *map(_file, places), "```"])
    index = "\n\n".join([INTRODUCTION, table(head, rows), measured, listed]) + "\n"
    return {"index.md": index} | {_file(place): _page(place, figures) for place in places}


def _places(figures: dict[str, Any]) -> list[str]:
    return sorted({place for by_cpu in figures.values() for place in by_cpu})


def _name(place: str) -> str:
    return place.partition(" cores of ")[2].rpartition(" (")[0]


def _file(place: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", _name(place).lower()).strip("-") + ".md"


def _summary(place: str, figures: dict[str, Any]) -> list[str]:
    """A CPU's cells of the first page; "–" where nothing was measured."""
    runs = figures.get("generation", {}).get(place, {}).get("runs", [])
    run = next((run for run in runs if run["sizes"].startswith(GPT_2) and run["threads"] == 2), {})
    seconds, load = run.get("seconds", {}), figures.get("load", {}).get(place)
    waits = (
        [f"{load['generation_median_s']:.2f} s", f"{1e3 * load['click_median_s']:.0f} ms"]
        if load
        else ["–", "–"]
    )
    return [
        f"{seconds[OURS]:.2f} s" if OURS in seconds else "–",
        f"{seconds[THEIRS]:.2f} s" if THEIRS in seconds else "–",
        *waits,
    ]


def _page(place: str, figures: dict[str, Any]) -> str:
    section = re.sub("^##", "#", _of_cpu(place, figures), flags=re.MULTILINE)
    title, _, rest = section.partition("\n\n")
    return f"{title}\n\nFor people who compare machines: what was measured on one of them. {rest}\n"


def _of_cpu(place: str, figures: dict[str, Any]) -> str:
    found = {name: figures[name][place] for name in PARTS if place in figures.get(name, {})}
    cores, instructions = place.split(" cores of ")[0], place.rstrip(")").rpartition(" (")[2]
    parts = [
        f"### {PARTS[part].title}\n\n{_measured(PARTS[part], measured)}\n\n"
        f"{PARTS[part].table(measured)}"
        for part, measured in found.items()
    ]
    return "\n\n".join([f"## {_name(place)}", f"{cores} cores with {instructions}.", *parts])


def _measured(part: Part, figures: dict[str, Any]) -> str:
    """When, with what, and on how busy a machine: of all runs, where a part has some."""
    runs = [figures | run for run in figures.get("runs", [{}])]
    dates = sorted({run["date"] for run in runs})
    libraries: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, version in run.get("versions", {}).items():
            libraries.setdefault(name, {})[version] = None
    versions = ", ".join(f"{name} {' and '.join(sorted(of))}" for name, of in libraries.items())
    using = part.using.format(**figures | {"versions": versions})
    others = max(run["others_share"] or 0.0 for run in runs)
    noisy = f"{others:.0%} of the cores busy with other work" if others > NOISY else ""
    measured = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    return "; ".join(filter(None, (measured, using, noisy))) + "."


if __name__ == "__main__":
    main()
