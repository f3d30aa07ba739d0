"""The documents of the project, in English and in other languages."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")])


def document_name(document: Path) -> str:
    """Its path in the repository."""
    return document.relative_to(ROOT).as_posix()
