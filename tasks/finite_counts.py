"""One count released of a binary table: in go N, what the attacker holds, its prior and the noise; out comes what the
release gains a Bayes attacker, exactly.

The table has N rows of which k are 1. The attacker holds n of them, j being 1, and predicts the value of a random row
that it does not hold; u = (k − j)/(N − n) is the share of 1s among those. With a prior π over k it answers
θ₁ = E[u | j] and, once y = k + Δ is released, θ₂ = E[u | j, y]. Over j (hypergeometric) and Δ, for every count k:

    squared loss   gain(k) = E[(θ₁ − u)² − (θ₂ − u)²]
    log loss       gain(k) = E[u ln(θ₂/θ₁) + (1 − u) ln((1 − θ₂)/(1 − θ₁))]      nats

Nothing is asymptotic here, so gains are the measure of the sharp value K·gain of large N, which stands beside them:
K = 1/((1 − a)aN), a = n/N. A gain may exceed it (1.075 times at k = 2, N = 20, n = 10). Probabilities come from
log-gamma, so their relative error grows to about 1e-12 at N of a few thousand.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import annotated_types as at
import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, xlog1py, xlogy

from predcube.tasks import finite_noise
from predcube.tasks.parameters import check

type Loss = Literal["squared", "log"]
type Breach = Literal["random_shard", "ones_only"]

TOLERANCE = 1e-12
"""Difference of two refinements of the integral over the noise at which it is taken."""
ELEMENTS = 2**19
"""Elements of an array (counts × columns) at most, but for one column."""
NEGLIGIBLE = 1e-20
"""Prior mass below which a count has no part in an average."""
LOST = 1e-13
"""Probability of releases at which densities underflow, from which a count's gain is not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPrior:
    """A prior over the count k ∈ {0, …, N}.

    ``uniform``; ``beta_binomial`` with ``a`` and ``b``; ``jeffreys``, which is a = b = ½; ``binomial`` with ``p``,
    where rows are independent, so that what is held says nothing of the rest: the attacker knows the proportion, and
    only the release is left to gain from (``knows_proportion``).
    """

    kind: Literal["uniform", "jeffreys", "beta_binomial", "binomial"] = "uniform"
    a: Annotated[float, at.Gt(0)] | None = None
    b: Annotated[float, at.Gt(0)] | None = None
    p: Annotated[float, at.Gt(0), at.Lt(1)] | None = None

    def __post_init__(self) -> None:
        check(self)
        wanted = {"beta_binomial": ("a", "b"), "binomial": ("p",)}.get(self.kind, ())
        for name in ("a", "b", "p"):
            given = getattr(self, name) is not None
            if given != (name in wanted):
                raise ValueError(f"prior {self.kind!r} {'takes no' if given else 'needs'} {name}")

    @property
    def knows_proportion(self) -> bool:
        """Whether the attacker is taken to know the proportion beforehand: to be said wherever the value is shown."""
        return self.kind == "binomial"

    def log_masses(self, rows: int) -> NDArray[np.float64]:
        """ln π(k), k = 0, …, N: shape (N + 1,)."""
        k = np.arange(rows + 1.0)
        if self.kind == "uniform":
            return np.full(rows + 1, -math.log(rows + 1))
        choices = _log_choose(rows, k)
        if self.kind == "binomial":
            assert self.p is not None
            return np.asarray(choices + xlogy(k, self.p) + xlog1py(rows - k, -self.p))
        a, b = (0.5, 0.5) if self.kind == "jeffreys" else (self.a, self.b)
        assert a is not None
        assert b is not None
        return np.asarray(choices + betaln(k + a, rows - k + b) - betaln(a, b))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountNoise:
    """Noise on the count, in units of one row: a released proportion has 1/N of it.

    ``laplace`` has density e^{−|t|/scale}/(2·scale): ε-private, ε = 1/scale, as one row moves the count by at most one
    (P2 A.5.2 writes its inverse). ``gaussian`` has standard deviation ``scale``.
    """

    kind: Literal["none", "laplace", "gaussian"] = "none"
    scale: Annotated[float, at.Gt(0)] | None = None

    def __post_init__(self) -> None:
        check(self)
        if (self.scale is None) != (self.kind == "none"):
            raise ValueError(f"noise {self.kind!r} {'needs a' if self.scale is None else 'takes no'} scale")

    @property
    def variance(self) -> float:
        """Rows squared."""
        if self.scale is None:
            return 0.0
        return self.scale**2 * (2.0 if self.kind == "laplace" else 1.0)

    @property
    def entropy(self) -> float:
        """Differential entropy in nats; −∞ without noise."""
        if self.scale is None:
            return -math.inf
        return math.log(
            2 * math.e * self.scale if self.kind == "laplace" else self.scale * math.sqrt(2 * math.pi * math.e)
        )

    @property
    def negligible(self) -> bool:
        """Whether two counts are told apart but with probability below 1e-15."""
        if self.scale is None:
            return True
        chance = math.exp(-0.5 / self.scale) if self.kind == "laplace" else math.erfc(0.5 / self.scale / math.sqrt(2))
        return chance < 1e-15

    def expectations(
        self, weights: NDArray[np.float64], function: finite_noise.Function
    ) -> Iterator[NDArray[np.float64]]:
        """Refinements of E[φ | k]: see ``finite_noise``."""
        assert self.scale is not None
        rule = finite_noise.laplace if self.kind == "laplace" else finite_noise.gaussian
        return rule(weights, self.scale, function)


UNIFORM = CountPrior()
NO_NOISE = CountNoise()


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteCount:
    """The exact value of a released count. Arrays have shape (N + 1,), one element a count k.

    ``masses``: the prior, given that the breach can happen. ``gain``: NaN where it cannot (fewer 1s than are held), and
    where ``resolved`` is False: the prior mass is so small there that densities underflow. ``sharp``: K·gain of large N
    at that count; NaN for ``ones_only``, which is not a random sample. ``error``: the largest change of a gain in the
    last refinement of the integral over the noise, far above its error; 0 without noise.
    """

    rows: int
    held: int
    prior: CountPrior
    noise: CountNoise
    breach: Breach
    loss: Loss
    masses: NDArray[np.float64]
    gain: NDArray[np.float64]
    sharp: NDArray[np.float64]
    resolved: NDArray[np.bool_]
    error: float

    @property
    def average(self) -> float:
        """Σ π(k)·gain(k): what an attacker gains whose prior is the law of the count."""
        return _average(self.masses, self.gain)

    @property
    def average_sharp(self) -> float:
        """Σ π(k)·sharp(k)."""
        return _average(self.masses, self.sharp)

    @property
    def ratio(self) -> NDArray[np.float64]:
        """gain ÷ sharp at every count; NaN where the sharp value is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.sharp > 0, self.gain / self.sharp, np.nan)


def finite_count(
    *,
    rows: int,
    held: int,
    prior: CountPrior = UNIFORM,
    noise: CountNoise = NO_NOISE,
    breach: Breach = "random_shard",
    loss: Loss = "squared",
) -> FiniteCount:
    """What releasing one count gains a Bayes attacker that holds n = ``held`` of N = ``rows`` rows, for every count.

    ``breach``: ``random_shard`` draws the n rows without replacement; ``ones_only`` takes n rows of value 1, which
    tells the attacker nothing but that k ≥ n (P2 Theorem 2.5, first case, with n = N/2). The second case is the
    ordinary random shard with n = N/2, where the largest gain is about 1/N.

    Costs O(N·n) without noise and a few dozen times that with it. ValueError unless 1 ≤ n ≤ N − 1.

    >>> exact = finite_count(rows=20, held=6)
    >>> round(float(exact.ratio[6]), 3)
    0.728
    """
    _check(rows, held, breach, loss)
    log_prior = prior.log_masses(rows)
    if breach == "ones_only":
        log_prior = np.where(np.arange(rows + 1) >= held, log_prior, -math.inf)
    masses = _normalised(log_prior)
    gain, lost, error = np.zeros(rows + 1), np.zeros(rows + 1), 0.0
    for likelihood, share in _columns(rows, held, breach):
        part, missed, change = _gains(log_prior, likelihood, share, noise, loss)
        gain, lost, error = gain + part, lost + missed, max(error, change)
    possible = np.arange(rows + 1) >= (held if breach == "ones_only" else 0)
    resolved = possible & (lost <= LOST)
    return FiniteCount(
        rows=rows,
        held=held,
        prior=prior,
        noise=noise,
        breach=breach,
        loss=loss,
        masses=masses,
        gain=np.where(resolved, gain, np.nan),
        sharp=_sharp(rows, held, noise, breach, loss),
        resolved=resolved,
        error=error,
    )


def group_information(
    *,
    rows: int,
    held: int,
    prior: CountPrior = UNIFORM,
    noise: CountNoise = NO_NOISE,
    breach: Breach = "random_shard",
) -> float:
    """I(k; y | j) in nats: what the release tells of the rows that are not held, as a group.

    Group privacy asks for this to be small; predictability does not, where the rows held told of the group's share
    already. The two are one at n = N − 1, where the group is a single row (P2, after Theorem 2.5). It is the entropy
    of k given j without noise, else h(y | j) − h(Δ). ValueError as for ``finite_count``.
    """
    _check(rows, held, breach, "log")
    log_prior = prior.log_masses(rows)
    if breach == "ones_only":
        log_prior = np.where(np.arange(rows + 1) >= held, log_prior, -math.inf)
    masses = _normalised(log_prior)
    total = 0.0
    for likelihood, _ in _columns(rows, held, breach):
        weights = _normalised(log_prior[:, None] + likelihood)
        joint = masses[:, None] * np.exp(likelihood)
        if noise.negligible:
            total -= float(np.sum(joint * xlogy(1.0, np.where(weights > 0, weights, 1.0))))
            continue
        before = math.inf
        for found in noise.expectations(weights[None], _log):
            value = -float(np.sum(joint * found[0])) - float(np.sum(joint)) * noise.entropy
            if abs(value - before) <= TOLERANCE:
                break
            before = value
        total += value
    return total


def _check(rows: int, held: int, breach: str, loss: str) -> None:
    if not 1 <= held <= rows - 1:
        raise ValueError(f"held = {held} of {rows} rows: the attacker must hold at least one row and not all")
    for name, value, known in (
        ("breach", breach, get_args(Breach.__value__)),
        ("loss", loss, get_args(Loss.__value__)),
    ):
        if value not in known:
            raise ValueError(f"{name} = {value!r} is not one of {', '.join(map(repr, known))}")


def _columns(rows: int, held: int, breach: Breach) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Blocks of what may be held: ln Pr[j | k] and u, each of shape (N + 1, J)."""
    k = np.arange(rows + 1.0)[:, None]
    if breach == "ones_only":
        yield np.where(k >= held, 0.0, -math.inf), np.clip((k - held) / (rows - held), 0.0, 1.0)
        return
    width = max(1, ELEMENTS // (rows + 1))
    for start in range(0, held + 1, width):
        j = np.arange(start, min(held + 1, start + width), dtype=np.float64)
        possible = (k >= j) & (rows - k >= held - j)
        with np.errstate(invalid="ignore"):
            log = _log_choose(k, j) + _log_choose(rows - k, held - j) - _log_choose(rows, held)
        yield np.where(possible, log, -math.inf), np.clip((k - j) / (rows - held), 0.0, 1.0)


def _gains(
    log_prior: NDArray[np.float64],
    likelihood: NDArray[np.float64],
    share: NDArray[np.float64],
    noise: CountNoise,
    loss: Loss,
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Of one block: its part of gain(k), the probability of releases whose densities underflow, and the last
    refinement's largest change."""
    chance = np.exp(likelihood)
    weights = _normalised(log_prior[:, None] + likelihood)
    yes, no = weights * share, weights * (1.0 - share)
    if noise.negligible:
        first, second = yes.sum(axis=0), no.sum(axis=0)
        if loss == "squared":
            each = (first - share) ** 2
        else:
            each = np.asarray(xlogy(share, share / first) + xlogy(1.0 - share, (1.0 - share) / second), np.float64)
        return np.sum(chance * each, axis=1), np.zeros(len(chance)), 0.0
    function = _moments if loss == "squared" else _logs
    gain, missed, change = np.full(len(chance), math.inf), np.zeros(len(chance)), math.inf
    for found in noise.expectations(np.stack([weights, yes, no]), function):
        if loss == "squared":
            mean, square, lost = found
            first = yes.sum(axis=0)
            each = (first - share) ** 2 - (square - 2 * share * mean + share**2)
        else:
            log_yes, log_no, lost = found
            each = share * (log_yes - np.log(yes.sum(axis=0))) + (1.0 - share) * (log_no - np.log(no.sum(axis=0)))
        before, gain = gain, np.asarray(np.sum(chance * each, axis=1), dtype=np.float64)
        missed = np.sum(chance * lost, axis=1)
        change = float(np.max(np.abs(gain - before)[missed <= LOST], initial=0.0))
        if change <= TOLERANCE:
            break
    return gain, missed, change


def _moments(densities: NDArray[np.float64]) -> NDArray[np.float64]:
    """θ₂, its square, and 1 where the density underflows."""
    whole, yes, _ = densities
    seen = whole > 0
    answer = np.divide(yes, whole, out=np.zeros_like(yes), where=seen)
    return np.stack([answer, answer**2, ~seen])


def _logs(densities: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln θ₂, ln(1 − θ₂), each from its own sum, and 1 where a density underflows."""
    seen = np.all(densities > 0, axis=0)
    logs = np.log(densities, out=np.zeros_like(densities), where=seen)
    return np.stack([logs[1] - logs[0], logs[2] - logs[0], ~seen])


def _log(densities: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log(densities, out=np.zeros_like(densities), where=densities > 0)


def _sharp(rows: int, held: int, noise: CountNoise, breach: Breach, loss: Loss) -> NDArray[np.float64]:
    """The large-sample value at every count, with the finite population's variance N/(N − 1)·p(1 − p)."""
    if breach == "ones_only":
        return np.full(rows + 1, np.nan)
    p = np.arange(rows + 1) / rows
    s1 = p * (1.0 - p) * rows / (rows - 1)
    unseen = 1.0 - held / rows
    factor, noisy = 1.0 / (unseen * held), noise.variance / rows**2 * held / unseen
    kept = np.divide(s1, s1 + noisy, out=np.zeros(rows + 1), where=s1 > 0)
    return np.asarray(factor * s1 * kept if loss == "squared" else factor * kept / 2)


def _normalised(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Masses along axis 0 that sum to 1."""
    values = np.exp(logs - logs.max(axis=0))
    return np.asarray(values / values.sum(axis=0))


def _average(masses: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Σ over counts whose mass a double can tell from 0 beside 1."""
    return float(np.sum(np.where(masses > NEGLIGIBLE, masses * values, 0.0)))


def _log_choose(n: NDArray[np.float64] | float, k: NDArray[np.float64] | float) -> NDArray[np.float64]:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


__all__ = [
    "NO_NOISE",
    "UNIFORM",
    "CountNoise",
    "CountPrior",
    "FiniteCount",
    "finite_count",
    "group_information",
]
