"""The files of Gradio's frontend that the page names and serves from memory."""

import re
from typing import Any

import httpx
from kit import aio, serving

from transformer.server.http.guard import GRADIO_FILE
from transformer.server.kept.page_models import html_of
from transformer.server.page import gradio_files
from transformer.server.page.pages import Reached

IMPORTED = re.compile(r'(?:from|import)"\./([^"]+)"')


def test_a_component_brings_its_scripts_and_all_that_they_import():
    plain, more = (gradio_files.file_names(kinds) for kinds in (["button"], ["button", "slider"]))
    folder = gradio_files.FRONTEND / gradio_files.FOLDER
    scripts = {name: (folder / name).read_text("utf-8") for name in more if name.endswith(".js")}
    ranges = {name for name, text in scripts.items() if 'type="range"' in text}
    assert ranges
    assert not ranges & set(plain)
    of_page = {name for tag in gradio_files.page_tags() for name in re.findall('index-[^"]+', tag)}
    for name, text in scripts.items():
        assert {*IMPORTED.findall(text)} <= {*more, *of_page}, name


def test_a_named_file_is_sent_packed_from_memory_and_kept_for_ever():
    async def gradio(*_: Any) -> None:
        raise AssertionError("reached")

    files = gradio_files.assets(gradio_files.file_names(["button"]))
    app = Reached(gradio, False, files)
    for path in files:
        assert GRADIO_FILE.fullmatch(path)
        answer = aio.answer(app, path, headers={"accept-encoding": "br"})
        assert answer.content == (gradio_files.FRONTEND / path.lstrip("/")).read_bytes()
        assert answer.headers["content-encoding"] == "br"
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_the_page_loads_no_script_of_gradios_markdown():
    page = httpx.get(serving.running().url).text
    named = {name.split("-")[0] for name in re.findall(rf"{gradio_files.FOLDER}/([^\"]+)", page)}
    assert "HTML" in named
    assert not named & {"markdown", "prism"}  # 28 KB for the tab Model


def test_markup_in_a_model_card_is_text_and_its_links_open_another_tab():
    html = html_of("<b>a</b> [b](https://c.d) [e](javascript:f)\n\n| g |\n| --- |\n| `h` |")
    assert "&lt;b&gt;a&lt;/b&gt;" in html
    assert '<a href="https://c.d" target="_blank" rel="noopener noreferrer">b</a>' in html
    assert "[e](javascript:f)" in html
    assert "<td><code>h</code></td>" in html
