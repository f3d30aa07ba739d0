"""Every route of an application, those of mounted and included ones too."""

from collections.abc import Iterable, Iterator
from typing import Any

from starlette.routing import Mount


def routes_of(routes: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, set[str]]]:
    """(path with its parameters in braces, methods) of each; a mounted app of functions is one
    route of no method."""
    for route in routes:
        if hasattr(route, "effective_route_contexts"):  # FastAPI's included router
            for each in route.effective_route_contexts():
                methods = getattr(each.starlette_route or each, "methods", None)
                yield prefix + path_of(each.starlette_route or each), methods or set()
            continue
        path = prefix + path_of(route)
        inside = getattr(route, "routes", None)
        if inside:
            yield from routes_of(inside, path)
        else:
            yield path, getattr(route, "methods", None) or set()


def path_of(route: Any) -> str:
    """That of a mounted app ends before its own."""
    is_mounted = isinstance(route, Mount)
    return str(route.path if is_mounted else getattr(route, "path_format", None) or route.path)


def filled(path: str, values: dict[str, str], otherwise: str = "x") -> str:
    """A route's path with its parameters filled in."""
    for name in {part.split("}")[0] for part in path.split("{")[1:]}:
        path = path.replace(f"{{{name}}}", values.get(name.split(":")[0], otherwise))
    return path
