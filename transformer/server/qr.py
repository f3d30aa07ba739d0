"""A link as a QR code, with an address that others can open: never that of this machine alone."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import segno

from transformer.checks import InvalidRequest, check_names, shortened
from transformer.server.resources import Question

# That version 19 holds: 93 modules across and four of margin on both sides. On a projector of 720
# lines each is 6 high, which a phone in the last row can still resolve.
MOST_CHARACTERS = 792
# (row + column) % 3, the most even mask or nearly, for addresses of many kinds. To try all eight
# takes eight times as long.
MASK = 3
# Addresses for documentation (RFC 5737 and 3849): asked for the way there, a machine names its
# own address on its network. Nothing is sent.
ELSEWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def code_question(host: str | None, port: int | None, root: str = "") -> Question:
    """The question for a QR code of the page's link. For the parameters see `reachable`.

    {"page", "query"}: the address at which the asking browser sees the page, and the part after its
    "#"; or {"page", "path"}, a path below it -> {"address", "picture"}; the picture is an SVG as a
    data: address. Raises ValueError, with a remedy, where other devices could not open the address
    or no camera could read the code.
    """

    def code(data: dict[str, Any]) -> dict[str, Any]:
        check_names("code", data, ("page", "query", "path"))
        for name, got in ({"page": None, "query": "", "path": ""} | data).items():
            if not isinstance(got, str):
                raise ValueError(f"{name} must be a string; got {shortened(got)}")
        address = reachable(data["page"], host, port, root=root) + data.get("path", "")
        address += f"#{data['query']}" if data.get("query") else ""
        return {"address": address, "picture": picture(address)}

    return Question(name="code", work=code)


def reachable(
    page: str,
    host: str | None,
    port: int | None,
    own: Callable[[], str | None] | None = None,
    root: str = "",
) -> str:
    """The page's address for others: its public one, or this machine's own on its network.

    own: finds the latter. root: the path below which the page is served, or its whole address.
    Raises ValueError if there is none.
    """
    seen = urlsplit(page)
    if seen.scheme not in ("http", "https") or not seen.hostname or not page.isascii():
        raise ValueError(f"page must be an http(s) URL; got {shortened(page)}")
    if not is_here(seen.hostname):
        return page
    if "://" in root:
        return f"{root}/"
    if host is None or (is_here(host) and not is_everywhere(host)):
        raise InvalidRequest(
            "only_here",
            "This page is served for this machine alone, so a code would lead nobody here. "
            "Start it with {command}: then everybody on the same network can open it.",
            command="python app.py --host 0.0.0.0",
        )
    name = (own or own_address)() if is_everywhere(host) else host.strip("[]")
    if name is None:
        raise InvalidRequest(
            "no_network", "This machine is on no network, so nobody else can open the page."
        )
    return f"http://{f'[{name}]' if ':' in name else name}:{port}{root}/"


def picture(address: str) -> str:
    """The address as a QR code, an SVG in a data: address: black on white with its margin, which
    readers need in the dark too. Raises ValueError if it would be too fine."""
    n_bytes = len(address.encode())
    if n_bytes > MOST_CHARACTERS:
        raise InvalidRequest(
            "too_long_for_code",
            "The link to this has {got} characters; a code that can be read from the "
            "last row holds {most}. Shorten the text or alter less, or pass the link on as text.",
            got=n_bytes,
            most=MOST_CHARACTERS,
        )
    code = segno.make(address, error="l", micro=False, mask=MASK)
    return str(code.svg_data_uri(border=4, dark="#000", light="#fff", omitsize=True))


def is_here(host: str) -> bool:
    """Whether a name or address means the machine that asks, whichever that is."""
    try:
        number = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host.rstrip(".").lower().split(".")[-1] == "localhost"
    return number.is_loopback or number.is_unspecified


def is_everywhere(host: str) -> bool:
    """Whether a server that listens there is reached from every network it is on."""
    return host.strip("[]") in ("0.0.0.0", "::", "")


def own_address() -> str | None:
    """This machine's address on the network through which it reaches others; None without one."""
    for family, other in ELSEWHERE:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asked:
            asked.connect((other, 9))
            found = str(asked.getsockname()[0])
            if not is_here(found) and not ipaddress.ip_address(found).is_link_local:
                return found
    return None
