"""Real data: samples are rows of a table, and the rows left out are what a learner is judged by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.distributions.base import Distribution, Draw
from predcube.tasks.hypotheses.base import HypothesisClass, Points, Representatives
from predcube.tasks.hypotheses.points import distinct


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table(Distribution):
    """N rows ``x`` (N,) or (N, features) with labels ``y`` (N,) of 0 and 1. A sample is n rows drawn without
    replacement, n < N; the other rows are held out.

    ``digest`` names the content: it identifies the stream of a draw, so equal tables read from different files give
    equal samples.
    """

    x: Points
    y: NDArray[np.uint8]
    digest: str

    kind: ClassVar[str] = "table"
    source: ClassVar[str] = "rows of a file, drawn without replacement; errors on the rows left out"
    points: Points = field(init=False, repr=False)  # the distinct points, sorted
    place: NDArray[np.int64] = field(init=False, repr=False)  # where each row's point stands among them
    counts: NDArray[np.int64] = field(init=False, repr=False)  # (k, 2): rows with each label at each point

    def __post_init__(self) -> None:
        x, y = _checked_points(self.x), _checked_labels(self.y)
        if len(x) != len(y) or len(y) < 2:
            raise ValueError(f"table: {len(x)} points and {len(y)} labels; give one label per point, at least 2 rows")
        if not self.digest:
            raise ValueError("table: digest is empty; give a name of the content, such as its SHA-256")
        points, place = distinct(x)
        counts = np.bincount(2 * place + y, minlength=2 * len(points)).reshape(-1, 2)
        for name, value in (("x", x), ("y", y), ("points", points), ("place", place), ("counts", counts)):
            object.__setattr__(self, name, value)

    def parameters(self) -> Mapping[str, Any]:
        """The digest alone: it stands for the rows."""
        return {"digest": self.digest}

    def unsuitable(self, hypotheses: HypothesisClass) -> str | None:
        features = 1 if self.points.ndim == 1 else self.points.shape[1]
        if features != hypotheses.features:
            return (
                f"the table has {features} features and {hypotheses.kind!r} takes {hypotheses.features}; "
                "name as many columns in features"
            )
        try:
            hypotheses.predict(hypotheses.representatives(self.points[:1])[:1], self.points)
        except ValueError as e:
            return f"the table's points do not fit {hypotheses.kind!r}: {e}"
        return None

    def infeasible(self, n: int) -> str | None:
        if 1 <= n < len(self.y):
            return None
        return f"n = {n}: a table of {len(self.y)} rows gives samples of 1 to {len(self.y) - 1}, one row held out"

    def draw(self, hypotheses: HypothesisClass, n: int, rng: np.random.Generator) -> Draw:
        reason = self.infeasible(n)
        if reason:
            raise ValueError(reason)
        rows = rng.choice(len(self.y), size=n, replace=False)
        x, y = self.x[rows], self.y[rows]
        drawn = np.bincount(2 * self.place[rows] + y, minlength=self.counts.size).reshape(-1, 2)
        return Draw(x=x, y=y, population=HeldOut(table=self, counts=self.counts - drawn))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOut:
    """The rows of ``table`` that a sample left out: ``counts`` (k, 2) of each label at each point of the table."""

    table: Table
    counts: NDArray[np.int64]

    @property
    def exact(self) -> bool:
        return False

    def errors(self, hypotheses: HypothesisClass, representatives: Representatives) -> NDArray[np.float64]:
        """The fraction of held-out rows that each hypothesis gets wrong: shape (M,)."""
        return hypotheses.loss(representatives, self.table.points, self.counts) / self.counts.sum()

    def least_error(self, hypotheses: HypothesisClass) -> float:
        """The held-out error of h*, the first hypothesis of least error on the whole table.

        Its mean over samples is min_H L_table, so the mean excess is the mean held-out error minus that minimum,
        without bias, and pairing takes the noise of the held-out rows out. One trial's excess may be negative.
        """
        return float(self.errors(hypotheses, _best(self.table, hypotheses))[0])

    def quadrature(self, hypotheses: HypothesisClass, points: Points) -> tuple[Points, NDArray[np.float64]]:
        """The held-out rows' points and the share of each label there."""
        held = self.counts.any(axis=1)
        return self.table.points[held], self.counts[held] / self.counts.sum()


@lru_cache(maxsize=128)
def _best(table: Table, hypotheses: HypothesisClass) -> Representatives:
    return hypotheses.best(table.points, table.counts)


def _checked_points(x: Any) -> Points:
    array = np.asarray(x)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiub":
        raise ValueError(f"table: x of shape {array.shape} and type {array.dtype}; give (N,) or (N, features) numbers")
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise ValueError(
            f"table: row {bad[0][0]} has the feature {array[tuple(bad[0])]}; drop rows with missing values"
        )
    return array.astype(np.float64) + 0.0


def _checked_labels(y: Any) -> NDArray[np.uint8]:
    array = np.asarray(y)
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        raise ValueError(f"table: y of shape {array.shape} and type {array.dtype}; give N labels of 0 and 1")
    bad = np.flatnonzero((array != 0) & (array != 1))
    if len(bad):
        raise ValueError(f"table: row {bad[0]} has the label {array[bad[0]]}; labels must be 0 or 1")
    return array.astype(np.uint8)
