"""Laws with a concept: x uniform on X, its label a function of x, flipped with some probability."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from predcube.tasks.distributions.base import Distribution, Draw, Population
from predcube.tasks.distributions.populations import FinitePopulation, UniformPopulation, flipped, labelled_law
from predcube.tasks.hypotheses.base import HypothesisClass, Points
from predcube.tasks.parameters import check


class ConceptLaw(Distribution):
    """x uniform on a finite X, or on [0, 1]^features for a real one; y = c(x), flipped with probability ``noise``."""

    __slots__ = ()

    noise: float

    @abstractmethod
    def labels(self, hypotheses: HypothesisClass, points: Points) -> NDArray[np.uint8]:
        """c at ``points``: shape (m,)."""

    @abstractmethod
    def named(self, hypotheses: HypothesisClass) -> Any:
        """The name by which a class on a real X knows the concept."""

    def infeasible(self, n: int) -> str | None:
        return None if n >= 1 else f"n = {n}: a sample has at least one example"

    def draw(self, hypotheses: HypothesisClass, n: int, rng: np.random.Generator) -> Draw:
        domain = hypotheses.domain
        x: Points
        if domain is not None:
            x = domain[rng.integers(len(domain), size=n)]
        else:
            x = rng.random(n) if hypotheses.features == 1 else rng.random((n, hypotheses.features))
        y = flipped(self.labels(hypotheses, x), self.noise, rng)
        return Draw(x=x, y=y, population=_population(self, hypotheses))


@lru_cache(maxsize=128)
def _population(law: ConceptLaw, hypotheses: HypothesisClass) -> Population:
    domain = hypotheses.domain
    if domain is None:
        return UniformPopulation(concept=hypotheses.named(law.named(hypotheses)), noise=law.noise)
    weights = np.full(len(domain), 1.0 / len(domain))
    return FinitePopulation(points=domain, law=labelled_law(law.labels(hypotheses, domain), weights, law.noise))


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold(ConceptLaw):
    """x uniform on X ([0, 1] where X is the line), y = 1{x ≥ at} flipped with probability ``noise``."""

    at: float
    noise: Annotated[float, Ge(0), Le(0.5)] = 0.0

    kind: ClassVar[str] = "threshold"
    source: ClassVar[str] = "random classification noise about a threshold"

    def __post_init__(self) -> None:
        check(self)

    def unsuitable(self, hypotheses: HypothesisClass) -> str | None:
        if hypotheses.features != 1:
            return f"distribution 'threshold' needs points on a line; {hypotheses.kind!r} has {hypotheses.features}"
        return None if hypotheses.domain is not None else _unknown(self, hypotheses)

    def labels(self, hypotheses: HypothesisClass, points: Points) -> NDArray[np.uint8]:
        return np.asarray(points >= self.at, dtype=np.uint8)

    def named(self, hypotheses: HypothesisClass) -> Any:
        return self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Concept(ConceptLaw):
    """x uniform on X ([0, 1]^features where X is real), labelled by the function of the class that ``hypothesis`` names
    (a threshold's cut, bounds of a box, a halfspace's normal and offset, a table's row: each class says how) and
    flipped with probability ``noise``."""

    hypothesis: int | float | str | tuple[int | float, ...]
    noise: Annotated[float, Ge(0), Le(0.5)] = 0.0

    kind: ClassVar[str] = "concept"
    source: ClassVar[str] = "random classification noise about a function of the class"

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "hypothesis", _plain(self.hypothesis))

    def unsuitable(self, hypotheses: HypothesisClass) -> str | None:
        return _unknown(self, hypotheses)

    def labels(self, hypotheses: HypothesisClass, points: Points) -> NDArray[np.uint8]:
        return np.asarray(hypotheses.predict(hypotheses.named(self.hypothesis), points)[0])

    def named(self, hypotheses: HypothesisClass) -> Any:
        return self.hypothesis


def _unknown(law: ConceptLaw, hypotheses: HypothesisClass) -> str | None:
    """Why the class does not know the concept or, on a real X, no error can be computed; None if it can."""
    try:
        concept = hypotheses.named(law.named(hypotheses))
        if hypotheses.domain is None:
            hypotheses.disagreement(concept, concept)
    except ValueError as e:
        return f"distribution {law.kind!r}: {e}"
    return None


def _plain(name: Any) -> int | float | str | tuple[int | float, ...]:
    """A name in one spelling, since it identifies a stream: 4.0 is 4, a list is a tuple."""
    if isinstance(name, str):
        return name
    several = isinstance(name, list | tuple | np.ndarray)
    entries = list(name) if several else [name]
    for v in entries:
        number = isinstance(v, int | float | np.integer | np.floating) and not isinstance(v, bool) and math.isfinite(v)
        if not number:
            raise ValueError(f"concept: hypothesis = {name!r} must be a finite number, text or a list of numbers")
    numbers = [int(v) if float(v).is_integer() else float(v) for v in entries]
    return tuple(numbers) if several else numbers[0]
