"""The cells of a predictability sweep, measured: in go needs and a shelf, out come the numbers of one trial of a cell.

Always true: what is measured is a function of the shelf, the cell's own sections and the trial; a cell that cannot be
(an infeasible process, noise that is not needed) says why and is no failure.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from predcube.pipeline.needs import Codes, Needs
from predcube.pipeline.samples import Sample
from predcube.pipeline.shelf import Shelf
from predcube.pipeline.simulations import Simulations
from predcube.pipeline.tiles import Measured
from predcube.tasks import families, families_linear
from predcube.tasks.attackers import Simulation
from predcube.tasks.gains import Gains, Measure, Values
from predcube.tasks.noises import Noise
from predcube.tasks.noises.rank_one import RankOne
from predcube.tasks.processes import Law, Process
from predcube.tasks.seeds import stream

CAUTIONS = ("few_shards", "linear_attacker", "ill_conditioned", "beyond_first_order", "constant_query")
"""What a reader of the values should know, a bit each."""

TARGETS = {"all rows": 1, "unseen rows": 2, "all members": 3, "unseen members": 4}
"""Whose mean the attacker predicts."""

CELL = frozenset({"n", "K", "m", "rank", "condition"})
"""Values of the cell and not of a query."""

KEPT = 512
"""Values, and factored laws, that a worker keeps at most."""

FACTORED = 2**28
"""Bytes, about, of factored laws that it keeps: the two latest in any case."""


def caution_meanings() -> dict[str, int]:
    """Every combination of cautions as a word and its code."""
    words = {}
    for code in range(2 ** len(CAUTIONS)):
        words["+".join(c for i, c in enumerate(CAUTIONS) if code >> i & 1) or "none"] = code + 1
    return words


class Infeasible(Exception):
    """Why a cell cannot be: no failure."""


class Cells:
    """Measures cells. What is factored or computed once is kept for the cells that share it."""

    def __init__(self, needs: Needs, shelf: Shelf, directory: str = ".") -> None:
        self._needs, self._shelf = needs, shelf
        self._simulations = Simulations(needs, directory)
        self._simulated: tuple[tuple[Codes, int], Simulation] | None = None
        self._needed = needs.needed(shelf)
        self._gains: OrderedDict[tuple[str, int, int], Gains] = OrderedDict()
        self._values: OrderedDict[Codes, Values] = OrderedDict()
        self._wide = query_dimension(needs)

    def infeasible(self, codes: Codes) -> str | None:
        """Why a cell cannot be measured, or None."""
        try:
            self.values(codes)
        except Infeasible as e:
            return str(e)
        except ValueError:  # it fails, and says so where it is measured
            return None
        return None

    def inapplicable(self, codes: Codes) -> Mapping[str, str]:
        """Why each quantity that cannot be measured in a cell cannot be: all of them where ``infeasible`` says why."""
        reason = self.infeasible(codes)
        if reason is not None:
            return dict.fromkeys(self._needs.sweep.quantities, reason)
        return unmeasurable(self._needs, codes)

    def sample(self, codes: Codes) -> Sample:
        """The complete rows of a cell."""
        t, q, r, p, _, _ = codes
        found = self._needs.sample(self._shelf, t, q, r, self._needs.leaders[p])
        if found is None:
            raise ValueError("the table's rows were not counted; run the sweep again")
        return found

    def values(self, codes: Codes) -> Values:
        """The values of a cell. Raises ``Infeasible``, ValueError where its fit or law failed."""
        found = self._values.get(codes)
        if found is None:
            process, noise, measure = self._objects(codes)
            gains = self.gains(codes)
            reason = gains.infeasible(process, noise, measure)
            if reason is not None:
                raise Infeasible(reason)
            found = self._values[codes] = gains.values(process, noise, measure)
            while len(self._values) > KEPT:
                self._values.popitem(last=False)
        return found

    def gains(self, codes: Codes) -> Gains:
        """The factored law of a cell's own queries. Raises as ``values``."""
        t, q, r, p, _, _ = codes
        process, noise, measure = self._objects(codes)
        reason = refusal(self.sample(codes), process, noise, measure, len(self._needs.queries[q]["names"]))
        if reason is not None:
            raise Infeasible(reason)
        name, at = self._needed.places[t, q, r, self._needs.leaders[p]]
        width = len(self._needs.queries[q]["names"])
        gains = self._gains.get((name, at, width))
        if gains is None:
            law: Law | None = self._shelf.find(name)
            fitted = self._shelf.find(self._needed.laws[name].fit)
            if law is None or fitted is None:
                raise ValueError("the table's law was not computed; run the sweep again")
            gains = Gains(law=narrowed(law, slice(at, at + width)), coordinates=fitted)
            self._gains[name, at, width] = gains
            held = sum(map(_bytes, self._gains.values()))
            while len(self._gains) > (2 if held > FACTORED else KEPT):
                held -= _bytes(self._gains.popitem(last=False)[1])
        # τ and the loss are of the cell, p of the law: whether they go together is known here alone.
        try:
            measure.curvatures(gains.law)
        except ValueError as e:
            raise Infeasible(str(e)) from e
        return gains

    def measure(self, codes: Codes, trial: int) -> Measured:
        """One trial of a cell: every quantity that applies to it."""
        values = self.values(codes)
        without = unmeasurable(self._needs, codes)
        process, _, _ = self._objects(codes)
        measured: dict[str, Any] = {
            "cautions": self._cautions(values),
            "target_rows": float(TARGETS[target_of(process)]),
        }
        for name in self._needs.sweep.quantities:
            if name in without:
                continue
            measured[name] = _MADE[name](self, codes, trial, values) if name in _MADE else self._plain(name, values)
        return measured

    def _objects(self, codes: Codes) -> tuple[Process[Any], Noise, Measure]:
        return self._needs.processes[codes[3]], self._needs.noises[codes[4]], self._needs.measures[codes[5]]

    def _plain(self, name: str, values: Values) -> Any:
        found = getattr(values, name)
        if name in CELL:
            return float(found)
        if name == "utility_cost":
            return float(found[0])
        return found if self._wide else float(found[0])

    def _cautions(self, values: Values) -> Any:
        whole = sum(1 << i for i, c in enumerate(CAUTIONS[:-1]) if c in values.flags)
        found = 1 + whole + (values.constant.astype(np.uint8) << (len(CAUTIONS) - 1))
        return found if self._wide else int(found[0])

    def dropped(self, codes: Codes) -> float:
        return float(self.sample(codes).lost)

    def rows(self, codes: Codes) -> float:
        return float(self.sample(codes).rows)

    def family_gain(self, codes: Codes, trial: int) -> float:
        """E max over the family, an estimate whose draws are a trial's."""
        process, noise, measure = self._objects(codes)
        gains = self.gains(codes)
        options = self._needs.parts["measure"].values[codes[5]]
        sigma1, gain = _square(gains.law), gains.gain_matrix(process, noise, measure)
        scale = process.factors(gains.law).K
        bend, _, _ = measure.curvatures(gains.law)
        rng = stream(self._needs.sweep.seed, "family", self._identity(codes), trial)
        draws = int(options["draws"])
        if options["family"] == "ball":
            return families_linear.ball(sigma1, gain, radius=options["radius"], K=scale, rng=rng, draws=draws).value
        return families.finite_family(sigma1, gain, K=scale, curvature=bend, rng=rng, draws=draws).value

    def family_bound(self, codes: Codes) -> float:
        process, noise, measure = self._objects(codes)
        gains = self.gains(codes)
        options = self._needs.parts["measure"].values[codes[5]]
        scale = process.factors(gains.law).K
        _, smooth, _ = measure.curvatures(gains.law)
        largest = float(np.max(smooth))
        if options["family"] == "finite":
            gain = gains.gain(process, noise, measure)
            return families.finite_family_bound(gains.law.s1, gain, K=scale, H=largest).value
        sigma1, matrix = _square(gains.law), gains.gain_matrix(process, noise, measure)
        bound = families_linear.ball_bound if options["family"] == "ball" else families_linear.l1_bound
        return bound(sigma1, matrix, radius=options["radius"], K=scale, H=largest).value

    def simulated(self, codes: Codes, trial: int) -> Simulation:
        """The attacker's draws of a trial."""
        if self._simulated is None or self._simulated[0] != (codes, trial):
            t, q, r, p, _, _ = codes
            gains, sample = self.gains(codes), self.sample(codes)
            fitted = self._shelf.find(self._needed.laws[self._needed.places[t, q, r, self._needs.leaders[p]][0]].fit)
            found = self._simulations.run(codes, trial, gains, fitted, sample)
            self._simulated = ((codes, trial), found)
        return self._simulated[1]

    def simulated_gain(self, codes: Codes, trial: int) -> Any:
        found = self.simulated(codes, trial).simulated_gain
        return found if self._wide else float(found[0])

    def simulated_ratio(self, codes: Codes, trial: int) -> Any:
        """What was gained over what is predicted: 1 where both are 0."""
        run = self.simulated(codes, trial)
        none = np.where(run.simulated_gain > 0, np.inf, 1.0)
        found = np.where(np.isnan(run.simulated_ratio), none, run.simulated_ratio)
        return found if self._wide else float(found[0])

    def _identity(self, codes: Codes) -> dict[str, Any]:
        """What identifies the draws of a cell: its sections' contents."""
        sections = {role: self._needs.parts[role].values[c] for role, c in zip(self._needs.parts, codes, strict=True)}
        table = sections["table"]
        return {**sections, "table": table["digest"], "measure": dict(sections["measure"])}


def _bytes(gains: Gains) -> int:
    """About what a factored law takes: its matrices, their factors, and those of a shape of noise or two."""
    queries, d = len(gains.law.cross), len(gains.law.variance)
    return 8 * d * (12 * d + 4 * queries) + 2**12


def refusal(
    sample: Sample, process: Process[Any], noise: Noise, measure: Measure, queries: int, *, joint: bool = False
) -> str | None:
    """Why no cell of this sample can be, as far as counts tell."""
    if not sample.rows:
        lost = ", ".join(f"{count} by {reason}" for reason, count in sample.dropped.items())
        return f"no complete row is left of {sample.total}" + (f": {lost}" if lost else "")
    reason = process.infeasible(sample.rows, sample.groups)
    if reason is not None:
        return reason
    if isinstance(noise, RankOne) and queries > 1:
        return f"rank_one noise hides one query, and there are {queries}: take calibrated or isotropic noise"
    if measure.loss == "log" and sample.queries is not None and not sample.queries.binary.all():
        place = int(np.argmin(sample.queries.binary))
        return f"log loss needs a binary query, and query {place + 1} of {queries} takes values other than 0 and 1"
    return None


def query_dimension(needs: Needs) -> bool:
    """Whether values have a dimension of queries: not where queries are an axis, each by itself."""
    return not any(a.section == "query" and a.name == "query" for a in needs.sweep.axes)


def unmeasurable(needs: Needs, codes: Codes) -> Mapping[str, str]:
    """Why each quantity that a feasible cell has not is not there."""
    family, loss = needs.parts["measure"].values[codes[5]].get("family"), needs.measures[codes[5]].loss
    reason = None
    if family == "l1":
        reason = "an L1 ball has a bound and no value: measure family_bound"
    elif family == "ball" and loss == "log":
        reason = "a ball of linear combinations is scored by the squared loss alone"
    return {} if reason is None or "family_gain" not in needs.sweep.quantities else {"family_gain": reason}


def target_of(process: Process[Any]) -> str:
    """Whose mean the attacker predicts, in words."""
    if process.target_expression is None:
        return "unseen rows" if process.target == "unseen" else "all rows"
    return "unseen members" if getattr(process, "members", None) == "unseen" else "all members"


def narrowed(law: Law, queries: slice) -> Law:
    """The law of some of its queries."""
    names = ("p", "s1", "cross", "binary", "constant")
    return replace(
        law,
        joint=None if law.joint is None else law.joint[queries, queries],
        **{name: getattr(law, name)[queries] for name in names},
    )


def _square(law: Law) -> Any:
    if law.joint is None:
        raise ValueError("covariances between queries were not summed up; run the sweep into a new store")
    return law.joint


type _Make = Callable[[Cells, Codes, int, Values], Any]

_MADE: dict[str, _Make] = {
    "dropped_rows": lambda cells, codes, trial, values: cells.dropped(codes),
    "simulated_gain": lambda cells, codes, trial, values: cells.simulated_gain(codes, trial),
    "simulated_ratio": lambda cells, codes, trial, values: cells.simulated_ratio(codes, trial),
    "rows": lambda cells, codes, trial, values: cells.rows(codes),
    "family_gain": lambda cells, codes, trial, values: cells.family_gain(codes, trial),
    "family_bound": lambda cells, codes, trial, values: cells.family_bound(codes),
}
