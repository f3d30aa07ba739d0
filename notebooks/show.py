"""Run tour.ipynb and keep what its cells give, so that it can be read where nothing runs it.

    python notebooks/show.py

Text is kept as text, figures and runs as pictures that Chromium takes of them.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
NOTEBOOK = HERE / "tour.ipynb"
SIZE = {"width": 860, "height": 560}  # px of a picture at most
BROWSERS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")


def main() -> None:
    """Every code cell in order, in one namespace, from the notebook's own folder."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    os.chdir(HERE)
    with sync_playwright() as started:
        path = next((path for path in BROWSERS if Path(path).exists()), None)
        browser = started.chromium.launch(executable_path=path)
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
        codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for count, cell in enumerate(codes, 1):
            printed, value = run("".join(cell["source"]), names)
            cell["execution_count"] = count
            cell["outputs"] = outputs(printed, value, count, page)
        browser.close()
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    NOTEBOOK.write_text(text, encoding="utf-8")
    print(f"wrote {NOTEBOOK.name}, {len(text) / 1e6:.1f} MB", file=sys.stderr)


def run(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line if that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)
    return printed.getvalue(), value


def outputs(printed: str, value: Any, count: int, page: Page) -> list[dict[str, Any]]:
    """As a notebook's file holds them."""
    found: list[dict[str, Any]] = []
    if printed:
        found.append({"output_type": "stream", "name": "stdout", "text": printed.splitlines(True)})
    if value is not None:
        data = {"text/plain": [repr(value)]}
        if hasattr(value, "to_html"):
            data = {"text/plain": [f"<{type(value).__name__}>"], "image/png": picture(value, page)}
        found.append({
            "output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data,
        })  # fmt: skip
    return found


def picture(value: Any, page: Page) -> str:
    """A figure, or a run as a notebook shows it, as PNG in base64."""
    is_run = hasattr(value, "_repr_html_") and hasattr(value, "trace")
    html = value._repr_html_() if is_run else value.to_html(include_plotlyjs=True)
    head = "<!doctype html><meta charset=utf-8><body style='margin:8px;font-family:sans-serif'>"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cell.html"
        path.write_text(head + html if is_run else html, encoding="utf-8")
        page.goto(path.as_uri())
        page.wait_for_timeout(1500)  # a figure is drawn in a second
    return base64.b64encode(page.screenshot()).decode("ascii")


if __name__ == "__main__":
    main()
