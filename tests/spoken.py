"""app.py, which speaks one more language, "eo": every sentence of the template in ⟦ ⟧.

What is filled into a sentence stands outside of them: it has to be said too.
"""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from babel.messages.pofile import read_po  # noqa: E402

from transformer.messages import catalogues  # noqa: E402
from transformer.messages.compile import HOLE  # noqa: E402
from transformer.messages.extract import TEMPLATE, of_scripts  # noqa: E402


def _bracketed(sentence: str) -> str:
    filled = HOLE.sub(r"⟧{\1}⟦", sentence)
    return f"⟦{filled}⟧".replace("⟦⟧", "")


def bracketed() -> dict[str, object]:
    """A catalogue in which nothing can be missed."""
    with TEMPLATE.open("rb") as file:
        ids = [message.id for message in read_po(file) if message.id]
    messages: dict[str, object] = {}
    for one in ids:
        if isinstance(one, str):
            messages[one] = _bracketed(one)
        else:
            messages[one[0]] = [_bracketed(form) for form in one]
    forms = "".join("0" if n == 1 else "1" for n in range(200))
    signs = {"decimal": ",", "group": ".", "group_from": 4}
    scripts = {key: messages.pop(key) for key in of_scripts() & messages.keys()}
    named = {"name": "Brackets", "tag": "eo"}
    return {"forms": forms, **named, **signs, "scripts": scripts, "messages": messages}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        catalogues.FOLDER = Path(folder)
        (catalogues.FOLDER / "eo.json").write_text(json.dumps(bracketed()), encoding="utf-8")
        catalogues.catalogue("eo")
        catalogues.languages()
    runpy.run_path(str(ROOT / "app.py"), run_name="__main__")
