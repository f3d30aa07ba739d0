"""A view of somebody's own, taken in for the time of these tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import own_view as written
import pytest

from transformer import views


@pytest.fixture(scope="module")
def own_view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a throw-away view."""
    folder = written.write(tmp_path_factory.mktemp("views"))
    views.add_views([folder])
    yield folder
    views.__path__.remove(str(folder))
    del views.VIEWS["label_lengths"], views.PICTURES["label_lengths"]
    del sys.modules["transformer.views.label_lengths"]
