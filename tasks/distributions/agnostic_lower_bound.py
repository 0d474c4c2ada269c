"""The instance on which every agnostic learner needs many examples: labels that are hardly better than coins."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Gt, Le

from predcube.tasks.distributions.symmetric import Point, Symmetric
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class AgnosticLowerBound(Symmetric):
    """d shattered points of equal probability, labelled by a function drawn uniformly from {0, 1}^d before the sample;
    a record carries its point's label with probability ½ + 4α, the other one with ½ − 4α.

    Guessing has excess error 4α, so that excess error α takes seven labels in eight: Ω(d/α²) records for any learner.
    """

    alpha: Annotated[float, Gt(0), Le(0.125)]

    kind: ClassVar[str] = "agnostic_lower_bound"
    source: ClassVar[str] = "Shalev-Shwartz & Ben-David 2014, section 28.2.2 (ρ = 8ε)"

    def __post_init__(self) -> None:
        check(self)

    @property
    def smallest_domain(self) -> int:
        return 1

    def alike(self, hypotheses: HypothesisClass) -> tuple[Point, ...]:
        d = len(hypotheses.domain if hypotheses.domain is not None else ())
        return (Point(times=d, weight=1.0 / d, noise=0.5 - 4.0 * self.alpha),)
