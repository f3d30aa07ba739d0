"""What a package index shows of the README: hatchling asks for it when it builds the project.

Without the settings of a Space, the picture and the links to files, which lead nowhere from there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def index_readme(text: str) -> str:
    """The README's text for an index."""
    _, _, body = text.split("---\n", 2)
    links = r"\[([^\]]+)\]\((?!https?:)[^)]+\)"
    without_pictures = re.sub(rf"^!{links}\n\n", "", body.lstrip(), flags=re.MULTILINE)
    return re.sub(links, r"\1", without_pictures)


class ReadmeHook(MetadataHookInterface):
    """Called by hatchling, once a build."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the readme."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": index_readme(text)}
