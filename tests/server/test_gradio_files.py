"""The files of Gradio's frontend that the page names and serves from memory."""

import re
from typing import Any

from kit import aio

from transformer.server.http.guard import GRADIO_FILE
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
