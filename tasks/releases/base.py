"""What every release offers: its parameters, the columns it reads, and how it is fitted to a table.

In goes a table as passes over its blocks (``Total``), out comes a ``Fitted``: the released value λ and the moment
function g with mean g(z, λ) = 0 over the table, which determines it.

Coordinates. Every answer downstream is the same for any invertible linear map of g, so a release gives g in
coordinates that are well scaled: γ = Wλ (``units``), K = E[∂g/∂γ] (``curvature``), and G = E[∂g/∂λ] = KW. A noise
covariance S of λ is WSWᵀ in these coordinates and enters as G S Gᵀ = K (WSWᵀ) Kᵀ, which inverts nothing. Where the
data do not determine λ, fewer numbers γ are released as d numbers λ = Rγ (R is ``released``, WR = 1), and combinations
``fixed`` of λ stay what they are whatever the data: an attacker who sees λ + Δ sees Δ in them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.factorisations import EPS
from predcube.tasks.frames import Total


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted(ABC):
    """A release fitted to a table of N rows: picklable, and all that later passes need.

    estimate: (d,) λ, in the units of the data.
    curvature: (d, d) K = E[∂g/∂γ] under the uniform law. It may be singular: then the data do not determine λ.
    units: (d, d) W, γ = Wλ. Rows are zero for directions that the data do not determine.
    released: (d, d) R, λ = Rγ up to a constant, with columns of zeros for them. A row moves λ by −R K⁻¹ g.
    fixed: (c, d) independent combinations of λ that no data move: fixed · R = 0, and [W; fixed] has rank d.
    gram: (d, d) E[u uᵀ] of the predictors in coordinates γ (a prediction is uᵀγ = xᵀλ), or None where the release
        predicts nothing. tr(M S) = tr(gram · WSWᵀ), without the units of the features.
    rank: coordinates of λ that the data determine. condition: of the standardised design, on those coordinates.
    rows: N.
    grain: (d,) what rounding makes of each coordinate of g, in units of its standard deviation; 0 where it is the
        rounding of a few operations.
    stretch: the condition of the standardised g before it was whitened (``whitening``); 1 where it was not.
    blurred: whether rounding may have made, or hidden, a direction of g.
    """

    estimate: NDArray[np.float64]
    curvature: NDArray[np.float64]
    units: NDArray[np.float64]
    released: NDArray[np.float64]
    fixed: NDArray[np.float64]
    gram: NDArray[np.float64] | None = None
    rank: int
    condition: float
    rows: int
    grain: NDArray[np.float64]
    stretch: float = 1.0
    blurred: bool = False

    @abstractmethod
    def moments(self, inputs: NDArray[np.float64], shift: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Rows g(z_i, λ + shift): (m, P) inputs in the order of the release's ``inputs`` give (m, d)."""

    def rounding(self, sd: NDArray[np.float64]) -> NDArray[np.float64]:
        """(d,) what rounding makes of each coordinate of g, in its units, where its standard deviations are ``sd``."""
        return np.maximum(self.grain, 8 * EPS) * sd

    @property
    def jacobian(self) -> NDArray[np.float64]:
        """G = E[∂g/∂λ] under the uniform law: (d, d)."""
        return self.curvature @ self.units

    @property
    def utility(self) -> NDArray[np.float64] | None:
        """M = E[x xᵀ] of the predictors x = (1, features): (d, d), or None; noise of covariance S costs tr(M S) in mean
        squared prediction (P2 Theorem 4.4). Its condition is that of the raw columns: prefer ``gram``."""
        return None if self.gram is None else self.units.T @ self.gram @ self.units

    @property
    def members(self) -> tuple[int, ...]:
        """How many coordinates each release of a stack has, in order (each has its own noise); (d,) for one release."""
        return (self.estimate.size,)


class Release(ABC):
    """A release A(S) = λ + noise. Concrete releases are frozen, keyword-only dataclasses whose fields are the words a
    spec may give; the fields' annotations carry their limits (``annotated_types``)."""

    __slots__ = ()

    kind: ClassVar[str]
    source: ClassVar[str]

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """The columns or expressions it reads, each once."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the d coordinates of λ."""

    @abstractmethod
    def fit(self, total: Total) -> Fitted:
        """λ and its moment function, by passes over the table.

        Raises ValueError with one message where there is no such value: no rows, an unfit target, no finite or no
        converged fit.
        """

    def bare(self, total: Total) -> Fitted:
        """As ``fit``, with g in the coordinates that it comes in: what a stack puts together before it whitens."""
        return self.fit(total)

    def parameters(self) -> Mapping[str, Any]:
        """The parameters, named as in a spec."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]


def names_of(values: Any, place: str, *, least: int = 1) -> tuple[str, ...]:
    """A list of different names as a tuple. Raises ValueError naming the ``place``."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{place} = {values!r} must be a list of names")
    names = tuple(values)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{place}: {name!r} must be the name of a column")
    if len(names) < least:
        raise ValueError(f"{place} is empty: name at least {least} column")
    twice = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if twice is not None:
        raise ValueError(f"{place}: {twice!r} is named twice: name each column once")
    return names
