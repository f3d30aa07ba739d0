"""A real gradio_client against a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import serving
from gradio_client import Client


@pytest.fixture(scope="session")
def server() -> serving.Server:
    return serving.running()


@pytest.fixture(scope="session")
def client(server: serving.Server) -> Iterator[Client]:
    client = Client(server.url, verbose=False, analytics_enabled=False)
    yield client
    client.close()
