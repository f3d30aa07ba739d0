"""The site of the documents: it builds without a warning, and needs nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import transformer
from transformer.server.http.limits import table

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
LINKS = re.compile(r"""(?:href|src)="(?!https?:|mailto:|data:|#)([^"#?]+)[^"]*\"""")
LOADED = re.compile(r"""<(?:script|img|iframe|link rel="(?:stylesheet|preload)")[^>]+?//[^>]+>""")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Built as `make docs` does, but without the page that the first one embeds."""
    folder = tmp_path_factory.mktemp("site")
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    (arguments,) = re.findall(r"python (-m sphinx .+) build/docs$", recipe, flags=re.MULTILINE)
    command = [sys.executable, *arguments.split(), str(folder), "-d", str(folder / ".doctrees")]
    command += ["-D", "live_example=0"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


def test_each_public_name_is_in_the_reference(site):
    pages = site.glob("docs/reference/*.html")
    anchors = {name for page in pages for name in re.findall(r'id="([\w.]+)"', page.read_text())}
    missing = {name for name in transformer.__all__ if f"transformer.{name}" not in anchors}
    assert missing == set()


def test_the_site_loads_nothing_from_other_hosts(site):
    pages = {page.name: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    assert len(pages) > 60
    foreign = {name: LOADED.findall(text) for name, text in pages.items()}
    assert {name: tags for name, tags in foreign.items() if tags} == {}


def test_the_sites_own_links_lead_to_files_that_are_there(site):
    missing = set()
    for page in site.rglob("*.html"):
        for link in LINKS.findall(page.read_text(encoding="utf-8")):
            if not (page.parent / unquote(link)).exists():
                missing.add((page.relative_to(site).as_posix(), link))
    assert missing == {("docs/index.html", "../example.html")}  # built by `make docs` alone


def test_the_limits_and_options_of_the_site_are_the_codes_own(site):
    limits = (site / "docs/serving/limits.html").read_text(encoding="utf-8")
    for name, row in table().items():
        assert name in limits, name
        assert row["unit"].replace("'", "’") in limits.replace("'", "’"), name
    assert "--trusted-hosts NAME" in (site / "docs/serving/index.html").read_text(encoding="utf-8")
