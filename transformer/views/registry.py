"""Every view and every picture, by name.

To add a view: a folder in this one, with a module that declares it (see `declaration.py`).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from transformer import views
from transformer.checks import shortened
from transformer.messages import add_catalogues
from transformer.views.declaration import Picture, View

VIEWS: dict[str, View] = {}
PICTURES: dict[str, Picture] = {}


def add_views(folders: Sequence[str | Path]) -> None:
    """Add the views of these folders, whose packages are named like views.

    Raises ValueError for a name that is taken, and for a VIEW that is no `View`.
    """
    paths = [str(Path(folder)) for folder in folders]
    views.__path__.extend(path for path in paths if path not in views.__path__)
    for view in find_views(paths):
        taken = {picture.name for picture in view.pictures} & set(PICTURES)
        if view.name in VIEWS or taken:
            raise ValueError(
                f"the view {shortened(view.name)} and its pictures need names of their own"
            )
        VIEWS[view.name] = view
        add_catalogues(view.folder)
        PICTURES.update({picture.name: picture for picture in view.pictures})


def find_views(folders: Sequence[str]) -> list[View]:
    """The views that the modules in the packages of these folders declare, sorted by name.

    Raises ValueError for a VIEW that is not a `View`, and for a name that is used twice.
    """
    by_name: dict[str, View] = {}
    for name in _modules(folders):
        module = importlib.import_module(f"{views.__name__}.{name}")
        for view in _declared(module):
            if not isinstance(view, View):
                raise ValueError(f"VIEW of {name} must be a View; got {shortened(view)}")
            view = replace(view, folder=Path(str(module.__file__)).parent)
            if by_name.setdefault(view.name, view) != view:
                raise ValueError(f"two views are called {shortened(view.name)}")
    return [by_name[name] for name in sorted(by_name)]


def _declared(module: ModuleType) -> Iterator[Any]:
    """The module's VIEW, and those of its functions that are decorated."""
    if hasattr(module, "VIEW"):
        yield module.VIEW
    for value in vars(module).values():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield from (value.view,) if hasattr(value, "view") else ()


def _modules(folders: Sequence[str]) -> Iterator[str]:
    """The packages of these folders and their modules: "attention", "attention.heatmap"."""
    for package in pkgutil.iter_modules(folders):
        if package.ispkg:
            yield package.name
            inside = [str(Path(folder) / package.name) for folder in folders]
            yield from (f"{package.name}.{module.name}" for module in pkgutil.iter_modules(inside))


def own_views() -> list[View]:
    """The views of other folders than this one."""
    return [view for view in VIEWS.values() if view.folder.parent != Path(__file__).parent]


add_views(list(views.__path__))
