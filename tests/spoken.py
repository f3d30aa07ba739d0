"""app.py, which speaks one more language, "eo": every sentence in ⟦ ⟧.

What is filled into a sentence stands outside of them: it has to be said too.
"""

from __future__ import annotations

import runpy
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from babel.messages.catalog import Catalog  # noqa: E402
from babel.messages.pofile import write_po  # noqa: E402

from transformer.messages import catalogues  # noqa: E402
from transformer.messages.update import HOLE  # noqa: E402


def _bracketed(sentence: str) -> str:
    filled = HOLE.sub(r"⟧{\1}⟦", sentence)
    return f"⟦{filled}⟧".replace("⟦⟧", "")


def bracketed() -> Catalog:
    """A catalogue in which nothing can be missed: that of German, said in brackets."""
    made = Catalog(locale="eo")
    for one in catalogues.read_catalog(catalogues.FOLDER / "de.po"):
        if one.id:
            forms = (one.id,) if isinstance(one.id, str) else one.id
            said = tuple(map(_bracketed, forms))
            made.add(one.id, said[0] if len(said) == 1 else said, auto_comments=one.auto_comments)
    return made


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        said = bracketed()
        catalogues.FOLDER = Path(folder)
        with (catalogues.FOLDER / "eo.po").open("wb") as file:
            write_po(file, said)
        catalogues.catalogue("eo")
        catalogues.languages()
    runpy.run_path(str(ROOT / "app.py"), run_name="__main__")
