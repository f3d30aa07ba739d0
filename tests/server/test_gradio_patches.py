"""The bugs of Gradio that we patch: a test fails once Gradio is mended and the patch can go."""

from typing import Any
from unittest.mock import AsyncMock, Mock

import gradio as gr
import pytest
from gradio import processing_utils
from gradio.context import Context
from kit import aio

from transformer.server.api import unchanged
from transformer.server.blocks import Blocks

THEIRS = processing_utils.async_move_files_to_cache


def test_files_named_by_an_input_are_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processing_utils, "async_move_files_to_cache", THEIRS)
    block = Mock(proxy_url=None, async_move_resource_to_block_cache=AsyncMock(return_value="copy"))
    named = {"path": "http://127.0.0.1:1/x", "meta": {"_type": "gradio.FileData"}}
    for n_fetched in (1, 0):
        aio.run(processing_utils.async_move_files_to_cache([{"deep": named}], block))
        assert block.async_move_resource_to_block_cache.await_count == n_fetched
        block.reset_mock()
        monkeypatch.setattr(processing_utils, "async_move_files_to_cache", unchanged)


def test_blocks_without_servers_are_described_as_gradios_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def described(kind: type[gr.Blocks]) -> dict[str, Any]:
        monkeypatch.setattr(Context, "id", 0)
        with kind(title="page", fill_width=True, analytics_enabled=False) as page:
            with gr.Row(), gr.Column():
                box, number = gr.Textbox("a", label="text"), gr.Number(1)  # put into a form
            page.load(lambda: "b", None, box)
            gr.Button("go").click(None, [box, number], number, js="(a, b) => b")
        assert Context.root_block is None
        return {**page.get_config_file(), "app_id": 0}

    async def both() -> list[dict[str, Any]]:
        return [described(kind) for kind in (Blocks, gr.Blocks)]

    ours, theirs = aio.run(both())
    assert ours == theirs
