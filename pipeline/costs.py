"""What a sweep costs on this machine: in go problems with their counts of operations, out come seconds.

A trial takes a fixed time plus, for each kernel, its operations at that kernel's speed, which may change with their
number. Both are fitted to a few short runs of the plan's own problems. Always true: nothing here decides a number, a
method or a block; timings set tile shapes and estimates alone.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from scipy.optimize import nnls

from predcube.pipeline.kinds.base import Counts, Work

FIXED = 1e-4  # seconds of a trial besides its kernels, where nothing was measured
SPEED = 3e-9  # seconds of an elementary operation, where nothing was measured
SHORT = 0.15  # seconds: longer trials are not run to calibrate, one block of them is
TRUST = 1e-3  # weight of the prior speeds against one measured run


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds of a trial: ``fixed``, and operations times ``speeds`` (seconds an operation) for each kernel.

    ``bends[kernel]`` are log counts, ascending, and the log factors by which runs of that size differ from the
    straight line: a kernel's speed at 10^4 operations is rarely that at 10^8.
    """

    fixed: float = FIXED
    speeds: Mapping[str, float] = field(default_factory=dict)
    bends: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = field(default_factory=dict)

    def seconds(self, counts: Counts) -> float:
        """Core-seconds of one trial with these operations."""
        return self.fixed + self.work(counts)

    def work(self, counts: Counts) -> float:
        """The same without the fixed part."""
        return sum(self._kernel(kernel, count) for kernel, count in counts.items())

    def _kernel(self, kernel: str, count: float) -> float:
        straight = count * self.speeds.get(kernel, SPEED)
        if kernel not in self.bends or count <= 0:
            return straight
        return straight * math.exp(float(np.interp(math.log(count), *self.bends[kernel])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured piece of work: its operations, whether it was a whole trial, and its seconds."""

    counts: Counts
    trial: bool
    seconds: float


def calibrate(problems: Sequence[tuple[Work, Counts]], *, allowance: float = 0.8) -> Costs:
    """Costs fitted to short runs of some of these problems, each given with its operations, in about ``allowance``
    seconds (longer only where a first call compiles)."""
    kernels = sorted({k for _, counts in problems for k in counts})
    # By size along each kernel: times ascend along these lists but for noise.
    users = [
        [i for _, i in sorted((c[k], i) for i, (_, c) in enumerate(problems) if c.get(k, 0.0) > 0)] for k in kernels
    ]
    runs: list[Run] = []
    costs = Costs()
    spent = 0.0
    tried: set[int] = set()
    for size, mine in product(("smallest", "largest", "middle", "long"), users):
        pick = _pick(size, mine, problems, costs)
        run = _run(*problems[pick], costs) if pick not in tried and spent < allowance else None
        tried.add(pick)
        if run is not None:
            runs.append(run)
            spent += 4 * run.seconds
            costs = fit(runs, kernels)
    return costs


def _pick(size: str, mine: Sequence[int], problems: Sequence[tuple[Work, Counts]], costs: Costs) -> int:
    """Which problem to run next of those that use a kernel, by what has been learnt so far: the largest is the largest
    short one, the middle lies between it and the smallest, and a long one is there for its blocks."""
    if size == "smallest":
        return mine[0]
    if size == "long":
        return mine[-1]
    short = [i for i in mine if costs.seconds(problems[i][1]) <= SHORT] or list(mine[:1])
    if size == "largest":
        return short[-1]
    sizes = [math.log(sum(problems[i][1].values())) for i in short]
    return short[min(int(np.searchsorted(sizes, (sizes[0] + sizes[-1]) / 2)), len(short) - 1)]


def fit(runs: Sequence[Run], kernels: Sequence[str]) -> Costs:
    """Non-negative least squares of relative errors, with a weak pull to the prior speeds so that kernels which no run
    tells apart share the time; then each kernel's bend through the runs in which it takes most of it."""
    unit = np.eye(len(kernels) + 1)
    rows = [
        np.array([FIXED if r.trial else 0.0, *(r.counts.get(k, 0.0) * SPEED for k in kernels)]) / r.seconds
        for r in runs
    ]
    factors, _ = nnls(np.array([*rows, *(TRUST * unit)]), np.array([1.0] * len(rows) + [TRUST] * len(unit)))
    factors = np.maximum(factors, 1e-4)  # a kernel fitted to exactly nothing would make its largest cells look free
    speeds = {k: float(f * SPEED) for k, f in zip(kernels, factors[1:], strict=True)}
    straight = Costs(fixed=float(factors[0] * FIXED), speeds=speeds)
    bends = {k: bend for k in kernels if (bend := _bend(runs, k, straight)) is not None}
    return replace(straight, bends=bends)


def _bend(runs: Sequence[Run], kernel: str, straight: Costs) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Log counts and log factors of the runs that the kernel dominates."""
    points: dict[float, list[float]] = {}
    for run in runs:
        mine = straight.work({kernel: run.counts.get(kernel, 0.0)})
        rest = straight.work(run.counts) - mine + (straight.fixed if run.trial else 0.0)
        if mine > 0 and run.seconds - rest > 0.5 * run.seconds:
            points.setdefault(math.log(run.counts[kernel]), []).append(math.log((run.seconds - rest) / mine))
    if not points:
        return None
    sizes = tuple(sorted(points))
    return sizes, tuple(float(np.mean(points[s])) for s in sizes)


def _run(work: Work, counts: Counts, costs: Costs) -> Run | None:
    """Time some trials, or a block of a long one; None where neither can be done here (the run will say why)."""
    try:
        if costs.seconds(counts) <= 2 * SHORT:
            return Run(counts=counts, trial=True, seconds=_timed(work.measure))
        longest = work.longest()
        if longest is None:
            return None
        partial, blocks = longest
        block = {k: c / blocks for k, c in work.shared().items()}
        if costs.work(block) > 10 * SHORT:
            return None
        return Run(counts=block, trial=False, seconds=_timed(lambda number: partial(min(number, blocks - 1))))
    except Exception:
        # A cell that fails here is recorded as failed by the run itself; its cost stays at the priors.
        return None


def _timed(work: Callable[[int], object]) -> float:
    """CPU seconds of ``work`` once warm: the mean of up to four calls in 50 ms, with the numbers 0 to 3."""
    work(0)
    start, calls = time.process_time(), 0
    while calls < 4 and time.process_time() - start < 0.05:
        work(calls)
        calls += 1
    return max((time.process_time() - start) / calls, 1e-9)
