"""Any law on a finite X, given as the table of its probabilities."""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import MinLen
from numpy.typing import NDArray

from predcube.tasks.distributions.base import Distribution, Draw
from predcube.tasks.distributions.populations import FinitePopulation
from predcube.tasks.hypotheses.base import HypothesisClass

TOTAL_TOLERANCE = 1e-9
"""How far decimals as people write them may be from summing to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint(Distribution):
    """``table[j]`` = (Pr[x_j, y = 0], Pr[x_j, y = 1]) for the points x_0, x_1, … of X in sorted order."""

    table: Annotated[tuple[tuple[float, float], ...], MinLen(1)]

    kind: ClassVar[str] = "joint"
    source: ClassVar[str] = "any law on a finite X"
    _law: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = _checked_table(self.table)
        object.__setattr__(self, "table", rows)
        object.__setattr__(self, "_law", np.array(rows) / math.fsum(p for row in rows for p in row))

    def unsuitable(self, hypotheses: HypothesisClass) -> str | None:
        domain = hypotheses.domain
        if domain is None:
            return "distribution 'joint' needs a finite X; give the hypotheses points"
        if len(domain) != len(self.table):
            return f"distribution 'joint' has {len(self.table)} rows and X has {len(domain)} points; give one row each"
        return None

    def infeasible(self, n: int) -> str | None:
        return None if n >= 1 else f"n = {n}: a sample has at least one example"

    def draw(self, hypotheses: HypothesisClass, n: int, rng: np.random.Generator) -> Draw:
        domain = hypotheses.domain
        if domain is None:
            raise ValueError(self.unsuitable(hypotheses))
        cell = rng.choice(self._law.size, size=n, p=self._law.ravel())
        return Draw(x=domain[cell // 2], y=(cell % 2).astype(np.uint8), population=_population(self, hypotheses))


@lru_cache(maxsize=128)
def _population(law: Joint, hypotheses: HypothesisClass) -> FinitePopulation:
    domain = hypotheses.domain
    assert domain is not None
    return FinitePopulation(points=domain, law=law._law)


def _checked_table(table: object) -> tuple[tuple[float, float], ...]:
    rows = []
    for j, row in enumerate(table if isinstance(table, (list, tuple)) else np.asarray(table).tolist()):
        entries = tuple(row) if isinstance(row, (list, tuple, np.ndarray)) else (row,)
        if len(entries) != 2:
            raise ValueError(f"joint: row {j} of table has {len(entries)} entries; give Pr[x, 0] and Pr[x, 1]")
        for p in entries:
            if isinstance(p, (bool, str)) or not 0 <= p <= 1:
                raise ValueError(f"joint: row {j} of table has {p!r}, which is no probability; give numbers in [0, 1]")
        rows.append((float(entries[0]) + 0.0, float(entries[1]) + 0.0))
    total = math.fsum(p for row in rows for p in row)
    if abs(total - 1.0) > TOTAL_TOLERANCE:
        raise ValueError(f"joint: the probabilities of table sum to {total:.12g}; they must sum to 1")
    return tuple(rows)
