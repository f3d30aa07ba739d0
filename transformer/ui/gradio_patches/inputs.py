"""What comes in: Gradio fetches what an input names, tells others of it, and lets in any site."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

from gradio.block_function import BlockFunction
from gradio.blocks import Blocks
from gradio.data_classes import GradioModel, GradioRootModel
from gradio.exceptions import Error
from gradio.route_utils import CustomCORSMiddleware
from gradio.utils import error_payload

from transformer.messages import say
from transformer.ui.language import again
from transformer.ui.limits import MISTAKE, sentence_of

VISITORS = (ValueError, RecursionError)  # the kinds of mistakes that visitors make


async def unchanged(data: Any, *_: Any, **__: Any) -> Any:
    """Gradio fetches what any input names as a file, to memory and disk, before the page sees it:
    {"path": "http://HOST/x", "meta": {"_type": "gradio.FileData"}}; the page takes no files."""
    return data.model_dump() if isinstance(data, GradioModel | GradioRootModel) else data


def check_inputs(_: Blocks, block_fn: BlockFunction, inputs: list[Any]) -> None:
    """Gradio writes to the log what was sent, and answers with its components' addresses. Too many
    inputs are not refused there either."""
    wanted, got = len(block_fn.inputs), len(inputs)
    if wanted != got:
        sentence = say(
            "{name} needs {wanted} inputs; got {got}",
            name=block_fn.api_name,
            wanted=wanted,
            got=got,
        )
        raise Error(sentence, print_exception=False)


class Quiet:
    """In place of the module `traceback` in Gradio's queue, which writes the values of a mistake to
    the log, and a visitor's words with them."""

    @staticmethod
    def print_exc() -> None:
        """Where the mistake was, and of what kind; a visitor's own is none of the server's."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, VISITORS):
            print(f"a mistake: {place_of(error)}", file=sys.stderr, flush=True)


def place_of(error: BaseException) -> str:
    """A mistake's kind and place, without its values."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


def told(error: BaseException | None, show_error: bool) -> dict[str, Any]:
    """What a visitor hears of a mistake: the sentence, if it was the visitor's. Gradio tells
    whatever stands in it."""
    if isinstance(error, VISITORS):
        error = Error(sentence_of(error))
    elif error is not None and not isinstance(error, Error):
        error = Error(again(MISTAKE))
    return error_payload(error, show_error)


class NoCredentials(CustomCORSMiddleware):
    """Gradio lets every site ask as the visitor, cookies and all, wherever the server's name is not
    this machine's. Any site may ask, but as nobody."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for headers in (self.simple_headers, self.preflight_headers):
            headers.pop("Access-Control-Allow-Credentials")
