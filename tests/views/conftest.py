"""Views of somebody's own, taken in for the time of these tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import own_view as written
import pytest

from transformer import views
from transformer.messages import catalogues


@pytest.fixture(scope="module")
def own_view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a two throw-away views."""
    folder = written.write(tmp_path_factory.mktemp("views"))
    views.add_views([folder])
    yield folder
    views.__path__.remove(str(folder))
    for name in ("label_lengths", "first_letters"):
        del views.VIEWS[name], views.PICTURES[name], sys.modules[f"transformer.views.{name}"]
    catalogues._OTHERS.remove(folder / "first_letters")
    catalogues.catalogue.cache_clear()
