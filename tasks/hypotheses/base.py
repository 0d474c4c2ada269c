"""What every hypothesis class offers: its labelings of points, one representative each, and predictions.

Always true of a class:

* ``labelings(points)`` are distinct and in canonical order: lexicographic order of the label vectors on the
  sorted distinct points;
* row ``i`` of ``representatives(points)`` realises row ``i`` of ``labelings(points)``, and depends on the *set*
  of points alone: not on order, repetition, labels, or any other point;
* a representative is a row of a float or integer array, so that arrays of them cross every boundary.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.charts import LARGEST_CHART, AdditiveChart, Chart

type Points = NDArray[np.float64] | NDArray[np.int64]  # (m,) or (m, features)
type Representatives = NDArray[Any]  # (M,) or (M, parameters)
type Labels = NDArray[np.uint8]  # (M, m): one row a hypothesis, one column a point

LOSS_BLOCK = 2**20
"""Labels predicted at once when losses are summed: 8 MB as floats."""
LISTED = 2**30
"""Bytes of labels that are listed at most."""
ASKING = 100_000.0
"""Elementary operations, about, of asking a class for the representatives of one small set of points."""


class HypothesisClass(ABC):
    """A class H of functions X → {0, 1}. Concrete classes are frozen, keyword-only dataclasses whose fields are
    the parameters a spec may give; the fields' annotations carry their limits (``annotated_types``)."""

    __slots__ = ()

    kind: ClassVar[str]
    source: ClassVar[str]
    additive: ClassVar[bool] = False
    """True when the hypotheses of H_T are a null one, present for every T, and one for each point of T, which is
    itself the same for every T that holds the point. Then ``representatives(points)`` on sorted distinct points
    v_1 < … < v_m is [null, h(v_m), …, h(v_1)], and the normaliser Z_I is a sum over points (method ``laplace``)."""
    free: ClassVar[bool] = False
    """True when H is every function on a finite X and the representative of a labelling of T is 0 off T. Then the
    labels at different points are independent given T (method ``analytic``)."""
    cellwise: ClassVar[bool] = False
    """True when the class on R^p goes by the order of coordinates alone: for strictly increasing maps of each axis onto
    itself, φ together, φ(T) has the labelings of T and h_{φ(T)}(φ(x)) = h_T(x) for its representatives (see
    ``moves``)."""

    @property
    @abstractmethod
    def vc_dimension(self) -> int:
        """The VC dimension on this class's X."""

    @property
    @abstractmethod
    def domain(self) -> Points | None:
        """The k points of a finite X in sorted order, or None when X is not finite."""

    @abstractmethod
    def labelings(self, points: Points) -> Labels:
        """All distinct labelings of ``points`` by H: shape (M, m), canonical order. Points outside X raise
        ValueError."""

    @abstractmethod
    def representatives(self, points: Points) -> Representatives:
        """One hypothesis of H for each row of ``labelings(points)``, by the class's T-only rule."""

    @abstractmethod
    def predict(self, representatives: Representatives, points: Points) -> Labels:
        """Labels of ``points`` by each representative: shape (M, m)."""

    @abstractmethod
    def members(self) -> Representatives:
        """Every function of H in canonical order, duplicates included where the class is a list that has them.
        Raises ValueError where H is infinite."""

    @abstractmethod
    def named(self, value: Any) -> Representatives:
        """The one representative (shape (1,) or (1, parameters)) that a spec names by ``value``; ValueError says
        what a name looks like."""

    def growth(self, m: int) -> int | None:
        """Growth function: the largest number of labelings of m points, exact on the whole of a finite X; for fewer
        points a class without a closed form may give an upper bound. None where nothing better than Sauer–Shelah's
        bound is known."""
        return None

    def unlistable(self, m: int) -> str | None:
        """Why the labelings of m points, a byte a label, may not fit ``LISTED`` bytes, or None. By ``growth``, or
        Sauer–Shelah's bound; a class with closed forms may do without its list."""
        count = self.growth(m)
        if count is None:
            count = sum(comb(m, i) for i in range(min(m, self.vc_dimension) + 1))
        if count * max(m, 8) <= LISTED:
            return None
        return (
            f"{self.kind} may have {count:,} labelings of {m} points, {count * max(m, 8) / 2**30:,.1f} GiB, "
            f"and at most {LISTED / 2**30:g} GiB are listed; use fewer points"
        )

    def check_listable(self, m: int) -> None:
        """ValueError with the reason of ``unlistable``."""
        reason = self.unlistable(m)
        if reason is not None:
            raise ValueError(reason)

    def charted(self, k: int, t: int) -> bool:
        """Whether ``chart`` has a chart of k points for subsets of up to t of them. By these counts alone."""
        return self.additive and k < LARGEST_CHART

    def chart(self, points: Points, t: int) -> Chart | None:
        """A chart of sorted distinct points (k, …) for subsets T of up to t of them, or None: then the class is asked
        for its representatives of each T. A class that has a fast way to list H_T gives it here."""
        return AdditiveChart(hypotheses=self, points=points) if self.charted(len(points), t) else None

    def listing(self, k: int, t: int) -> float:
        """Elementary operations (about a nanosecond each), roughly, of listing H_T for one T of t points among k: on
        the chart where there is one."""
        if self.additive:
            return 4.0 * t
        count = self.growth(t)
        # Its hypotheses are then asked for their labels on all k points.
        return ASKING + (25.0 * t + 15.0 * k) * (t**self.vc_dimension + 1 if count is None else count)

    @property
    def features(self) -> int:
        """Number of coordinates of a point."""
        return 1

    def loss(
        self, representatives: Representatives, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """What each hypothesis gets wrong: Σ_j mass[j, 1 − h(points[j])], shape (M,). ``mass`` (m, 2) holds counts or
        probabilities of each label at each point."""
        zeros, ones = mass[:, 0].astype(np.float64), mass[:, 1].astype(np.float64)
        rows = max(1, LOSS_BLOCK // max(1, len(points)))
        found = np.empty(len(representatives))
        for start in range(0, len(representatives), rows):
            labels = self.predict(representatives[start : start + rows], points).astype(np.float64)
            found[start : start + rows] = labels @ zeros + (1.0 - labels) @ ones
        return found

    def best(self, points: Points, mass: NDArray[np.float64] | NDArray[np.int64]) -> Representatives:
        """The representative of least ``loss``, the first in canonical order: shape (1,) or (1, parameters)."""
        representatives = self.representatives(points)
        first = int(np.argmin(self.loss(representatives, points, mass)))
        return representatives[first : first + 1]

    def disagreement(self, representatives: Representatives, concept: Representatives) -> NDArray[np.float64]:
        """Pr[h(x) ≠ c(x)] for x uniform on [0, 1]^features and one function c, in closed form: shape (M,).
        ValueError where no closed form is known or X is finite."""
        raise ValueError(f"{self.kind}: no closed form for errors under a uniform law; use a finite X or a table")

    def parameters(self) -> Mapping[str, Any]:
        """The parameters, named as in a spec."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]
