"""The words of each kind of sweep: which keys its file has, which sections its cells are made of, what it measures.

Always true: a role's kinds are the science's own registry, so a new learner or release is a word here at once. A role
without kinds (the table, the queries) has one declaration, under "".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from predcube.pipeline.quantities import PREDICTABILITY, QUANTITIES, Quantity
from predcube.pipeline.spec import models, tabular
from predcube.pipeline.spec.fields import Declared, declared
from predcube.tasks import distributions, hypotheses, learners, noises, processes, releases

STANDING = frozenset({"trial", "query", "status", "receipt"})
"""What stands in every cube under its own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """``file``, ``measure`` and ``goals`` declare the keys of the file, of [measure] and of its targets; ``options``
    are those of [measure] that belong to a cell, and so may be an axis.

    ``roles``: the sections of a cell. ``alias``: other words that give one, which are kinds of it too (real data
    instead of a law). ``kindless``: roles without kinds, each with the cure where it is missing. ``whole``: roles of
    which no single key can be an axis. ``defaults``: sections of roles that a file may leave out. ``sized``: whether a
    cell has a sample size ``n``. ``standing``: names in the cube besides the quantities'.
    """

    kind: str
    file: type
    measure: type
    goals: type
    options: tuple[str, ...]
    roles: tuple[str, ...]
    kinds_of: Callable[[str], Mapping[str, type]]
    quantities: Mapping[str, Quantity]
    sized: bool
    standing: frozenset[str]
    alias: Mapping[str, str] = field(default_factory=dict)
    kindless: Mapping[str, str] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[str, ...]:
        """What a cell is made of: its sections, its ``n``, how it is measured."""
        return (*self.roles, *(["n"] if self.sized else []), "measure")

    def role_of(self, word: str) -> str:
        """The role that a section of this name gives."""
        return self.alias.get(word, word)

    def names_of(self, role: str) -> tuple[str, ...]:
        """The words under which a role's section may stand, its own first."""
        return (role, *(word for word, meant in self.alias.items() if meant == role))

    def alone(self, other: "Grammar") -> frozenset[str]:
        """The sections that this kind of sweep has and the other has not."""
        return frozenset({*self.roles, *self.alias}) - {*other.roles, *other.alias}

    def kinds(self, role: str) -> Mapping[str, type]:
        """The dataclass of every kind a section may have."""
        if role not in self.roles:
            raise ValueError(f"{role!r} is no section of a cell; there are {', '.join(self.roles)}")
        return self.kinds_of(role)

    def takes(self, role: str, kind: str) -> Mapping[str, Declared]:
        """The parameters of a kind. For the options of [measure] the kind is ""."""
        if role == "measure":
            return {name: field for name, field in declared(self.measure).items() if name in self.options}
        return declared(self.kinds(role)[kind])

    @property
    def reserved(self) -> frozenset[str]:
        """What no axis may be called."""
        return STANDING | self.standing | self.quantities.keys()


def _prediction(role: str) -> Mapping[str, type]:
    match role:
        case "hypotheses":
            return hypotheses.KINDS
        case "distribution":
            return {**distributions.KINDS, "table": models.Rows}
        case _:
            return learners.KINDS


PREDICTION = Grammar(
    kind="prediction",
    file=models.File,
    measure=models.Measure,
    goals=models.Goals,
    options=models.SWEPT_OPTIONS,
    roles=("hypotheses", "distribution", "learner"),
    kinds_of=_prediction,
    quantities=QUANTITIES,
    alias={"table": "distribution"},
    sized=True,
    standing=frozenset({"audit", "mixture_method", "subset_sets", "lemma_sets", "supremum", "delta_epsilon"}),
)


def _tabular(role: str) -> Mapping[str, type]:
    match role:
        case "table":
            return {"": tabular.Table}
        case "query":
            return {"": tabular.Queries}
        case "release":
            return releases.KINDS
        case "process":
            return processes.KINDS
        case _:
            return noises.KINDS


TABULAR = Grammar(
    kind="predictability",
    file=tabular.File,
    measure=tabular.Measure,
    goals=tabular.Goals,
    options=tabular.OPTIONS,
    roles=("table", "query", "release", "process", "noise"),
    kinds_of=_tabular,
    quantities=PREDICTABILITY,
    sized=False,
    standing=frozenset({"cautions", "target_rows", "family"}),
    kindless={
        "table": 'table = { path = "…" }, a CSV, Parquet or Arrow file or a folder of them',
        "query": 'query = { name = "…" }, a column or an SQL expression over the columns',
    },
    whole=frozenset({"query"}),
    defaults={"noise": {"kind": "none"}},
)

GRAMMARS: Mapping[str, Grammar] = {g.kind: g for g in (PREDICTION, TABULAR)}
