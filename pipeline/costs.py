"""What a sweep costs on this machine: in go problems with their counts of operations, out come seconds.

A trial takes a fixed time plus, for each kernel, its operations at that kernel's speed. Speeds are fitted to a few
short runs of the plan's own problems. Always true: nothing here decides a number, a method or a block; timings set
tile shapes and estimates alone.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from predcube.tasks.trials import Problem, measure, method_of, prepare

FIXED = 3e-4  # seconds of a trial besides its kernels, where nothing was measured
SPEED = 3e-9  # seconds of an elementary operation, where nothing was measured
SHORT = 0.1  # seconds: longer problems are not run to calibrate, one block of them is
TRUST = 0.05  # weight of the prior speeds against one measured run


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds of a trial: ``fixed`` plus operations times ``speeds`` (seconds per operation of a kernel)."""

    fixed: float = FIXED
    speeds: Mapping[str, float] = field(default_factory=dict)

    def seconds(self, operations: Mapping[str, float]) -> float:
        """Core-seconds of one trial with these operations."""
        return self.fixed + self.work(operations)

    def work(self, operations: Mapping[str, float]) -> float:
        """The same without the fixed part."""
        return sum(count * self.speeds.get(kernel, SPEED) for kernel, count in operations.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured piece of work: its operations by kernel, whether it was a whole trial, and its seconds."""

    operations: Mapping[str, float]
    trial: bool
    seconds: float


def calibrate(
    problems: Sequence[tuple[Problem, Mapping[str, float]]],
    *,
    allowance: float = 0.8,
    clock: Callable[[], float] = time.perf_counter,
) -> Costs:
    """Costs fitted to short runs of some of these problems, each given with its operations, in about ``allowance``
    seconds (longer only where a first call compiles)."""
    kernels = sorted({k for _, operations in problems for k in operations})
    if not kernels:
        return Costs()
    runs: list[Run] = []
    spent = 0.0
    for problem, operations in _chosen(problems, kernels):
        if spent > allowance:
            break
        run = _run(problem, operations, clock)
        if run is not None:
            runs.append(run)
            spent += 2 * run.seconds
    return fit(runs, kernels)


def fit(runs: Iterable[Run], kernels: Sequence[str]) -> Costs:
    """Non-negative least squares of relative errors, with a weak pull to the prior speeds so that kernels no run
    tells apart share the time."""
    rows, wanted = [], []
    for run in runs:
        row = [FIXED if run.trial else 0.0, *(run.operations.get(k, 0.0) * SPEED for k in kernels)]
        rows.append(np.array(row) / run.seconds)
        wanted.append(1.0)
    for i in range(len(kernels) + 1):
        rows.append(np.eye(len(kernels) + 1)[i] * TRUST)
        wanted.append(TRUST)
    factors, _ = nnls(np.array(rows), np.array(wanted))
    floor = 1e-3  # a kernel fitted to exactly nothing would make its largest cells look free
    scaled = np.maximum(factors, floor)
    return Costs(
        fixed=float(scaled[0] * FIXED), speeds={k: float(f * SPEED) for k, f in zip(kernels, scaled[1:], strict=True)}
    )


def _chosen(
    problems: Sequence[tuple[Problem, Mapping[str, float]]], kernels: Sequence[str]
) -> list[tuple[Problem, Mapping[str, float]]]:
    """For each kernel the cheapest, the median and the dearest problem that is short enough by the priors (the cheapest
    one whatever it costs), kernels in turn."""
    prior = Costs()
    picks: list[list[int]] = []
    for kernel in kernels:
        users = [i for i, (_, operations) in enumerate(problems) if operations.get(kernel, 0) > 0]
        users.sort(key=lambda i: prior.seconds(problems[i][1]))
        short = [i for i in users if prior.seconds(problems[i][1]) <= SHORT] or users[:1]
        picks.append([short[-1], short[0], short[len(short) // 2]] if short else [])
    order = dict.fromkeys(p[turn] for turn in range(3) for p in picks if len(p) > turn)
    return [problems[i] for i in order]


def _run(problem: Problem, operations: Mapping[str, float], clock: Callable[[], float]) -> Run | None:
    """Time one trial, or one block of a long one; None where neither can be done here (the run will say why)."""
    try:
        if Costs().seconds(operations) <= 2 * SHORT:
            return Run(operations=operations, trial=True, seconds=_timed(lambda: measure(problem, 0), clock))
        work = max(prepare(problem, 0).workloads, key=lambda w: w.cost, default=None)
        if work is None or work.cost * SPEED > 10 * SHORT:
            return None
        block = _timed(lambda: work.partial(0), clock)
        return Run(operations={method_of(problem): work.cost}, trial=False, seconds=block)
    except Exception:
        # A cell that fails here is recorded as failed by the run itself; its cost stays at the priors.
        return None


def _timed(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Seconds of ``work`` once warm: the least of up to three runs in 20 ms."""
    work()
    best, spent = float("inf"), 0.0
    for _ in range(3):
        start = clock()
        work()
        elapsed = clock() - start
        best, spent = min(best, elapsed), spent + elapsed
        if spent > 0.02:
            break
    return max(best, 1e-9)
