"""Ridge regression as a release: least squares with a penalty that must be given."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Gt

from predcube.tasks.releases.regressions import LeastSquares


@dataclass(frozen=True, slots=True, kw_only=True)
class Ridge(LeastSquares):
    """λ minimises mean ½(λ_0 + xᵀw − y)² + (l2/2)|w|², in the units of the features, intercept free."""

    kind: ClassVar[str] = "ridge"

    l2: Annotated[float, Gt(0)]
