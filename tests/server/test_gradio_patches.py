"""The bugs of Gradio that we patch: a test fails once Gradio is mended and the patch can go."""

from unittest.mock import AsyncMock, Mock

import pytest
from gradio import processing_utils
from kit import aio

from transformer.server.programs.api import unchanged

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
