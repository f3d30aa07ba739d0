"""The files of other people's that the page's scripts hold are those that were published."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from transformer.views.export.bundle import PACKAGE

FOLDER = PACKAGE / "web" / "vendor"
PUBLISHED = json.loads((FOLDER / "published.json").read_text("utf-8"))
# A browser without an import map takes only relative imports: those alone were changed.
NAMES = {
    "./preact.js": "preact",
    "./hooks.js": "preact/hooks",
    "./signals-core.js": "@preact/signals-core",
}


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.js")))
def test_a_vendored_file_is_the_published_one_but_for_its_relative_imports(name: str) -> None:
    text = (FOLDER / name).read_text("utf-8")
    as_published = re.sub(r'from"(\./[^"]+)"', lambda found: f'from"{NAMES[found[1]]}"', text)
    assert hashlib.sha256(as_published.encode()).hexdigest() == PUBLISHED[name]["sha256"]


def test_each_vendored_package_comes_with_its_licence() -> None:
    licences = {"preact": "MIT", "htm": "Apache License", "signals": "MIT"}
    for name, words in licences.items():
        assert words in (FOLDER / f"{name}.LICENSE").read_text("utf-8")
