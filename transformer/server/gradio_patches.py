"""What of Gradio 6.31 is replaced. It has no documented way to be given it.

tests/server/test_gradio_patches.py fails once Gradio itself has changed there: then it can go.
"""

from __future__ import annotations

from typing import Any

from gradio import processing_utils
from gradio.data_classes import GradioModel, GradioRootModel


async def unchanged(data: Any, *_: Any, **__: Any) -> Any:
    """Gradio fetches what an input of a tool names as a file, to memory and disk:
    {"path": "http://HOST/x", "meta": {"_type": "gradio.FileData"}}; no endpoint takes files."""
    return data.model_dump() if isinstance(data, GradioModel | GradioRootModel) else data


def install() -> None:
    """Replace it for all pages of this process."""
    processing_utils.async_move_files_to_cache = unchanged
