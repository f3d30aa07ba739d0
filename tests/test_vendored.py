"""The files of other people's that the page's scripts hold are those that were published."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import brotli
import pytest
from plotly.offline import get_plotlyjs_version

from transformer.views.export.bundle import PACKAGE

FOLDER = PACKAGE / "web" / "vendor"
PLOTLY = PACKAGE / "ui" / "static" / "vendor" / "plotly-cartesian.min.js"
FILES = [*sorted(FOLDER.glob("*.js")), PLOTLY]
PUBLISHED = json.loads((FOLDER / "published.json").read_text("utf-8"))
# A browser without an import map takes only relative imports: those alone were changed.
NAMES = {
    "./preact.js": "preact",
    "./hooks.js": "preact/hooks",
    "./signals-core.js": "@preact/signals-core",
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_vendored_file_is_the_published_one_but_for_its_relative_imports(path: Path) -> None:
    text = path.read_text("utf-8")
    as_published = re.sub(r'from"(\./[^"]+)"', lambda found: f'from"{NAMES[found[1]]}"', text)
    assert hashlib.sha256(as_published.encode()).hexdigest() == PUBLISHED[path.name]["sha256"]


def test_plotly_is_sent_as_published_in_the_version_that_makes_the_figures() -> None:
    """Browsers get the compressed file beside it."""
    packed = PLOTLY.with_name(f"{PLOTLY.name}.br").read_bytes()
    assert brotli.decompress(packed) == PLOTLY.read_bytes()
    assert PUBLISHED[PLOTLY.name]["version"] == get_plotlyjs_version()


def test_each_vendored_package_comes_with_its_licence() -> None:
    licences = {"preact": "MIT", "htm": "Apache License", "signals": "MIT"}
    for name, words in licences.items():
        assert words in (FOLDER / f"{name}.LICENSE").read_text("utf-8")
