"""Views of somebody's own, in a folder that the package does not know: those of the document that
says how one is written, and what the one with a component says in other languages too."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "contributing.md"
FILE = re.compile(r"^```\w+\n((?:#|//|/\*) my-views/(\S+).*?)^```$", re.MULTILINE | re.DOTALL)
SAID = {
    "es": ("Letras", "Letras iniciales", "Como máximo"),
    "fr": ("Lettres", "Premières lettres", "Au plus"),
    "zh": ("字母", "首字母", "最多"),
}


def write(folder: Path) -> Path:
    """Their packages in a folder; returns the folder, which is for `add_views` or --views."""
    files = {name: text for text, name in FILE.findall(DOCUMENT.read_text(encoding="utf-8"))}
    for language, said in SAID.items():
        texts = zip(("Letters", "First letters", "At most"), said, strict=True)
        po = "\n".join(f'msgid "{english}"\nmsgstr "{own}"\n' for english, own in texts)
        files[f"first_letters/{language}.po"] = po
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
