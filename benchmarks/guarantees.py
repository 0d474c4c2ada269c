"""A random search for a data set on which a learner is beyond its guarantee: how near did any come?

    python benchmarks/guarantees.py [--data-sets 12000] [--seed 0]

Every learner, on every kind of class that it takes (finite ones of up to 9 points, and the line), at random parameters
and sizes, on random data sets of few types and many; each is audited exhaustively. Prints, for each learner, the
largest of measured ÷ guaranteed stability, privacy loss and δ(ε), and the data set that came nearest; a value above 1
would be a guarantee that is broken.
"""

import argparse
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from predcube.tasks import audit, hypotheses, learners
from predcube.tasks.audits import Audit
from predcube.tasks.bounds import delta_bound
from predcube.tasks.hypotheses import HypothesisClass
from predcube.tasks.learners import Learner

type Draw = Callable[[np.random.Generator, int], dict[str, Any]]
ROUNDING = 1e-9
EPSILONS = (0.05, 0.5)


def _loguniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")


def _size(rng: np.random.Generator, n: int) -> int:
    return int(rng.integers(1, n + 1))


def _chunks(rng: np.random.Generator, n: int) -> int:
    return int(rng.integers(1, min(n, 4) + 1))


def _convention(rng: np.random.Generator, *names: str) -> str:
    return str(rng.choice(names))


def _inner(rng: np.random.Generator, n: int) -> dict[str, Any]:
    kind = str(rng.choice(["erm", "df_realizable", "df_agnostic", "subsample_average"]))
    size = _size(rng, n)
    return {"inner": {"kind": kind, **PARAMETERS[kind](rng, size)}, "subset_size": size}


PARAMETERS: Mapping[str, Draw] = {
    "stable": lambda rng, n: {
        "gamma": _loguniform(rng, 0.05, 6),
        "subset_size": _size(rng, n),
        "convention": _convention(rng, "proof", "outline"),
    },
    "stable_net": lambda rng, n: {
        "gamma": _loguniform(rng, 0.05, 6),
        "alpha": float(rng.choice([0.0, 0.3, 0.5, 1.0])),
        "subset_size": _size(rng, n),
        "convention": _convention(rng, "proof", "outline", "paper"),
    },
    "stable_flip": lambda rng, n: {
        "epsilon": _loguniform(rng, 0.05, 20),
        "alpha": _loguniform(rng, 0.01, 0.5),
        "subset_size": _size(rng, n),
        "convention": _convention(rng, "proof", "outline", "introduction"),
    },
    "private": lambda rng, n: {
        "epsilon": _loguniform(rng, 1, 20),
        "alpha": _loguniform(rng, 0.01, 0.5),
        "eta": _loguniform(rng, 0.3, 5),
        "chunks": _chunks(rng, n),
        "subset_size": _size(rng, n),
        "convention": _convention(rng, "proof", "outline"),
    },
    "private_lwy": lambda rng, n: {
        "epsilon": _loguniform(rng, 0.05, 0.9),
        "alpha": 0.1,
        "chunks": int(rng.integers(1, 3)),
    },
    "df_realizable": lambda rng, n: {"epsilon": _loguniform(rng, 0.05, 6), "alpha": 0.1, "chunks": _chunks(rng, n)},
    "df_agnostic": lambda rng, n: {"epsilon": _loguniform(rng, 0.05, 6), "chunks": _chunks(rng, n)},
    "df_thresholds": lambda rng, n: {
        "epsilon": _loguniform(rng, 0.05, 6),
        "alpha": _loguniform(rng, 0.01, 0.45),
        "convention": _convention(rng, "proof", "paper"),
    },
    "subsample_average": lambda rng, n: {"chunks": _chunks(rng, n)},
    "subsample": _inner,
    "exponential": lambda rng, n: {"epsilon": _loguniform(rng, 0.05, 6)},
    "erm": lambda rng, n: {},
    "two_point": lambda rng, n: {},
}
COSTLY = {"private", "private_lwy", "subsample", "stable_net"}
"""Learners whose audits take longest: they get smaller data sets."""


def _class(rng: np.random.Generator, kind: str) -> tuple[str, dict[str, Any]]:
    """A class that a learner of this kind takes."""
    if kind == "two_point":
        return "complement_pair", {"labels": rng.integers(0, 2, int(rng.integers(1, 5))).tolist()}
    k = int(rng.integers(1, 4 if kind in COSTLY else 5))
    line: dict[str, Any] = {"points": k}
    if kind == "df_thresholds":
        return "thresholds", {} if rng.random() < 0.3 else line
    choices: list[tuple[str, dict[str, Any]]] = [
        ("thresholds", line),
        ("points", line),
        ("intervals", line),
        ("interval_unions", {"count": 2, **line}),
        ("cube", line),
        ("table", {"matrix": rng.integers(0, 2, (int(rng.integers(1, 6)), k)).tolist()}),
        ("complement_pair", line),
        ("stumps", {"dimension": 2, "points": 2}),
        ("boxes", {"dimension": 2, "points": 2}),
        ("halfspaces", {"dimension": 2, "points": 2}),
        ("gf_lines", {"q": 2}),
    ]
    if kind not in COSTLY:
        if rng.random() < 0.2:
            choices.append(("halfspaces", {"dimension": 2, "points": 3}))
        if kind != "exponential":  # which needs a finite class
            choices += [("thresholds", {}), ("intervals", {}), ("points", {})]
    name, parameters = choices[int(rng.integers(len(choices)))]
    return name, parameters


def _data(rng: np.random.Generator, h: HypothesisClass, n: int) -> tuple[Any, Any]:
    """n records of a few types, one often far more frequent than others, in random order."""
    places = np.arange(5) / 2 if h.domain is None else h.domain
    types = 2 * len(places)
    few = rng.permutation(types)[: rng.integers(1, min(types, n) + 1)]
    drawn = rng.choice(few, n, p=rng.dirichlet(np.ones(len(few))))
    return places[drawn // 2], drawn % 2


@dataclass(slots=True)
class Nearest:
    """The largest ratios of one learner, how many data sets were audited, and where stability came nearest."""

    data_sets: int = 0
    stability: float = 0.0
    privacy_loss: float = 0.0
    delta: float = 0.0
    where: str = ""


def _ratio(measured: float, guaranteed: float) -> float:
    """0 where nothing is promised, and where nothing is measured."""
    if measured <= ROUNDING or guaranteed == math.inf:
        return 0.0
    return math.inf if guaranteed == 0.0 else measured / guaranteed


def search(data_sets: int, seed: int) -> dict[str, Nearest]:
    """Audits at least ``data_sets`` data sets, the same number for each learner (a quarter of it for costly ones)."""
    weights = {kind: 0.25 if kind in COSTLY else 1.0 for kind in PARAMETERS}
    share = data_sets / sum(weights.values())
    found: dict[str, Nearest] = defaultdict(Nearest)
    for place, (kind, draw) in enumerate(PARAMETERS.items()):
        rng = np.random.default_rng([seed, place])
        mine = found[kind]
        while mine.data_sets < share * weights[kind]:
            n = int(rng.integers(2, 6 if kind in COSTLY else 9))
            name, parameters = _class(rng, kind)
            h = hypotheses.build(name, **parameters)
            learner = learners.build(kind, **draw(rng, n))
            if learner.infeasible(n, h) is not None:
                continue
            for _ in range(4):
                x, y = _data(rng, h, n)
                got = audit(learner, h, x, y)
                if not got.exhaustive:
                    raise AssertionError(f"{learner} on {h}: {got.kind}")
                _compare(mine, got, learner, n, f"{learner} on {h}: x = {x.tolist()}, y = {y.tolist()}")
    return dict(found)


def _compare(mine: Nearest, got: Audit, learner: Learner, n: int, where: str) -> None:
    gamma, epsilon = learner.guaranteed_stability(n), learner.guaranteed_privacy_loss(n)
    mine.data_sets += 1
    ratio = _ratio(got.stability, gamma)
    if ratio > mine.stability:
        mine.stability, mine.where = ratio, where
    mine.privacy_loss = max(mine.privacy_loss, _ratio(got.privacy_loss, epsilon))
    for e in EPSILONS:
        mine.delta = max(mine.delta, _ratio(got.delta(e), delta_bound(e, epsilon, gamma)))


def main(data_sets: int, seed: int = 0) -> bool:
    """Prints what was found; whether every learner kept its guarantees."""
    start = time.process_time()
    found = search(data_sets, seed)
    took = time.process_time() - start
    print(
        f"{'learner':<18} {'data sets':>9}  {'stability':>9}  {'privacy loss':>12}  {'δ(ε)':>9}   "
        "(largest measured ÷ guaranteed, and where stability came nearest)"
    )
    for kind, mine in found.items():
        print(
            f"{kind:<18} {mine.data_sets:>9}  {mine.stability:>9.6f}  {mine.privacy_loss:>12.6f}  {mine.delta:>9.6f}   "
            f"{mine.where}"
        )
    total = sum(mine.data_sets for mine in found.values())
    worst = max(max(mine.stability, mine.privacy_loss, mine.delta) for mine in found.values())
    kept = worst <= 1 + ROUNDING
    print(
        f"{total} data sets in {took:.1f} s of one core: "
        f"{'no guarantee is broken' if kept else 'A GUARANTEE IS BROKEN'}, the largest ratio is {worst:.9f}"
    )
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-sets", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.exit(0 if main(options.data_sets, options.seed) else 1)
