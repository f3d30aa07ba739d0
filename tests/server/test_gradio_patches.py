"""What Gradio makes us do: a test here fails once it no longer does so; then the patch can go."""

import re
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import gradio as gr
import pytest
from gradio import processing_utils
from kit import aio

from transformer.server import gradio_patches

THEIRS = processing_utils.async_move_files_to_cache


def test_files_named_by_an_input_are_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processing_utils, "async_move_files_to_cache", THEIRS)
    block = Mock(proxy_url=None, async_move_resource_to_block_cache=AsyncMock(return_value="copy"))
    named = {"path": "http://127.0.0.1:1/x", "meta": {"_type": "gradio.FileData"}}
    for n_fetched in (1, 0):
        aio.run(processing_utils.async_move_files_to_cache([{"deep": named}], block))
        assert block.async_move_resource_to_block_cache.await_count == n_fetched
        block.reset_mock()
        gradio_patches.install()


def test_gradios_scripts_still_need_our_patches() -> None:
    """first.js stops a clock of its loading message, which it knows by its source, and says what
    the browser's language is."""
    assets = Path(gr.__file__).parent / "templates" / "frontend" / "assets"
    scripts = {path.name: path.read_text("utf-8") for path in assets.glob("*.js")}
    clock = re.compile(r"performance\.now\(\)-[^;]*/1e3")
    assert any(name.startswith("statustracker") for name in scripts if clock.search(scripts[name]))
    whole = "\n".join(scripts.values())
    assert "window.navigator.language||window.navigator.languages[0]" in whole
    assert "return document.documentElement.lang" not in whole
