"""Cells made into problems: in go a cell's plain sections, out comes what the science works on.

Always true: the same sections give equal problems in every process. What was built or read once is kept, since a
worker meets the same sections in many cells.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

from predcube.pipeline.quantities import QUANTITIES
from predcube.pipeline.spec.sections import build_section
from predcube.pipeline.spec.sweep import Cell, Section
from predcube.pipeline.spec.tables import read_rows
from predcube.tasks.distributions import Distribution
from predcube.tasks.hypotheses import HypothesisClass
from predcube.tasks.learners import Learner
from predcube.tasks.trials import Problem


class Setting(Protocol):
    """What a problem takes from the sweep as a whole."""

    @property
    def seed(self) -> int: ...
    @property
    def quantities(self) -> tuple[str, ...]: ...
    @property
    def directory(self) -> str: ...


def build_problem(cell: Cell, sweep: Setting) -> Problem:
    """The problem of one cell. ValueError where a table has changed since the sweep was checked."""
    return problem_of(
        hypotheses_of(cell.sections["hypotheses"]),
        distribution_of(cell.sections["distribution"], sweep.directory),
        learner_of(cell.sections["learner"]),
        cell.n or 0,
        cell.measure,
        sweep,
    )


def problem_of(
    hypotheses: HypothesisClass,
    distribution: Distribution,
    learner: Learner,
    n: int,
    measure: Mapping[str, Any],
    sweep: Setting,
) -> Problem:
    """The problem of built objects."""
    options: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in measure.items()}
    return Problem(
        hypotheses=hypotheses,
        distribution=distribution,
        learner=learner,
        n=n,
        quantities=tuple(q for q in sweep.quantities if QUANTITIES[q].per_trial),
        seed=sweep.seed,
        **options,
    )


def hypotheses_of(section: Section) -> HypothesisClass:
    """The hypothesis class of a section."""
    built: HypothesisClass = _built("hypotheses", _text(section))
    return built


def learner_of(section: Section) -> Learner:
    """The learner of a section."""
    built: Learner = _built("learner", _text(section))
    return built


def distribution_of(section: Section, directory: str) -> Distribution:
    """The law of a section; for real data the rows of its table, whose path starts at ``directory``."""
    built: Distribution = (
        _read(_text(section), directory) if section["kind"] == "table" else _built("distribution", _text(section))
    )
    return built


@lru_cache(maxsize=4096)
def _built(role: str, text: str) -> Any:
    return build_section(role, json.loads(text))


@lru_cache(maxsize=16)
def _read(text: str, directory: str) -> Distribution:
    return read_rows(json.loads(text), directory).distribution()


def _text(section: Section) -> str:
    return json.dumps(section, sort_keys=True, allow_nan=False)
