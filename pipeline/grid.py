"""The grid of a sweep by its distinct parts: in goes a sweep, out come distinct sections and who shares them.

A grid of 10^5 cells has few distinct sections, and fewer groups of cells that are alike in all that method, feasibility
and cost depend on. Always true: the cells of a group have the same method, feasibility and cost of one trial.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.pipeline.building import distribution_of, hypotheses_of, learner_of, problem_of
from predcube.pipeline.spec.sweep import Section, Sweep
from predcube.tasks.trials import Problem

PARTS = ("hypotheses", "distribution", "learner", "n", "measure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The distinct values of one part of a cell, and which one each cell has.

    ``codes`` has one dimension per axis of the sweep, of length 1 along the axes that do not touch the part.
    ``origins[i]`` is the index of a cell that has value i.
    """

    values: tuple[Any, ...]
    codes: NDArray[np.int32]
    origins: tuple[tuple[int, ...], ...]


def part(sweep: Sweep, name: str) -> Part:
    """One part of ``PARTS`` over the grid."""
    touching = sweep.touching(name)
    lengths = tuple(s if t else 1 for s, t in zip(sweep.shape, touching, strict=True))
    values: list[Any] = []
    origins: list[tuple[int, ...]] = []
    known: dict[str, int] = {}
    codes = np.empty(lengths, dtype=np.int32)
    for index in product(*(range(s) for s in lengths)):
        value = sweep.cell(index).part(name)
        text = json.dumps(value, sort_keys=True)
        if text not in known:
            known[text] = len(values)
            values.append(value)
            origins.append(index)
        codes[index] = known[text]
    return Part(values=tuple(values), codes=codes, origins=tuple(origins))


class Grid:
    """The distinct parts of a sweep, built, and its groups of alike cells."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.parts: Mapping[str, Part] = {name: part(sweep, name) for name in PARTS}

    @cached_property
    def hypotheses(self) -> tuple[Any, ...]:
        return tuple(hypotheses_of(s) for s in self.parts["hypotheses"].values)

    @cached_property
    def distributions(self) -> tuple[Any, ...]:
        return tuple(distribution_of(s, self.sweep.directory) for s in self.parts["distribution"].values)

    @cached_property
    def learners(self) -> tuple[Any, ...]:
        return tuple(learner_of(s) for s in self.parts["learner"].values)

    @cached_property
    def unsuitable(self) -> tuple[tuple[str | None, ...], ...]:
        """[law][class]: why the law does not suit the class, or None."""
        return tuple(tuple(d.unsuitable(h) for h in self.hypotheses) for d in self.distributions)

    @cached_property
    def short(self) -> tuple[tuple[str | None, ...], ...]:
        """[law][size]: why the law has no sample of that size, or None."""
        return tuple(tuple(d.infeasible(n) for n in self.parts["n"].values) for d in self.distributions)

    @cached_property
    def laws(self) -> NDArray[np.int32]:
        """For each law the first one that is like it in all that feasibility and cost depend on: its kind (its rows,
        for a table), which classes it suits and which sizes it has."""
        first: dict[Any, int] = {}
        out = []
        for i, section in enumerate(self.parts["distribution"].values):
            kind = json.dumps(section, sort_keys=True) if section["kind"] == "table" else section["kind"]
            out.append(first.setdefault((kind, self.unsuitable[i], self.short[i]), i))
        return np.array(out, dtype=np.int32)

    @cached_property
    def groups(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Rows of codes (one column per part of ``PARTS``), one a group, and each cell's group (the sweep's shape)."""
        codes = {name: p.codes for name, p in self.parts.items()}
        codes["distribution"] = self.laws[codes["distribution"]]
        sizes = [len(self.parts[name].values) for name in PARTS]
        flat = np.zeros(self.sweep.shape, dtype=np.int64)
        for name, size in zip(PARTS, sizes, strict=True):
            flat = flat * size + codes[name]
        distinct, which = np.unique(flat, return_inverse=True)
        rows = np.stack(np.unravel_index(distinct, sizes), axis=-1).astype(np.int64)
        return rows, which.reshape(self.sweep.shape).astype(np.int32)

    def problem(self, row: NDArray[np.int64]) -> Problem:
        """The problem of one group."""
        h, d, a, n, m = (int(i) for i in row)
        return problem_of(
            self.hypotheses[h],
            self.distributions[d],
            self.learners[a],
            self.parts["n"].values[n],
            self.parts["measure"].values[m],
            self.sweep,
        )

    def outside(self, row: NDArray[np.int64]) -> str | None:
        """Why no sample exists for a group: its law does not suit its class, or has too few rows."""
        h, d, _, n, _ = (int(i) for i in row)
        return self.unsuitable[d][h] or self.short[d][n]


__all__ = ["PARTS", "Grid", "Part", "Section", "part"]
