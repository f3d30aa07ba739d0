"""The views of the document that says how one is written: in a folder that the package does not
know, or in the package; and what the one with a component says in other languages too."""

import re
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "views.md"
FILE = re.compile(r"^```\w+\n((?:#|//|/\*) my-views/(\S+).*?)^```$", re.MULTILINE | re.DOTALL)
SAID = {
    "es": ("Letras", "Letras iniciales", "Como máximo"),
    "fr": ("Lettres", "Premières lettres", "Au plus"),
    "zh": ("字母", "首字母", "最多"),
}


def blocks() -> dict[str, str]:
    """The document's files, by their path in the folder of views."""
    return {name: text for text, name in FILE.findall(DOCUMENT.read_text(encoding="utf-8"))}


def write(folder: Path) -> Path:
    """Their packages in a folder; returns the folder, which is for `add_views` or --views.

    They are called own_lengths and own_letters, so that the package may hold the document's.
    """
    files = {renamed(name): renamed(text) for name, text in blocks().items()}
    for language, said in SAID.items():
        texts = zip(("Letters", "First letters", "At most"), said, strict=True)
        po = "\n".join(f'msgid "{english}"\nmsgstr "{own}"\n' for english, own in texts)
        files[f"own_letters/{language}.po"] = po
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def put_into(package: Path) -> None:
    """The same as views of the package itself."""
    for name, text in blocks().items():
        (package / "views" / name).parent.mkdir(exist_ok=True)
        (package / "views" / name).write_text(text, encoding="utf-8")


def renamed(text: str) -> str:
    """Under the names that the tests look for."""
    return text.replace("label_lengths", "own_lengths").replace("first_letters", "own_letters")
