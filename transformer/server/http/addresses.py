"""The page's address: accepted Host names, the path below which a proxy serves it, QR codes."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

import segno
from starlette.types import ASGIApp, Receive, Scope, Send

from transformer.checks import InvalidRequest, check_names, shortened
from transformer.server.http.errors import Refused

# That version 19 holds: 93 modules across and four of margin on both sides. On a projector of 720
# lines each is 6 high, which a phone in the last row can still resolve.
MOST_CHARACTERS = 792
# (row + column) % 3, the most even mask or nearly, for addresses of many kinds. To try all eight
# takes eight times as long.
MASK = 3
# Addresses for documentation (RFC 5737 and 3849): asked for the way there, a machine names its
# own address on its network. Nothing is sent.
ELSEWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def root_path() -> str:
    """The path or the address below which a proxy serves the page (GRADIO_ROOT_PATH: /viz or
    https://HOST/viz); "" for none."""
    root = os.environ.get("GRADIO_ROOT_PATH", "").strip("/")
    return root if "://" in root or not root else f"/{root}"


def path_below(root: str) -> str:
    """The path of a `root_path`, "/viz", as a request's path has it; "" for none."""
    path = unquote(urlsplit(root).path).strip("/")
    return f"/{path}" if path else ""


class BelowPath:
    """Middleware: give every request the path that ASGI asks for, `root_path` and what follows.

    Starlette's mounts need `root_path` in `path`, which a proxy may have removed. root: "/viz".
    """

    def __init__(self, app: ASGIApp, root: str) -> None:
        self.app, self.root = app, root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            root, path = self.root, scope["path"]
            whole = path if f"{path}/".startswith(f"{root}/") else root + path
            scope = {**scope, "root_path": root, "path": f"{root}/" if whole == root else whole}
        await self.app(scope, receive, send)


def hosts_for(host: str, trusted: Sequence[str], root: str) -> frozenset[str] | None:
    """The names that requests' Host headers may have; None: any.

    Only a server that listens on this machine alone checks them; the name in GRADIO_ROOT_PATH is
    accepted, and a proxy in FORWARDED_ALLOW_IPS may use any.
    """
    if "*" in trusted or not is_here(host) or os.environ.get("FORWARDED_ALLOW_IPS"):
        return None
    return frozenset(host_of(name) for name in (*trusted, root if "://" in root else "") if name)


def check_host(header: str, hosts: Collection[str]) -> None:
    """Raise Refused for a Host header that names neither this machine nor one of these."""
    name = host_of(header)
    if name not in hosts and not is_here(name):
        unknown = InvalidRequest(
            "unknown_host",
            "This server answers to localhost alone; got {got}. Its owner can allow other names "
            "with --trusted-hosts.",
            got=shortened(name),
        )
        raise Refused(421, unknown)


def code_maker(
    host: str | None, port: int | None, root: str
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Makes a QR code of the page's link. For the parameters see `reachable`.

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

    return code


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
    if not is_here(seen.hostname) and not is_everywhere(seen.hostname):
        return page
    if "://" in root:
        return f"{root}/"
    if host is None or is_here(host):
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
    """A QR code, an SVG in a data: address, black on white in dark themes too. Raises ValueError if
    it would be too fine."""
    n_bytes = len(address.encode())
    if n_bytes > MOST_CHARACTERS:
        raise InvalidRequest(
            "too_long_for_code",
            "The link to this has {got} characters; a code that can be read from the last "
            "row holds {most}. Shorten the text, make fewer changes, or pass the link on as text.",
            got=n_bytes,
            most=MOST_CHARACTERS,
        )
    code = segno.make(address, error="l", micro=False, mask=MASK)
    return str(code.svg_data_uri(border=4, dark="#000", light="#fff", omitsize=True))


def is_here(host: str) -> bool:
    """Whether a name or address always means the machine that asks; no other site can have it."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        return host.rstrip(".").lower().split(".")[-1] == "localhost"


def is_everywhere(host: str) -> bool:
    """Whether a server that listens there is reached from every network it is on."""
    return host.strip("[]") in ("0.0.0.0", "::", "")


def host_of(address: str) -> str:
    """The name or IP address in a Host header, an address of a page, or a name alone."""
    try:
        return urlsplit(address if "://" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""


def own_address() -> str | None:
    """This machine's address on the network through which it reaches others; None without one."""
    for family, other in ELSEWHERE:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((other, 9))
            address = str(probe.getsockname()[0])
            number = ipaddress.ip_address(address)
            if not (number.is_loopback or number.is_unspecified or number.is_link_local):
                return address
    return None
