"""Laws of data: ``build(kind, **parameters)`` makes one, ``KINDS`` names those a spec can write out.

``Table`` is the law of real data; whoever has read the rows makes it.
"""

from typing import Any

from predcube.tasks import parameters as declared
from predcube.tasks.distributions.agnostic_lower_bound import AgnosticLowerBound
from predcube.tasks.distributions.base import Distribution, Draw, Population
from predcube.tasks.distributions.concept import Concept, Threshold
from predcube.tasks.distributions.joint import Joint
from predcube.tasks.distributions.lower_bound import LowerBound
from predcube.tasks.distributions.populations import FinitePopulation, UniformPopulation
from predcube.tasks.distributions.table import HeldOut, Table

KINDS: dict[str, type[Distribution]] = {c.kind: c for c in (Threshold, Concept, LowerBound, AgnosticLowerBound, Joint)}


def build(kind: str, **parameters: Any) -> Distribution:
    """The law of this kind (also "table", from arrays); ValueError names the nearest known kind or parameter.

    >>> build("threshold", at=4, noise=0.1).parameters()
    {'at': 4.0, 'noise': 0.1}
    """
    kinds: dict[str, type[Distribution]] = {**KINDS, Table.kind: Table}
    return declared.build(kinds, kind, parameters, family="distribution")


__all__ = [
    "KINDS",
    "AgnosticLowerBound",
    "Concept",
    "Distribution",
    "Draw",
    "FinitePopulation",
    "HeldOut",
    "Joint",
    "LowerBound",
    "Population",
    "Table",
    "Threshold",
    "UniformPopulation",
    "build",
]
