"""The algebra of predictability: in go the law of q' and g', a process and a noise scheme, out come values and bounds.

    gain = σ1² − σ2² = Cᵀ (V + G S_eff Gᵀ)⁺ C,      S_eff = m·S_tot

without inverting V or the noise. V = B Bᵀ from the eigenvectors of the standardised moments whose eigenvalues are above
a relative cut-off, C = B c, and ρ²·s1 = |c|². In directions that V lacks, and in combinations of λ that no data move,
the attacker sees noise alone, so the rest of the noise F (G S_0 Gᵀ = F Fᵀ) is first conditioned on both; with the
singular values s of B⁺F and left vectors w,

    gain = Σ_i (w_iᵀ c)² / (1 + amount·s_i²)

for every amount of noise, 0 and ∞ included, with no difference of large numbers: one factorisation a law, one a shape
of noise, and O(Q·d) a cell. For noise B is a triangle, in an order of rising noise, so that B⁺F keeps the rows of
little noise beside those of much.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from annotated_types import Gt, Le
from numpy.typing import NDArray

from predcube.tasks.factorisations import EPS, complement, left_singular
from predcube.tasks.noises.base import Noise, Setting, Shape, undone
from predcube.tasks.noises.none import NoNoise
from predcube.tasks.noises.rank_one import RankOne
from predcube.tasks.parameters import check
from predcube.tasks.processes.base import Law, Process

type Array = NDArray[np.float64]

PAPER = 1.0 + math.log(4.0)
"""The paper's factor over Cauchy–Schwarz (Theorem 3.6); 1 suffices (theory F, erratum 6)."""

ILL = 1e6
"""Beyond this condition of moments, whose squares are summed, less than four digits of the smallest direction are left
of what double precision stores, and the value is flagged."""

ILL_ROWS = 1e12
"""As much for moments that were whitened row by row."""


class HasCoordinates(Protocol):
    """What the algebra needs of a fitted release; see ``releases.base.Fitted``."""

    @property
    def curvature(self) -> Array: ...
    @property
    def units(self) -> Array: ...
    @property
    def released(self) -> Array: ...
    @property
    def fixed(self) -> Array: ...
    @property
    def stretch(self) -> float: ...
    @property
    def blurred(self) -> bool: ...
    @property
    def gram(self) -> Array | None: ...
    @property
    def members(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How a prediction is scored, and which reading of the paper is computed.

    loss: ``squared`` ((θ − q)², H = 2) or ``log`` (nats; H = 1/τ², binary queries alone). tau: the τ of Lemma 2.9, the
    attacker's estimate being in [τ, 1 − τ]; min(p, 1 − p)/2 unless given. convention: ``corrected``, S_eff = m·S_tot;
    or ``paper``, the printed S_eff = S_tot (erratum 1).
    """

    loss: Literal["squared", "log"] = "squared"
    tau: Annotated[float, Gt(0), Le(0.5)] | None = None
    convention: Literal["corrected", "paper"] = "corrected"

    def __post_init__(self) -> None:
        check(self)
        if self.tau is not None and self.loss != "log":
            raise ValueError(f"measure: tau = {self.tau} is for the log loss, and the loss is {self.loss!r}")

    def curvatures(self, law: Law, names: Sequence[str] = ()) -> tuple[Array, Array, Array]:
        """(l''(p), H, τ), each (Q,); τ is 0 where it has no meaning. ValueError where the log loss cannot be taken,
        which calls a query by its name where ``names`` gives one."""
        if self.loss == "squared":
            twos = np.full(law.p.shape, 2.0)
            return twos, twos, np.zeros_like(twos)
        if not np.all(law.binary):
            called = _called(int(np.argmin(law.binary)), law, names)
            raise ValueError(
                f"log loss needs a binary query, and {called} takes values other than 0 and 1: write it as a "
                "comparison, or take the squared loss"
            )
        least = np.minimum(law.p, 1.0 - law.p)
        tau = least / 2 if self.tau is None else np.where(law.constant, 0.0, self.tau)
        over = (tau > least) & ~law.constant
        if np.any(over):
            place = int(np.argmax(over))
            raise ValueError(
                f"measure: tau = {self.tau} is above min(p, 1 − p) = {least[place]:.6g} of "
                f"{_called(place, law, names)}: the estimate cannot lie in [tau, 1 − tau]; take a smaller tau"
            )
        some = np.where(law.constant, 1.0, law.p * (1.0 - law.p))
        return 1.0 / some, 1.0 / np.where(law.constant, 1.0, tau) ** 2, tau


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The values of one cell for Q queries; arrays are (Q,).

    n: rows the attacker holds (expected). p: mean of q over the target. rho2: ρ² of q' and g', without noise. gain: σ1²
    − σ2². r = √(gain/s1). sharp = (l''(p)/2)·K·gain, in units of the loss; correlated, cauchy_schwarz and paper are
    upper bounds, ascending. utility_cost: tr(M·S_tot), or tr(S_tot) of a release that predicts nothing. rank,
    condition: of the standardised moments, as they were before any whitening. s1, K, m, tau: as in theory F, m whatever
    the convention. constant: queries of one value, whose every gain is 0. flags: ``few_shards``, ``linear_attacker``
    (Laplace), ``ill_conditioned`` (few digits are left of the smallest direction, or directions were left out that may
    be more than rounding), ``beyond_first_order`` (the attacker's own error exceeds that of guessing p), and
    ``constant_query``.
    """

    n: float
    p: Array
    rho2: Array
    gain: Array
    r: Array
    sharp: Array
    correlated: Array
    cauchy_schwarz: Array
    paper: Array
    utility_cost: Array
    rank: int
    condition: float
    s1: Array
    K: float
    m: float
    tau: Array
    constant: NDArray[np.bool_]
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """A shape of noise beside a law. left: (k, k) vectors w. strengths: (k,) s². loads: (Q, k) (wᵀc)². whitened: (Q, k)
    c, by the root that w belong to. cost: of S_0, in units of utility."""

    shape: Shape
    left: Array
    strengths: Array
    loads: Array
    whitened: Array
    cost: float


@dataclass(frozen=True, kw_only=True)
class Gains:
    """A law and a release's coordinates, factored: every process of the law's key and every noise follow cheaply.

    coordinates: the fitted release. names: of the queries, for messages. Derived: root (d, k) B; whitened (Q, k) c;
    rank k; condition, as before any whitening; ill, whether few digits are left of a direction.
    """

    law: Law
    coordinates: HasCoordinates
    names: tuple[str, ...] = ()
    root: Array = field(init=False)
    whitened: Array = field(init=False)
    condition: float = field(init=False)
    ill: bool = field(init=False)
    _inverse: Array = field(init=False, repr=False)
    _null: Array = field(init=False, repr=False)
    _spectra: dict[Any, Spectrum] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        law = self.law
        d = len(law.variance)
        sd = np.sqrt(np.maximum(np.diag(law.variance), 0.0))
        live = np.flatnonzero(sd > 0)  # the others are null to the last digit, which no eigenvector is
        scale = sd[live]
        values, vectors = np.zeros(0), np.zeros((0, 0))
        if live.size:
            values, vectors = np.linalg.eigh(law.variance[np.ix_(live, live)] / np.outer(scale, scale))
        cutoff = 16 * d * EPS * max(float(np.max(values, initial=0.0)), 0.0)
        kept = values > cutoff
        roots = np.sqrt(values[kept])
        rank, lost = roots.size, int(np.count_nonzero(~kept))
        root, inverse, null = np.zeros((d, rank)), np.zeros((rank, d)), np.zeros((d - rank, d))
        root[live] = scale[:, None] * vectors[:, kept] * roots
        inverse[:, live] = (vectors[:, kept] / roots).T / scale
        null[:lost, live] = (vectors[:, ~kept] / scale[:, None]).T
        null[lost:, np.flatnonzero(sd <= 0)] = np.eye(d - live.size)
        spread = float(roots[-1] / roots[0]) if rank else 1.0
        condition = self.coordinates.stretch * spread
        # No more directions vary than there are rows, or groups that are drawn whole, less their mean.
        most = (law.groups or law.rows) - 1
        made = {
            "root": root,
            "whitened": law.cross @ inverse.T,
            "condition": condition,
            "ill": self.coordinates.blurred
            or spread > ILL
            or condition > (ILL_ROWS if self.coordinates.stretch > 1 else ILL)
            or lost > max(0, live.size - most),
            "_inverse": inverse,
            "_null": null,
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @property
    def rank(self) -> int:
        """How many directions the released moments vary in."""
        return int(self.root.shape[1])

    @property
    def gain0(self) -> Array:
        """(Q,) the gain without noise, ρ²·s1."""
        gain: Array = np.minimum(np.einsum("ij,ij->i", self.whitened, self.whitened), self.law.s1)
        return gain

    def spectrum(self, noise: Noise) -> Spectrum:
        """A noise's shape beside this law: what every amount of it needs. Kept by the noise's ``key``."""
        found = self._spectra.get(noise.key)
        if found is None:
            at = self.coordinates
            setting = Setting(
                curvature=at.curvature,
                units=at.units,
                released=at.released,
                fixed=at.fixed,
                root=self.root,
                members=at.members,
            )
            found = self._spectra[noise.key] = self._spectrum(noise.shape(setting))
        return found

    def _spectrum(self, shape: Shape) -> Spectrum:
        at = self.coordinates
        basis = complement(shape.seen, np.abs(at.fixed) @ np.abs(shape.released), 64 * EPS)
        hidden, terms = shape.moments @ basis, shape.terms @ np.abs(basis)
        basis = complement(self._null @ hidden, np.abs(self._null) @ terms)
        hidden, terms = hidden @ basis, terms @ np.abs(basis)
        inverse = self._triangle(hidden)
        left, singular = left_singular(inverse @ hidden)
        rounding = np.linalg.norm(np.abs(left).T @ (np.abs(inverse) @ terms), axis=1)
        tiny = 8 * max(*hidden.shape, 1) * EPS * rounding
        return Spectrum(
            shape=shape,
            left=left,
            strengths=np.where(singular > tiny, singular, 0.0) ** 2,
            loads=(self.law.cross @ inverse.T @ left) ** 2,
            whitened=self.law.cross @ inverse.T,
            cost=self._cost(shape),
        )

    def _triangle(self, noise: Array) -> Array:
        """(k, d) the inverse of a root of V: a triangle, of coordinates in an order of rising noise, where V has its
        digits in full; else that of eigenvectors."""
        sd = np.sqrt(np.maximum(np.diag(self.law.variance), 0.0))
        live = np.flatnonzero(sd > 0)
        if live.size != self.rank or self.rank < 2 or np.linalg.cond(self.root[live] / sd[live, None]) > 1e3:
            return self._inverse
        order = live[np.argsort(np.linalg.norm(noise[live], axis=1) / sd[live], kind="stable")]
        lower = np.linalg.cholesky(self.law.variance[np.ix_(order, order)] / np.outer(sd[order], sd[order]))
        inverse = np.zeros((self.rank, len(sd)))
        inverse[:, order] = np.tril(np.linalg.inv(lower)) / sd[order]
        return inverse

    def _cost(self, shape: Shape) -> float:
        gram = self.coordinates.gram
        if gram is None:
            return float(np.sum(shape.released**2))
        return float(np.sum(shape.scaled * (gram @ shape.scaled)))

    def infeasible(self, process: Process[Any], noise: Noise, measure: Measure) -> str | None:
        """Why the noise has no meaning here, or None: rank-one noise that is not needed, or for several queries."""
        if not isinstance(noise, RankOne):
            return None
        if self.law.p.size != 1:
            return (
                f"rank_one noise hides one query, and there are {self.law.p.size}: take calibrated or isotropic noise"
            )
        limit = float(self._sharp(process, measure, self.gain0)[0])
        if noise.gain < limit:
            return None
        return f"without noise the sharp value is {limit:.6g}, not above gain = {noise.gain:g}: no noise is needed"

    def _sharp(self, process: Process[Any], measure: Measure, gain: Array) -> Array:
        bend, _, _ = measure.curvatures(self.law, self.names)
        sharp: Array = bend / 2 * process.factors(self.law).K * gain
        return sharp

    def _rank_one(self, process: Process[Any], noise: RankOne, measure: Measure) -> tuple[float, Shape]:
        """(t, the shape C) of rank-one noise. ValueError where it is infeasible."""
        reason = self.infeasible(process, noise, measure)
        if reason is not None:
            raise ValueError(reason)
        per_gain = self._sharp(process, measure, np.ones(1))[0]
        moments = self.law.cross.T
        at = self.coordinates
        scaled = undone(at.curvature, moments)
        shape = Shape(
            released=at.released @ scaled,
            scaled=scaled,
            moments=moments,
            terms=np.abs(moments),
            seen=np.zeros((len(at.fixed), 1)),
        )
        return noise.gain / float(per_gain), shape

    def amount(self, process: Process[Any], noise: Noise, measure: Measure) -> tuple[float, Shape, float]:
        """(amount, S_0's shape, m): S_eff = amount·S_0 and S_tot = S_eff/m, with m = 1 for the paper's convention."""
        m = process.factors(self.law).m if measure.convention == "corrected" else 1.0
        if isinstance(noise, RankOne):
            left, shape = self._rank_one(process, noise, measure)
            return 1.0 / left - 1.0 / float(self.gain0[0]), shape, m
        return noise.amount(m), self.spectrum(noise).shape, m

    def gain(self, process: Process[Any], noise: Noise, measure: Measure) -> Array:
        """(Q,) σ1² − σ2²."""
        if isinstance(noise, RankOne):
            return np.full(1, self._rank_one(process, noise, measure)[0])
        if isinstance(noise, NoNoise):
            return self.gain0
        spectrum = self.spectrum(noise)
        amount = self.amount(process, noise, measure)[0]
        with np.errstate(over="ignore"):  # noise beyond all numbers leaves nothing
            left = 1.0 / (1.0 + amount * spectrum.strengths)
        gain: Array = np.minimum(spectrum.loads @ left, self.law.s1)
        return gain

    def gain_matrix(self, process: Process[Any], noise: Noise, measure: Measure) -> Array:
        """(Q, Q) Σ1 − Σ2 of all queries at once, C (V + G S_eff Gᵀ)⁺ Cᵀ."""
        amount, _, _ = self.amount(process, noise, measure)
        if isinstance(noise, RankOne):
            return self.gain(process, noise, measure)[:, None]
        spectrum = self.spectrum(noise)
        turned = spectrum.whitened @ spectrum.left
        matrix: Array = (turned / (1.0 + amount * spectrum.strengths)) @ turned.T
        return matrix

    def covariance(self, process: Process[Any], noise: Noise, measure: Measure) -> Array:
        """(d, d) S_tot of the noise on the released numbers."""
        amount, shape, m = self.amount(process, noise, measure)
        total: Array = (amount / m) * (shape.released @ shape.released.T)
        return total

    def values(self, process: Process[Any], noise: Noise, measure: Measure) -> Values:
        """The values of one cell. ValueError where the noise is infeasible, or the log loss cannot be taken."""
        law = self.law
        factors = process.factors(law)
        bend, smooth, tau = measure.curvatures(law, self.names)
        gain = self.gain(process, noise, measure)
        amount, shape, m = self.amount(process, noise, measure)
        cost = self._cost(shape) if isinstance(noise, RankOne) else self.spectrum(noise).cost
        positive = np.where(law.s1 > 0, law.s1, 1.0)
        r = np.sqrt(gain / positive)
        bound = smooth * factors.K * law.s1 * r
        flags = dict.fromkeys(law.flags)
        flags |= dict.fromkeys(["linear_attacker"] * noise.linear_attacker)
        flags |= dict.fromkeys(["ill_conditioned"] * self.ill)
        flags |= dict.fromkeys(["beyond_first_order"] * bool(np.any(_beyond(law, factors.K))))
        flags |= dict.fromkeys(["constant_query"] * bool(np.any(law.constant)))
        return Values(
            n=factors.n,
            p=law.p,
            rho2=self.gain0 / positive,
            gain=gain,
            r=r,
            sharp=bend / 2 * factors.K * gain,
            correlated=bound * correlation(r),
            cauchy_schwarz=bound,
            paper=PAPER * bound,
            utility_cost=np.full(law.p.shape, amount / m * cost),
            rank=self.rank,
            condition=self.condition,
            s1=law.s1,
            K=factors.K,
            m=factors.m,
            tau=tau,
            constant=law.constant,
            flags=tuple(flags),
        )


def correlation(r: Array) -> Array:
    """k(r) = (2/π)(√(1 − r²) + r·asin r): E|XY| of standard normals of correlation r is k(r), between 2/π and 1."""
    inside = np.minimum(r, 1.0)
    k: Array = (2.0 / np.pi) * (np.sqrt(1.0 - inside**2) + inside * np.arcsin(inside))
    return k


def values(law: Law, coordinates: HasCoordinates, process: Process[Any], noise: Noise, measure: Measure) -> Values:
    """The values of one cell; for many cells of a law make its ``Gains`` once."""
    return Gains(law=law, coordinates=coordinates).values(process, noise, measure)


def _called(place: int, law: Law, names: Sequence[str]) -> str:
    return f"query {names[place]!r}" if names else f"query {place + 1} of {law.p.size}"


def _beyond(law: Law, K: float) -> NDArray[np.bool_]:
    """(Q,) where the attacker estimates a share p, without the release, worse than p(1 − p): worse than one row does.

    N rows but one of which are seen leave p(1 − p)·(N/(N − 1))², which is right.
    """
    rows = max(law.rows, 2)
    limit = law.p * (1.0 - law.p) * (rows / (rows - 1)) ** 2
    beyond: NDArray[np.bool_] = law.binary & ~law.constant & (K * law.s1 > limit * (1 + 1e-9))
    return beyond
