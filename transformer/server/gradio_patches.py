"""Patches of Gradio 6.31, where it has no documented option.

tests/server/test_gradio_patches.py fails once Gradio no longer needs a patch.
"""

from __future__ import annotations

from typing import Any

from gradio import processing_utils
from gradio.data_classes import GradioModel, GradioRootModel


async def unchanged(data: Any, *_: Any, **__: Any) -> Any:
    """Keep inputs as they are: Gradio would fetch a file that an input of a tool names:
    {"path": "http://HOST/x", "meta": {"_type": "gradio.FileData"}}; no endpoint takes files."""
    return data.model_dump() if isinstance(data, GradioModel | GradioRootModel) else data


def install() -> None:
    """Apply the patches to this process."""
    processing_utils.async_move_files_to_cache = unchanged
