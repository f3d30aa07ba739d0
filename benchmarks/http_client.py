"""HTTP for many simulated visitors in one process, at a fraction of a general client's CPU.

It knows what this project's server sends, no more: HTTP/1.1 without redirects, cookies or TLS.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import brotli

TIMEOUT_S = 60.0  # for an answer to begin, and for each part of it
IDLE_S = 2.0  # of a connection that is used again; the server closes it after five
LOST = (OSError, EOFError)  # what a lost connection raises, a timeout included


class Answer:
    """An answer's status and headers, and its body as it is read."""

    def __init__(self, status: int, headers: Mapping[str, str], reader: asyncio.StreamReader):
        self.status, self.headers, self._reader = status, headers, reader
        self.is_read = False

    async def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        length = self.headers.get("content-length")
        if length is not None:
            whole = await self._reader.readexactly(int(length))
            self.is_read = True
            yield whole
            return
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readuntil(b"\r\n")
        self.is_read = True

    async def body(self) -> bytes:
        """The whole body."""
        whole = b"".join([part async for part in self.parts()])
        is_packed = self.headers.get("content-encoding") == "br"
        return bytes(brotli.decompress(whole)) if is_packed else whole

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of the body as they come, without their ends."""
        rest = b""
        async for part in self.parts():
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                yield line
        if rest:
            yield rest


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer that has been read."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """What the body says."""
        return json.loads(self.body)


class Client:
    """Requests to one server; each connection is used again once its answer has been read."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._address = place.hostname or "", place.port or 80
        self._path, self._host = place.path.rstrip("/"), place.netloc
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def get(self, path: str) -> Whole:
        """A page or a file."""
        return await self._whole("GET", path, b"", {"accept-encoding": "br"})

    async def post(self, path: str, data: Any, headers: Mapping[str, str] | None = None) -> Whole:
        """The answer to a request in JSON."""
        all_headers = {"accept-encoding": "br", **(headers or {})}
        return await self._whole("POST", path, json.dumps(data).encode(), all_headers)

    @asynccontextmanager
    async def stream(
        self, path: str, data: Any, headers: Mapping[str, str]
    ) -> AsyncIterator[Answer]:
        """The same while it comes."""
        async with self._asked("POST", path, json.dumps(data).encode(), headers) as answer:
            yield answer

    def close(self) -> None:
        """Close what is idle."""
        for _, _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def _whole(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> Whole:
        async with asyncio.timeout(TIMEOUT_S), self._asked(method, path, body, headers) as answer:
            return Whole(answer.status, answer.headers, await answer.body())

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> AsyncIterator[Answer]:
        reader, writer = await self._connection()
        head = {"host": self._host, **headers}
        if method == "POST":
            head |= {"content-type": "application/json", "content-length": str(len(body))}
        lines = [f"{method} {self._path}/{path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in head.items()]
        is_kept = False
        try:
            writer.write("\r\n".join([*lines, "\r\n"]).encode() + body)
            async with asyncio.timeout(TIMEOUT_S):
                received = await reader.readuntil(b"\r\n\r\n")
            status, *fields = received.decode("latin-1").rstrip().split("\r\n")
            pairs = (field.split(": ", 1) for field in fields)
            found = {name.lower(): value for name, value in pairs}
            answer = Answer(int(status.split()[1]), found, reader)
            yield answer
            is_kept = answer.is_read and found.get("connection") != "close"
        finally:
            if is_kept:
                self._idle.append((time.monotonic(), reader, writer))
            else:
                writer.close()

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The one used last, if the server has surely not closed it, else a new one."""
        while self._idle:
            since, reader, writer = self._idle.pop()
            if time.monotonic() - since < IDLE_S and not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(*self._address)
