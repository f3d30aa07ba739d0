"""Errors as visitors and programs get them: a code, and a sentence in the request's language.

The page's scripts name their language in each request; programs do not, and get English.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response
from starlette.responses import JSONResponse

from transformer.checks import InvalidRequest
from transformer.messages import say, say_error
from transformer.server.http.limits import (
    CLIENT_S,
    MAX_HASH,
    MAX_PARAMETERS,
    MAX_QUERY_BYTES,
    MAX_REQUEST_BYTES,
    MAX_REQUEST_VALUES,
    RETRY_S,
)
from transformer.server.http.process import FAULTS

MAX_SENTENCE = 500  # characters
NO_STORE = "private, no-store"

BUSY = InvalidRequest("busy", "The server is busy with other requests; try again in a moment.")
YOURS_WAIT = InvalidRequest(
    "too_many_waiting",
    "Too many of your own requests are waiting already; try again in a moment.",
)
NO_MEMORY = InvalidRequest(
    "no_memory", "The server has no memory left for this; try again with a shorter text."
)
ENDING = InvalidRequest("shutting_down", "The server is shutting down; try again in a moment.")
NO_RUN = InvalidRequest("run_expired", "the server no longer keeps this run; generate it again")
NO_CLASS = InvalidRequest("no_class", "There is no such class, or it is over.")
MISTAKE = InvalidRequest("server_error", "Something went wrong on the server.")
TOO_LARGE = InvalidRequest(
    "request_too_large", "A request must have at most {most} bytes.", most=MAX_REQUEST_BYTES
)
TOO_MANY = InvalidRequest(
    "request_too_large",
    "A request must have at most {most} commas and opening brackets.",
    most=MAX_REQUEST_VALUES,
)
TOO_LONG = InvalidRequest(
    "query_too_long",
    "A request's query must have at most {most} bytes and {parameters} parameters.",
    most=MAX_QUERY_BYTES,
    parameters=MAX_PARAMETERS,
)
TOO_SLOW = InvalidRequest(
    "request_too_slow", "A request must arrive within {seconds} s.", seconds=CLIENT_S
)
TOO_DEEP = InvalidRequest("too_deep", "The values are nested too deeply.")
UNREADABLE = InvalidRequest("unreadable", "The request could not be read.")
FOREIGN = InvalidRequest(
    "other_site", "Only the page itself may ask this, not a page of another site."
)
NO_EVENT = InvalidRequest("no_event", "The server has no such event, or has answered it already.")
NO_HASH = InvalidRequest(
    "session_hash", "A session_hash must have from 1 to {most} characters.", most=MAX_HASH
)
CLOSED = InvalidRequest(
    "not_found", "This address is closed: the page takes no files and serves none but its own."
)


CLIENT_ERRORS = (ValueError, RecursionError)  # by what was asked; all else is a fault of the server


class Refused(InvalidRequest):
    """A request that is refused with another HTTP status than 400. headers: of the answer."""

    def __init__(
        self, status: int, reason: InvalidRequest, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(reason.code, reason.sentence, **reason.values)
        self.status, self.headers = status, headers or {}


class Busy(Refused):
    """A request that is refused because too many wait already."""

    def __init__(self, reason: InvalidRequest = BUSY) -> None:
        super().__init__(503, reason, {"retry-after": str(RETRY_S)})


class RunExpired(Refused):
    """An id of a run that is not stored, or that was evicted."""

    def __init__(self, reason: InvalidRequest = NO_RUN) -> None:
        super().__init__(410, reason)


def public_error(error: Exception, names: Mapping[str, str] | None = None) -> dict[str, str]:
    """The code and the sentence of an error, as one line; a very long one is cut in the middle. It
    says nothing about a fault of the server.

    names: what the page calls the settings that a sentence may name.
    """
    if not isinstance(error, ValueError):
        error = TOO_DEEP if isinstance(error, CLIENT_ERRORS) else MISTAKE
    if isinstance(error, InvalidRequest) and names and error.values.get("name") in names:
        values = {**error.values, "name": say(names[str(error.values["name"])])}
        error = InvalidRequest(error.code, error.sentence, **values)
    line, half = " ".join(say_error(error).split()), MAX_SENTENCE // 2
    if len(line) > MAX_SENTENCE:
        line = f"{line[:half]} … {line[-half:]}"
    return {"detail": line, "code": getattr(error, "code", "invalid_request")}


def reported(error: Exception) -> dict[str, str]:
    """`public_error` of an exception; a fault of the server is logged, without values."""
    if not isinstance(error, CLIENT_ERRORS):
        FAULTS.error("a mistake", exc_info=error)
    return public_error(error)


def error_response(error: Exception) -> Response:
    """An error as an answer: a code and a sentence, with its status."""
    usual = 400 if isinstance(error, CLIENT_ERRORS) else 500
    headers = {"cache-control": NO_STORE, **getattr(error, "headers", {})}
    return JSONResponse(public_error(error), getattr(error, "status", usual), headers)


async def _answer(_: Request, error: Exception) -> Response:
    return error_response(error)


# By which an app answers errors of its routes.
HANDLERS: dict[Any, Any] = dict.fromkeys((*CLIENT_ERRORS, Exception), _answer)
