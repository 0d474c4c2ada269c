"""Where samples come from: in goes a generator and n, out come a sample and the population it is judged by.

A population knows the error of any hypothesis and the least error in the class, so the error of a mixture is a
weighted sum over its hypotheses: exact where the law is known, measured on the rows left out where it is a table.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Points, Representatives


class Population(Protocol):
    """What a hypothesis is judged by."""

    @property
    def exact(self) -> bool:
        """False when errors are measured on held-out rows."""
        ...

    def errors(self, hypotheses: HypothesisClass, representatives: Representatives) -> NDArray[np.float64]:
        """L_D(h) of each representative: shape (M,)."""
        ...

    def least_error(self, hypotheses: HypothesisClass) -> float:
        """inf_H L_D(h)."""
        ...

    def quadrature(self, hypotheses: HypothesisClass, points: Points) -> tuple[Points, NDArray[np.float64]]:
        """Queries (Q, …) and the probabilities ``mass`` (Q, 2) of each label beside them, by which the error of any
        predictor that is constant between the sample's ``points`` is a sum: Σ_q p(q)·mass[q, 0] + (1 − p(q))·mass[q,
        1]. ValueError where there is none (a uniform law of several features)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One sample: ``x`` (n,) or (n, features), ``y`` (n,) of 0 and 1, and the population that judges it."""

    x: Points
    y: NDArray[np.uint8]
    population: Population


class Distribution(ABC):
    """A law of labelled examples. Concrete ones are frozen, keyword-only dataclasses whose fields are the
    parameters a spec may give."""

    __slots__ = ()

    kind: ClassVar[str]
    source: ClassVar[str]

    @abstractmethod
    def unsuitable(self, hypotheses: HypothesisClass) -> str | None:
        """Why this law cannot be used with this class (its X does not fit), or None."""

    @abstractmethod
    def infeasible(self, n: int) -> str | None:
        """Why no sample of size n can be drawn, or None."""

    @abstractmethod
    def draw(self, hypotheses: HypothesisClass, n: int, rng: np.random.Generator) -> Draw:
        """One i.i.d. sample of size n (rows without replacement for a table). Uses of the class only its X."""

    def parameters(self) -> Mapping[str, Any]:
        """The parameters, named as in a spec: with the class's X they identify the stream of the draw."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]
