"""Each part's figures as a Markdown table; docs/figures.md and the commands show the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

BY_HAND = "by hand, bf16"  # a GPT of its own few lines, trained without this project

OURS = "ours, attention kept"
BARE = "ours, no attention"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def generation_table(run: dict[str, Any]) -> str:
    """One shape with one number of threads: milliseconds and ratios to ours, and our own costs."""
    seconds: dict[str, float] = run["seconds"]
    head = [f"{run['sizes']}; {_threads(run['threads'])}", "ms", "÷ ours"]
    rows = [
        [name, _ms(median), f"{median / seconds[OURS]:.2f}"] for name, median in seconds.items()
    ]
    costs = "\n".join(f"- {line}" for line in own_costs(run))
    return f"{table(head, rows)}\n\n{costs}\n"


def own_costs(run: dict[str, Any]) -> list[str]:
    """What a run's figures say about our own cost."""
    seconds, step = run["seconds"], run["step_s"]
    kept, bare = seconds[OURS], seconds[BARE]
    worst = max(run["largest_difference"].values())
    of_step, of_all = _percent(run["floor_s"], step), _percent(run["n_new"] * run["floor_s"], kept)
    lines = [
        f"attention kept ÷ not kept: {kept / bare:.2f}",
        f"reading the weights once: {1e3 * run['floor_s']:.2f} ms, {of_step} of a step "
        f"({1e3 * step:.2f} ms), {of_all} of the whole",
        f"a step at 256 tokens ÷ at 64: {run['step_at_256_s'] / run['step_at_64_s']:.2f}",
        f"same tokens from all; attention differs by at most {worst:.0e}",
    ]
    lines += [
        f"a prompt of 512 tokens: {name}: {_cell(run['prompt_s'], name)}"
        for name in run.get("prompt_s", {})
    ]
    return lines + [f"not installed: {name}" for name in run["missing"]]


def generation_tables(part: dict[str, Any]) -> str:
    """Of one CPU, a table for each shape, with a column for each number of threads."""
    shapes = dict.fromkeys(run["sizes"] for run in part["runs"])
    return "\n\n".join(
        _one_shape(sizes, [run for run in part["runs"] if run["sizes"] == sizes])
        for sizes in shapes
    )


def _one_shape(sizes: str, runs: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for run in runs for name in run["seconds"]))
    rows = [[name, *(_cell(run["seconds"], name) for run in runs)] for name in names]
    costs: dict[str, Callable[[dict[str, Any]], str]] = {
        "attention kept ÷ not kept": lambda run: _ratio(run["seconds"][OURS], run["seconds"][BARE]),
        "reading the weights once, of our step": lambda run: _percent(
            run["floor_s"], run["step_s"]
        ),
        "our step at 256 tokens ÷ at 64": lambda run: _ratio(
            run["step_at_256_s"], run["step_at_64_s"]
        ),
    }
    rows += [[name, *map(cost, runs)] for name, cost in costs.items()]
    prompts = list(dict.fromkeys(name for run in runs for name in run.get("prompt_s", {})))
    for name in prompts:
        cells = [_cell(run.get("prompt_s", {}), name) for run in runs]
        rows.append([f"a prompt of 512 tokens: {name}", *cells])
    return table([sizes, *(_threads(run["threads"]) for run in runs)], rows)


def training_table(part: dict[str, Any]) -> str:
    """Tokens a second, a column for each shape: our loop with both optimizers beside PyTorch's own
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


def visitors_table(part: dict[str, Any]) -> str:
    """Simultaneous visitors of one server, beside the same work one after the other."""
    head = [
        f"{part['tokens']} tokens a request", "tokens a second", "one after the other",
        "time ÷ one after the other", "median wait", "longest ÷ median",
    ]  # fmt: skip
    rows = [
        [
            f"{found['visitors']} at once",
            f"{found['tokens_per_s']:.0f}",
            f"{found['alone_tokens_per_s']:.0f}",
            _ratio(found["alone_tokens_per_s"], found["tokens_per_s"]),
            f"{found['median_wait_s']:.2f} s",
            f"{found['longest_ratio']:.2f}",
        ]
        for found in part["counts"]
    ]
    return table(head, rows)


def load_table(part: dict[str, Any]) -> str:
    """What many visitors did, how long they waited, and what the server's memory did."""
    settled, end = part["memory_settled_bytes"], part["memory_end_bytes"]
    rows = [
        ["texts generated", f"{part['generations']:,}"],
        ["heads clicked", f"{part['clicks']:,}"],
        *([["networks trained", f"{part['trainings']:,}"]] if part.get("trainings") else []),
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
    start, bare = part["start_s"], part["imports_s"]
    desk, phone = part["desk"], part["phone"]

    def seconds(what: str, name: str) -> list[str]:
        return [what, f"{desk[name]:.2f} s", f"{phone[name]:.2f} s"]

    rows = [
        ["`import torch, gradio` alone", f"{bare:.2f} s", ""],
        [
            "`python app.py` until the page answers",
            f"{start:.2f} s ({_ratio(start, bare)} times)",
            "",
        ],
        seconds("from the request to the first picture", "picture_s"),
        seconds("until it is of use: the journey, a head large, the bars", "usable_s")
        if "usable_s" in desk  # measured on a page that opened on all heads until then
        else seconds("to all heads", "heads_s"),
        seconds("to the large head as Plotly draws it", "head_s"),
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


def drawing_table(part: dict[str, Any]) -> str:
    """Other tools' pages for the same attention."""
    return table(
        ["layers x heads x tokens", "tool", "size", "until drawn", "DOM nodes"], part["rows"]
    )


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f}" if seconds >= 0.01 else f"{1e3 * seconds:.2f}"


def _ratio(a: float, b: float) -> str:
    return f"{a / b:.2f}"


def _percent(a: float, b: float) -> str:
    return f"{100 * a / b:.0f} %"


def _cell(seconds: dict[str, float], name: str) -> str:
    if name not in seconds:
        return "–"
    ratio = "" if name == OURS else f" ({seconds[name] / seconds[OURS]:.2f}×)"
    return f"{_ms(seconds[name])} ms{ratio}"
