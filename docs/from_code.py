"""A directive for the site: tables that the code has already.

```{from-code} limits
What a reader of the file alone is told.
```
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from transformer.server.http.limits import table

ROOT = Path(__file__).resolve().parent.parent


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float) -> str:
    """A limit as it is read: 2e12, 0.67, 262,144."""
    return f"{value:,.0f}" if 1 <= value < 1e9 or not value else f"{value:.2g}"


def limits() -> str:
    """The server's limits."""
    rows = [
        (f"`{name}`", number(row["limit"]), row["unit"], row["beyond"])
        for name, row in table().items()
    ]
    return markdown_table(("limit", "most", "of what", "beyond it"), rows)


def output(*words: str) -> str:
    """What `python words` prints, in 88 columns; by a fork, which has imported everything."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        child = os.fork()
        if not child:
            _run(words, printed.fileno())
        if os.waitpid(child, 0)[1]:
            raise RuntimeError(f"python {' '.join(words)} failed")
        printed.seek(0)
        return f"```text\n{printed.read().rstrip()}\n```"


def _run(words: Sequence[str], output: int) -> NoReturn:
    """Run what Python runs for these words, and end this process. output: a file's descriptor."""
    code: object = 1
    try:
        os.dup2(output, 1)
        os.chdir(ROOT)
        os.environ["COLUMNS"] = "88"
        is_module = words[0] == "-m"
        sys.argv = list(words[is_module:])
        if is_module:
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(words[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        os._exit(bool(code))


class FromCode(SphinxDirective):
    """Its argument says which."""

    required_arguments = 1
    optional_arguments = 9
    has_content = True

    def run(self) -> list[nodes.Node]:
        name, *words = self.arguments
        text = {"limits": limits, "output": output}[name](*words)
        holder = nodes.container()
        self.state.nested_parse(StringList(text.splitlines(), name), 0, holder)
        return holder.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this once."""
    app.add_directive("from-code", FromCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
