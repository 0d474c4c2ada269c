"""One trial of one cell, in this process: how long it takes, and what compiled loops are worth in it.

Prints CPU microseconds of a whole ``measure`` and of its parts (draw with its stream, mixture, errors or audit), and
for the sums over supports the ratio to the same sums vectorised in NumPy, which are the named baseline; for the
recursion behind ``laplace`` at small n' the ratio to the contour. All in one run.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from predcube.tasks import distributions, hypotheses, learners
from predcube.tasks.hypotheses.thresholds import _lost as lost
from predcube.tasks.mixture import evaluate, laplace, support
from predcube.tasks.mixture.contour import _merged as merged
from predcube.tasks.trials import Problem, measure, method_of, prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    points: int | None
    n: int
    gamma: float
    quantities: tuple[str, ...] = ("excess_error",)

    @property
    def problem(self) -> Problem:
        h = hypotheses.build("thresholds", points=self.points)
        at = 0.4 if self.points is None else self.points // 2
        return Problem(
            hypotheses=h,
            distribution=distributions.build("threshold", at=at, noise=0.1),
            learner=learners.build("stable", gamma=self.gamma),
            n=self.n,
            quantities=self.quantities,
            seed=1,
        )


def microseconds(work: Callable[[], object], allowance: float) -> float:
    """CPU time of a call once warm: the least of three means, since the machine may be shared."""
    work()
    means = []
    for _ in range(3):
        start, calls = time.process_time(), 0
        while calls == 0 or time.process_time() - start < allowance / 3:
            work()
            calls += 1
        means.append((time.process_time() - start) / calls)
    return 1e6 * min(means)


def supports_by_numpy(
    losses: NDArray[np.float64], held: NDArray[np.int64], *, subset_size: int, beta: float
) -> NDArray[np.float64]:
    """``support.additive`` for one sample in NumPy, coefficients as they are (n up to 980): ``losses`` (k + 1,), null
    first, then from the last point down; ``held`` (k,)."""
    k, size = len(held), subset_size
    halves = []
    for side in (held[: k // 2], held[k // 2 :]):
        found = np.zeros((1, size + 1))
        found[0, 0] = 1.0
        for c in side.tolist():
            grown = np.zeros(found.shape)
            for i in range(1, min(size, c) + 1):
                grown[:, i:] += found[:, : size + 1 - i] * math.comb(c, i)
            found = np.concatenate([found, grown])
        halves.append(found)
    chance = np.einsum("aj,bj->ba", halves[0], halves[1][:, ::-1]).reshape(-1) / math.comb(int(held.sum()), size)
    log_scale = beta * (losses[0] - losses)
    scale = np.exp(log_scale - log_scale.max())
    z = scale[:1]
    for own in scale[:0:-1]:
        z = np.concatenate([z, z + own])
    share = chance[1:] / z[1:]
    inside = (np.arange(1, 2**k)[:, None] >> np.arange(k - 1, -1, -1)) & 1
    sums = np.append(share.sum(), (share[:, None] * inside).sum(axis=0))
    with np.errstate(divide="ignore"):
        return np.asarray(log_scale - log_scale.max() + np.log(sums))


def split(case: Case, allowance: float) -> None:
    """A line on one cell's trial and its parts."""
    problem = case.problem
    ready = prepare(problem, 0)
    mixtures = tuple(evaluate(w) for w in ready.workloads)
    trials = iter(range(10**9))
    whole = microseconds(lambda: measure(problem, next(trials)), allowance)
    drawn = microseconds(lambda: prepare(problem, next(trials)), allowance)
    mixed = microseconds(lambda: tuple(evaluate(w) for w in ready.workloads), allowance) if mixtures else 0.0
    judged = microseconds(lambda: ready.finish(mixtures), allowance)
    where = "real X" if case.points is None else f"k={case.points}"
    method = method_of(problem) if mixtures else "audit alone"
    print(
        f"{where}, n={case.n}, gamma={case.gamma}, {'+'.join(case.quantities)} ({method}): {whole:.0f} us a trial; "
        f"draw {drawn:.0f}, mixture {mixed:.0f}, errors and audit {judged:.0f}"
    )


def supports(case: Case, allowance: float) -> None:
    """A line on the sums over supports, compiled and not."""
    losses, held, size, beta = _sample(case)
    fast = microseconds(lambda: support.additive(losses[None], held[None], subset_size=size, beta=beta), allowance)
    plain = microseconds(lambda: supports_by_numpy(losses, held, subset_size=size, beta=beta), allowance)
    found = support.additive(losses[None], held[None], subset_size=size, beta=beta)[0]
    gap = np.abs(found - supports_by_numpy(losses, held, subset_size=size, beta=beta)).max()
    print(
        f"supports, k={len(held)}, n={case.n}, n'={size}: numba {fast:.0f} us, NumPy {plain:.0f} us, "
        f"ratio {plain / fast:.1f}x, they differ by {gap:.1e}"
    )


def integral(case: Case, allowance: float) -> None:
    """A line on the two ways to Laplace's integral."""
    losses, held, size, beta = _sample(case)
    took = {
        kernel: microseconds(
            lambda kernel=kernel: laplace.log_weights(  # type: ignore[misc]
                losses, held[::-1], subset_size=size, beta=beta, relative=False, kernel=kernel
            ),
            allowance,
        )
        for kernel in ("recursion", "contour")
    }
    print(
        f"laplace, k={len(held)}, n={case.n}, n'={size}: recursion {took['recursion']:.0f} us, contour "
        f"{took['contour']:.0f} us, ratio {took['contour'] / took['recursion']:.1f}x"
    )


def passes(case: Case, allowance: float) -> None:
    """A line for each single pass over a sample that is compiled, against the array operations it stands for."""
    problem = case.problem
    ready = prepare(problem, 0)
    h, sample = problem.hypotheses, ready.sample
    points, counts = sample.points.astype(np.float64), sample.counts.astype(np.float64)
    cuts = h.representatives(sample.points)
    log_scale, held = np.round(np.sin(points), 1), sample.counts.sum(axis=1)

    def lost_by_numpy() -> NDArray[np.float64]:
        before = np.append(0.0, np.cumsum(counts[:, 1]))
        rest = np.append(np.cumsum(counts[::-1, 0])[::-1], 0.0)
        place = np.searchsorted(points, cuts)
        return np.asarray(before[place] + rest[place])

    def merged_by_numpy() -> NDArray[np.int64]:
        sizes, kind = np.unique(held, return_inverse=True)
        _, place = np.unique(log_scale, return_inverse=True)
        return np.unique(place * len(sizes) + kind, return_inverse=True, return_counts=True)[1]

    order = np.lexsort((held, log_scale))
    assert np.array_equal(lost_by_numpy(), lost(points, counts, cuts))
    assert np.array_equal(merged_by_numpy(), merged(log_scale, held, order)[-1])
    for name, plain, compiled in (
        ("losses of thresholds", lost_by_numpy, lambda: lost(points, counts, cuts)),
        (
            "points merged, sorting included",
            merged_by_numpy,
            lambda: merged(log_scale, held, np.lexsort((held, log_scale))),
        ),
    ):
        slow, fast = microseconds(plain, allowance), microseconds(compiled, allowance)
        print(
            f"{name}, n={case.n}, k={len(points)}: numba {fast:.1f} us, NumPy {slow:.1f} us, ratio {slow / fast:.1f}x"
        )


def _sample(case: Case) -> tuple[NDArray[np.float64], NDArray[np.int64], int, float]:
    problem = case.problem
    sample = prepare(problem, 0).sample
    h, derived = problem.hypotheses, problem.learner.derived(case.n)
    losses = h.loss(h.representatives(sample.points), sample.points, sample.counts)
    return losses, sample.counts.sum(axis=1), derived["subset_size"], derived["beta"]


def main(tiny: bool) -> None:
    with threadpool_limits(1):  # as in a worker; CPU time would count threads that wait
        _main(tiny)


def _main(tiny: bool) -> None:
    allowance = 0.003 if tiny else 0.3
    scale = 4 if tiny else 1
    both = ("excess_error", "stability", "privacy_loss")
    for case in (
        Case(points=9, n=100 // scale, gamma=0.1),
        Case(points=9, n=200 // scale, gamma=0.2),
        Case(points=None, n=100 // scale, gamma=0.1),
        Case(points=None, n=400 // scale, gamma=0.2),
        Case(points=9, n=100 // scale, gamma=0.1, quantities=both),
        Case(points=None, n=100 // scale, gamma=0.1, quantities=both),
    ):
        split(case, allowance)
    for points, n, gamma in ((6, 60, 0.1), (9, 100, 0.1), (9, 200, 0.2), (12, 200, 0.1)):
        supports(Case(points=points, n=n // scale, gamma=gamma), allowance)
    for points_given in (9, None):
        passes(Case(points=points_given, n=100 // scale, gamma=0.1), allowance)
    for n, gamma in ((60, 0.1), (100, 0.1), (150, 0.16), (400, 0.2)):
        integral(Case(points=None, n=n // scale, gamma=gamma), allowance)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a size for tests")
    main(parser.parse_args().tiny)
