"""A Markov chain over groups of rows: in go transitions between groups and steps, out comes the long-run law.

The chain starts from its stationary law π and shows one uniform row of its current state per step, so that a row of
state s has probability D = π_s/n_s in every step and w = n_s/(Nπ_s). The long-run covariance of w·(row) is
Ω = S0 + A + Aᵀ: S0 = E_D[w²·products] of rows, and A = F̄ᵀ D_π (Z − I) F̄ = Σ_{k≥1} Cov(step 0, step k), with F̄ the state
means of w·(row) and Z = (I − P + 1πᵀ)⁻¹ the fundamental matrix: given the states, rows of two steps are independent, so
state means are enough, and memory is that of the states.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from predcube.tasks.frames import Frame, Groups, Request
from predcube.tasks.moments import GroupSums, Moments
from predcube.tasks.parameters import check
from predcube.tasks.processes.base import Factors, HasMoments, Law, Process, aux_moments_of
from predcube.tasks.processes.plain import Parts, assembled

type Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """A table of transitions: ``matrix[i][j]`` is the probability of going from ``labels[i]`` to ``labels[j]``.

    Raises ValueError unless labels are distinct texts, the matrix is square, of numbers ≥ 0 whose rows sum to 1 (to
    1e-9), and every state is reached from every other.
    """

    labels: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        labels = tuple(str(label) for label in self.labels)
        twice = next((label for i, label in enumerate(labels) if label in labels[:i]), None)
        if twice is not None:
            raise ValueError(f"markov: transitions name the state {twice!r} twice")
        try:
            matrix = tuple(tuple(float(value) for value in row) for row in self.matrix)
        except (TypeError, ValueError):
            raise ValueError("markov: transitions.matrix must be a list of rows of numbers") from None
        if len(matrix) != len(labels) or any(len(row) != len(labels) for row in matrix) or not labels:
            raise ValueError(
                f"markov: transitions.matrix must be {len(labels)} × {len(labels)}, a row and a column a label"
            )
        for label, row in zip(labels, matrix, strict=True):
            if not all(0 <= value <= 1 for value in row):
                wrong = next(value for value in row if not 0 <= value <= 1)
                raise ValueError(f"markov: the transitions of state {label!r} hold {wrong:g}: not a probability")
            if abs(sum(row) - 1) > 1e-9:
                raise ValueError(f"markov: the transitions of state {label!r} sum to {sum(row):.12g}, not to 1")
        parts, part = connected_components(np.array(matrix) > 0, directed=True, connection="strong")
        if parts > 1:
            here = labels[0]
            away = labels[int(np.argmax(part != part[0]))]
            raise ValueError(
                f"markov: states {here!r} and {away!r} do not both lead to each other: the chain has no single law "
                "to settle in"
            )
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "matrix", matrix)

    @classmethod
    def of(cls, value: Any) -> Self:
        """Transitions from ``{"labels": …, "matrix": …}``, or as they are."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping) or set(value) != {"labels", "matrix"}:
            raise ValueError(
                f"markov: transitions = {value!r} must be a table {{ labels = [...], matrix = [[...]] }}, or a file "
                "that holds one"
            )
        for key, given in value.items():
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise ValueError(f"markov: transitions.{key} = {given!r} must be a list")
        return cls(labels=tuple(value["labels"]), matrix=tuple(value["matrix"]))

    @property
    def probabilities(self) -> Array:
        """(M, M) the matrix P, rows summing to 1 exactly up to rounding."""
        matrix = np.array(self.matrix)
        probabilities: Array = matrix / matrix.sum(axis=1, keepdims=True)
        return probabilities

    @property
    def stationary(self) -> Array:
        """(M,) π with πP = π, Σπ = 1, by elimination without subtractions (Grassmann, Taksar & Heyman 1985): every π is
        right to relative precision, however rare the state."""
        p = self.probabilities
        size = len(p)
        for last in range(size - 1, 0, -1):
            p[:last, last] /= p[last, :last].sum()
            p[:last, :last] += np.outer(p[:last, last], p[last, :last])
        pi = np.ones(size)
        for state in range(1, size):
            pi[state] = pi[:state] @ p[:state, state]
        normal: Array = pi / pi.sum()
        return normal

    def ordered(self, labels: tuple[str, ...]) -> tuple[Array, Array]:
        """(P, π) with the states in the order of ``labels``, which are the same states."""
        place = [self.labels.index(label) for label in labels]
        return self.probabilities[np.ix_(place, place)], self.stationary[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSums:
    """moments: of [q, g] with weights w. sums: of [q, g] by state."""

    moments: Moments
    sums: GroupSums

    def add(self, other: Self) -> Self:
        return type(self)(moments=self.moments.add(other.moments), sums=self.sums.add(other.sums))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    fitted: HasMoments
    weights: Array
    joint: bool

    def __call__(self, frame: Frame) -> ChainSums:
        if frame.column is None:
            raise ValueError("markov: the frame has no column of states")
        g = self.fitted.moments(frame.inputs)
        weights = self.weights[frame.column.astype(np.int64)]
        return ChainSums(
            moments=Moments.of(frame.queries, g, weights, joint=self.joint),
            sums=GroupSums.of(frame.column, frame.queries, g),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Markov(Process[ChainSums]):
    """n = ``steps`` rows, one a step of a stationary chain over the groups of ``column``: m = n, K = 1/n.

    ``transitions`` = { labels, matrix }, over exactly the groups of the table. ``aux_moments = ["w"]``: the attacker
    also uses E_D[w] = 1. The attacker predicts the mean of all rows.
    """

    kind: ClassVar[str] = "markov"
    source: ClassVar[str] = "Lu & Sridharan 2026, Theorems 3.2 and 3.6; Kemeny & Snell 1960 for the fundamental matrix"
    needs_groups: ClassVar[bool] = True

    column: str
    steps: Annotated[int, Ge(1)]
    transitions: Transitions
    target: Literal["all"] = "all"
    aux_moments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "transitions", Transitions.of(self.transitions))
        object.__setattr__(self, "aux_moments", aux_moments_of(self.aux_moments, self.kind))
        check(self)

    def infeasible(self, rows: int, groups: Groups | None = None) -> str | None:
        if rows < 2:
            return f"the table has {rows} complete rows: at least 2 are needed"
        if groups is None:
            return None
        unknown = [label for label in self.transitions.labels if label not in groups.labels]
        if unknown:
            return f"transitions name the state {unknown[0]!r}, which column {self.column!r} does not hold"
        absent = [label for label in groups.labels if label not in self.transitions.labels]
        if absent:
            return f"column {self.column!r} holds the state {absent[0]!r}, which transitions do not name"
        return None

    def weights(self, groups: Groups) -> Array:
        """(M,) w = n_s/(Nπ_s) of each state, in the groups' order. ValueError where the states are not the groups."""
        reason = self.infeasible(groups.rows, groups)
        if reason is not None:
            raise ValueError(f"markov: {reason}")
        _, pi = self.transitions.ordered(groups.labels)
        weights: Array = groups.counts / (groups.rows * pi)
        return weights

    def request(self, fitted: HasMoments, groups: Groups | None = None, *, joint: bool = False) -> Request[ChainSums]:
        if groups is None:
            raise ValueError("markov: the table's groups must be counted first")
        return _Request(fitted=fitted, weights=self.weights(groups), joint=joint)

    def law(self, state: ChainSums, groups: Groups | None = None) -> Law:
        if groups is None:
            raise ValueError("markov: the table's groups must be counted first")
        moments = state.moments
        size, rows = moments.low.size, moments.rows
        transitions, pi = self.transitions.ordered(groups.labels)
        w = self.weights(groups)
        means = state.sums.totals * (w / groups.counts)[:, None]
        later = np.linalg.inv(np.eye(len(pi)) - transitions + pi) - np.eye(len(pi))

        def lagged(f: Array, h: Array) -> Array:
            """A + Aᵀ of two sets of state functions of mean 0."""
            out: Array = f.T @ (pi[:, None] * (later @ h)) + (later @ f).T @ (pi[:, None] * h)
            return out

        squares, cross, gram, joint = moments.about_plain()
        q, g = means[:, :size], means[:, size:]
        instant = np.concatenate([squares, np.diag(gram)]) / rows
        s1 = squares / rows + 2 * np.einsum("ij,ij->j", q, pi[:, None] * (later @ q))
        variance = gram / rows + lagged(g, g)
        # Covariances of steps can cancel the variance of one step: what is left is rounding, and is 0.
        gone = np.concatenate([s1, np.diag(variance)]) <= 1e-13 * instant
        s1 = np.where(gone[:size], 0.0, s1)
        keep = np.where(gone, 0.0, 1.0)
        cross = (cross / rows + lagged(q, g)) * np.outer(keep[:size], keep[size:])
        variance = variance * np.outer(keep[size:], keep[size:])
        parts = Parts(s1, cross, variance, None if joint is None else joint / rows + lagged(q, q))
        if self.aux_moments:
            h = (w - 1.0)[:, None]
            spread = float(((pi * h[:, 0]) @ h)[0] + lagged(h, h)[0, 0])
            known = means.T @ (pi * h[:, 0]) + lagged(means, h)[:, 0]
            parts = parts.given(known, spread if spread > 1e-12 * float(pi @ h[:, 0] ** 2) else 0.0)
        return assembled(moments, parts, groups=len(pi))

    def factors(self, law: Law) -> Factors:
        return Factors(n=self.steps, m=self.steps, K=1 / self.steps)

    @property
    def key(self) -> tuple[Any, ...]:
        rows = [list(row) for row in self.transitions.matrix]
        return (self.kind, self.column, list(self.transitions.labels), rows, list(self.aux_moments))
