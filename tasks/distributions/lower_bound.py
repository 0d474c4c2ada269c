"""The instance on which every stable learner needs many examples."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Gt, Le

from predcube.tasks.distributions.symmetric import Point, Symmetric
from predcube.tasks.hypotheses.base import HypothesisClass
from predcube.tasks.parameters import check


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound(Symmetric):
    """d shattered points: Pr[x = k] = 4α/(d − 1) for each but the last, 1 − 4α for the last; the labels are a
    function drawn uniformly from {0, 1}^d before the sample, anew in each trial and part of its population."""

    alpha: Annotated[float, Gt(0), Le(0.25)]

    kind: ClassVar[str] = "lower_bound"
    source: ClassVar[str] = "Dagan & Feldman 2020, Theorem sta-lb (proof)"

    def __post_init__(self) -> None:
        check(self)

    @property
    def smallest_domain(self) -> int:
        return 2

    def alike(self, hypotheses: HypothesisClass) -> tuple[Point, ...]:
        light = len(hypotheses.domain if hypotheses.domain is not None else ()) - 1
        return (
            Point(times=light, weight=4.0 * self.alpha / light),
            Point(times=1, weight=1.0 - 4.0 * self.alpha),
        )
