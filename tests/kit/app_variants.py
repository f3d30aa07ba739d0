"""app.py with one thing changed: python tests/kit/app_variants.py NAME [app.py's options].

NAME: one of CHANGES.
"""

import resource
import runpy
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

MOST_FILES = 256
PAUSE_S = 0.1
ROOM = 280_000_000  # a batch being read and one that is kept
STATUS = Path("/proc/self/status")


def brackets() -> None:
    """It speaks one more language, "eo": every sentence in ⟦ ⟧. What is filled into a sentence
    is outside of them: it has to be translated too."""
    from babel.messages.catalog import Catalog
    from babel.messages.pofile import write_po

    from transformer import messages
    from transformer.messages import HOLE

    def bracketed(sentence: str) -> str:
        filled = HOLE.sub(r"⟧{\1}⟦", sentence)
        return f"⟦{filled}⟧".replace("⟦⟧", "")

    made = Catalog(locale="eo")
    for one in messages.read_catalog(messages.FOLDER / "de.po"):
        if one.id:
            said = [bracketed(form) for form in ((one.id,) if isinstance(one.id, str) else one.id)]
            made.add(one.id, said[0] if len(said) == 1 else said, auto_comments=one.auto_comments)
    with tempfile.TemporaryDirectory() as folder:  # what is read there is remembered
        before, messages.FOLDER = messages.FOLDER, Path(folder)
        with (messages.FOLDER / "eo.po").open("wb") as file:
            write_po(file, made)
        messages.catalogue("eo")
        messages.languages()
        messages.FOLDER = before


def slow_tokens() -> None:
    """Each token takes PAUSE_S longer, so that a test can do something while tokens come."""
    from transformer.inference.generation import GenerationStep
    from transformer.inference.stream import Stream

    quick_next = Stream.__next__

    def slow_next(stream: Stream) -> GenerationStep:
        time.sleep(PAUSE_S)
        return quick_next(stream)

    Stream.__next__ = slow_next  # type: ignore[method-assign]


def few_files() -> None:
    """It may hold MOST_FILES, and closes connections without a request, and those whose answer is
    not read, sooner."""

    from transformer.server.http import http_server

    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES - 56, MOST_FILES))
    vars(http_server).update(HEADERS_S=1.0, CLIENT_S=1)


def little_memory() -> None:
    """Once its models are loaded and its page compressed, it may allocate ROOM bytes more."""
    from transformer.server.page.modules import MODULES

    compress = MODULES.warm

    def then_limited(page: Any) -> Any:
        thread = compress(page)
        thread.join()
        used = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmData"))
        most = int(used.split()[1]) * 1024 + ROOM
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        return thread

    vars(MODULES)["warm"] = then_limited


CHANGES = {one.__name__: one for one in (brackets, slow_tokens, few_files, little_memory)}

if __name__ == "__main__":
    CHANGES[sys.argv.pop(1)]()
    runpy.run_path(str(ROOT / "app.py"), run_name="__main__")
