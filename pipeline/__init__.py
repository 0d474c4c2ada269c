"""Composes the other rooms: a spec becomes a plan, a plan fills a cube, a cube is reduced and queried.

The public names load when they are first used, so that ``predcube --help`` and a worker pay only for what they need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from predcube.pipeline.answering import predictability
    from predcube.pipeline.bisection import search
    from predcube.pipeline.execution import run
    from predcube.pipeline.lipschitz_families import lipschitz_family
    from predcube.pipeline.planning import plan
    from predcube.pipeline.queries import query
    from predcube.pipeline.spec import load_spec

__all__ = ["lipschitz_family", "load_spec", "plan", "predictability", "query", "run", "search"]

_HOMES = {
    "lipschitz_family": "lipschitz_families",
    "load_spec": "spec",
    "plan": "planning",
    "predictability": "answering",
    "query": "queries",
    "run": "execution",
    "search": "bisection",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
