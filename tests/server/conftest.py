"""What the tests of the server share."""

from collections.abc import Iterator

import pytest

from transformer.server.requests import answering
from transformer.server.slots import Caller


@pytest.fixture(autouse=True)
def no_caller() -> Iterator[None]:
    """No test goes on with the caller of the one before."""
    with answering(Caller()):
        yield
