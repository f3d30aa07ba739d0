"""What the tests of the server share."""

from collections.abc import Iterator

import pytest

from transformer.server.http.requests import answering
from transformer.server.http.slots import Caller


@pytest.fixture(autouse=True)
def no_caller() -> Iterator[None]:
    """No test goes on with the caller of the one before."""
    with answering(Caller()):
        yield
