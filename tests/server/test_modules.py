"""The page's scripts and plotly.js, served as files: these and no others."""

import re

import httpx
from kit import aio

from transformer.server.page import modules
from transformer.server.page.modules import APART, MAIN, MODULES, PACKAGE, PAGE, PLOTLY_JS, STYLE


def ask(path: str, method: str = "GET", accept: str = "identity", tag: str = "") -> httpx.Response:
    """What is answered to a request for a path."""
    headers = {"accept-encoding": accept, "if-none-match": tag}
    return aio.answer(MODULES, path, method, headers=headers)


def address(name: str) -> str:
    return f"/{MODULES.address(name)}"


def test_a_file_is_served_under_its_package_path_as_immutable():
    name = "views/attention/attention.js"
    answer = ask(address(name))
    assert answer.content == (PACKAGE / name).read_bytes()
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert ask(address(name), "HEAD").status_code == 200
    assert ask(address(name), "POST").status_code == 405


def test_a_file_has_the_best_accepted_encoding_and_an_etag_for_each():
    tags = set()
    for accepted, coding in (
        ("gzip, deflate, br, zstd", "br"), ("gzip", "gzip"), ("br;q=0, gzip", "gzip"),
        ("deflate", None),
    ):  # fmt: skip
        answer = ask(address(PLOTLY_JS), accept=accepted)
        assert answer.headers.get("content-encoding") == coding
        assert answer.content == (PACKAGE / PLOTLY_JS).read_bytes()  # decoded by httpx
        tags.add(answer.headers["etag"])
        again = ask(address(PLOTLY_JS), accept=accepted, tag=answer.headers["etag"])
        assert (again.status_code, again.content) == (304, b"")
    assert len(tags) == 3


def test_no_other_file_and_no_other_version_is_served():
    paths = (
        *("", "/etc/passwd", "../../app.py", "server/http/guard.py"),
        "server/static/%2e%2e/http/guard.py",
        *("server/static/", "server/static/status.html", "views/attention/attention.py"),
        *("views/attention/attention.js/", "views/attention/attention.js%00"),
    )
    versions = ("", "0" * 16, MODULES.version[:-1], MODULES.version + "x")
    for path in (
        *(f"{MODULES.version}/{one}" for one in paths),
        *(f"{v}/{MAIN}" for v in versions),
    ):
        answer = ask(f"/modules/{path}")
        assert (answer.status_code, answer.headers["cache-control"]) == (404, "no-store"), path


def test_the_address_changes_with_any_files_content_and_name(tmp_path, monkeypatch):
    monkeypatch.setattr(modules, "PACKAGE", tmp_path)
    for folder in modules.FOLDERS:
        (tmp_path / folder).mkdir(parents=True)

    file, seen = tmp_path / "views" / "a.js", [modules.Modules().version]
    for change in (
        lambda: file.write_text("1"),
        lambda: file.write_text("2"),
        lambda: file.rename(tmp_path / "views" / "b.js"),
    ):
        change()
        seen.append(modules.Modules().version)
    assert len(set(seen)) == 4
    (tmp_path / "views" / "c.py").write_text("not served")
    assert modules.Modules().version == seen[-1]


def test_the_first_script_stays_small():
    """Of it Preact, htm and signals 10,000, the journey and its bars 10,500."""
    assert len(MODULES.asset(PAGE).encoded("br")) < 81_500


def test_all_style_sheets_are_one_that_overrides_gradios():
    style = ask(address(STYLE)).text
    sheets = [
        path
        for path in PACKAGE.rglob("*.css")
        if not any(folder in path.as_posix() for folder in APART)
    ]
    assert style.startswith(":root:root:root {\n")
    for sheet in sheets:
        text = sheet.read_text(encoding="utf-8")
        assert modules.ROOT.sub("&", text) in style
        # A browser silently drops what is not allowed within a rule.
        assert set(re.findall("@[a-z-]+", text)) <= {"@media", "@container"}, sheet
