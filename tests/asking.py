"""How tests ask a view what the page asks it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from transformer.ui.experiments import Experiments
from transformer.ui.store import RunStore
from transformer.ui.view_functions import Ask, functions
from transformer.ui.visitors import shares

# Of a service only what makes dropped runs again is looked at, and here no run is dropped.
_SERVICE = SimpleNamespace(shares=shares(), store=None)


def asking(of: RunStore | Experiments, name: str) -> Ask:
    """The page's function of a picture; a store is enough where the network is not asked."""
    holder: Any = SimpleNamespace(store=of, service=_SERVICE) if isinstance(of, RunStore) else of
    return functions(holder)[name]
