"""The parts of a spec that are not the science's own: which keys each table has, of what type, within what limits.

These are declarations only. The keys of [hypotheses], [distribution] and [learner] are the fields of the classes in
``tasks``.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen

METHODS = ("auto", "analytic", "laplace", "support", "enumerate", "mc")


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The whole file of a prediction sweep."""

    trials: Annotated[int, Ge(1), Le(10**7)]
    name: Annotated[str, MinLen(1)] = "sweep"
    kind: Literal["prediction", "predictability"] = "prediction"
    seed: Annotated[int, Ge(0), Lt(2**63)] = 0
    n: Annotated[int, Ge(1), Le(10**7)] | None = None
    hypotheses: dict[str, Any] | None = None
    distribution: dict[str, Any] | None = None
    table: dict[str, Any] | None = None
    learner: dict[str, Any] | None = None
    measure: dict[str, Any] = field(default_factory=dict)
    sweep: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """[measure]: what is measured and how. ``samples`` are the subsets of ``mc``, ``neighbours`` how many neighbouring
    samples an audit draws where it cannot visit them all. ``standard_error``: mc draws until that of a trial's error is
    this small. ``net_alpha``: the α of net_probability (else the learner's). ``delta_epsilon``: the ε at which delta is
    measured."""

    quantities: Annotated[list[str], MinLen(1)] = field(default_factory=lambda: ["error", "excess_error"])
    method: Literal["auto", "analytic", "laplace", "support", "enumerate", "mc"] = "auto"
    targets: dict[str, Any] = field(default_factory=dict)
    samples: Annotated[int, Ge(2)] | None = None
    neighbours: Annotated[int, Ge(1)] = 512
    standard_error: Annotated[float, Gt(0)] | None = None
    net_alpha: Annotated[float, Gt(0), Lt(1)] | None = None
    delta_epsilon: Annotated[list[Annotated[float, Ge(0)]], MinLen(1)] | None = None


SWEPT_OPTIONS = ("method", "samples", "neighbours", "standard_error", "net_alpha")
"""What of [measure] belongs to a cell, and so may be an axis."""

DELTA_EPSILON = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
"""The ε at which delta is measured unless a spec gives others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """[measure] targets: the largest wanted value of quantities, and the share of samples that must keep to it."""

    confidence: Annotated[float, Gt(0), Lt(1)] = 0.9
    error: Annotated[float, Ge(0)] | None = None
    excess_error: Annotated[float, Ge(0)] | None = None
    expected_error: Annotated[float, Ge(0)] | None = None
    expected_excess_error: Annotated[float, Ge(0)] | None = None
    stability: Annotated[float, Ge(0)] | None = None
    privacy_loss: Annotated[float, Ge(0)] | None = None
    uniform_deviation: Annotated[float, Ge(0)] | None = None
    relabelling_error: Annotated[float, Ge(0)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """[table]: real data. ``label`` is a column or an SQL scalar expression over the columns, 0 or 1 in every row."""

    path: Annotated[str, MinLen(1)]
    features: Annotated[list[str], MinLen(1)]
    label: Annotated[str, MinLen(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """An axis given by its ends: ``num`` values from ``start`` to ``stop``, both included."""

    start: int | float
    stop: int | float
    num: Annotated[int, Ge(1)]
    spacing: Literal["linear", "log"] = "linear"
