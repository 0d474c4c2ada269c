"""Every subset of thresholds on two workers: seconds, and how much of a second worker's gain is kept.

The workload's subtrees run through ``predcube.cluster``'s local back-end on one worker and on two; in the same run and
in turn with them, two loops of pure arithmetic do, whose gain is what this machine gives a second process at that
moment. Prints the medians and the ratio of the gains.
"""

import argparse
import statistics
import time
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
import numpy as np

from predcube.cluster import Fanout, Job, Program, connect
from predcube.tasks.hypotheses.thresholds import Thresholds
from predcube.tasks.mixture import MixtureWeights, evaluate, occupancy, subset_mixture, subtree
from predcube.tasks.mixture.base import Workload


@lru_cache(maxsize=2)
def workload(n: int, size: int) -> Workload:
    rng = np.random.default_rng(n)
    x = rng.random(n)
    sample = occupancy(x, ((x >= 0.5) ^ (rng.random(n) < 0.1)).astype(int))
    return subset_mixture(Thresholds(), sample, subset_size=size, beta=0.1, method="enumerate")


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _spin(count: int) -> float:
    total = 0.0
    for i in range(1, count):
        total += 1.0 / (i + total * 1e-9)
    return total


def part(n: int, size: int, level: int, index: int | None) -> Any:
    """A subtree of the workload; without an index, a spin of ``n`` steps."""
    return _spin(n) if index is None else subtree(workload(n, size), level, index)


def leaf(payload: tuple[int, int, int, int | None]) -> Any:
    return part(*payload)


def add(left: Any, right: Any) -> Any:
    return left.add(right)


def total(payload: Any, roots: tuple[Any, ...]) -> Any:
    return roots


PROGRAM = Program(leaf=leaf, combine=add, finish=total)
ALONE = Program(leaf=leaf, combine=max, finish=total)


def timed(fanout: Fanout, program: Program, leaves: list[Any]) -> tuple[float, Any]:
    """Wall seconds of one job's leaves, and what they gave."""
    start = time.perf_counter()
    result = None
    for outcome in fanout.run(program, [Job(key="job", payload=None, leaves=(tuple(leaves),))]):
        if outcome.error is not None:
            raise RuntimeError(outcome.error)
        result = outcome.result if outcome.leaves_done is None else result
    assert result is not None
    return time.perf_counter() - start, result[0]


def main(tiny: bool) -> None:
    n, size, level, rounds = (24, 6, 0, 1) if tiny else (34, 11, 2, 5)  # C(34, 11) = 286 million
    spin, spins = (2**16, 8) if tiny else (2**25, 8)
    work = workload(n, size)
    leaves = [(n, size, level, i) for i in range(-(-work.blocks // 2**level))]
    arithmetic: list[Any] = [(spin + i, 0, 0, None) for i in range(spins)]
    with connect("local", workers=1) as one, connect("local", workers=2) as two:
        for fanout in (one, two):  # compiled, and the sample drawn, in every process
            timed(fanout, PROGRAM, leaves[:8])
            timed(fanout, ALONE, [(16, 0, 0, None)] * 8)
        taken: dict[str, list[float]] = {"enumerate 1": [], "enumerate 2": [], "spin 1": [], "spin 2": []}
        found: dict[str, Any] = {}
        for _ in range(rounds):
            for fanout in (one, two):
                seconds, found[f"enumerate {fanout.workers}"] = timed(fanout, PROGRAM, leaves)
                taken[f"enumerate {fanout.workers}"].append(seconds)
                taken[f"spin {fanout.workers}"].append(timed(fanout, ALONE, arithmetic)[0])
    subsets = work.finish(found["enumerate 1"])
    assert isinstance(subsets, MixtureWeights)
    for workers in (1, 2):
        weights = work.finish(found[f"enumerate {workers}"])
        assert isinstance(weights, MixtureWeights)
        assert np.array_equal(weights.log_weights, subsets.log_weights), "bits differ"
    if tiny:
        whole = evaluate(work)
        assert isinstance(whole, MixtureWeights)
        assert np.array_equal(whole.log_weights, subsets.log_weights), "bits differ"
    middle = {name: statistics.median(values) for name, values in taken.items()}
    gain, given = middle["enumerate 1"] / middle["enumerate 2"], middle["spin 1"] / middle["spin 2"]
    per = statistics.median([(a / b) / (c / d) for a, b, c, d in zip(*(taken[k] for k in taken), strict=True)])
    each = middle["enumerate 2"] / subsets.subsets
    print(f"C({n}, {size}) = {subsets.subsets:,} subsets in {work.blocks} blocks, {len(leaves)} leaves")
    print(f"  {middle['enumerate 1']:.2f} s on one worker, {middle['enumerate 2']:.2f} s on two")
    print(f"  10^8 subsets take {1e8 * each:.2f} s on two workers (aim 5)")
    print(f"  a second worker gains {gain:.2f}, two spin loops {given:.2f}: {per:.2f} of it, round by round (aim .95)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    # Workers import the functions by name, and know nothing of a main script.
    import_module(Path(__file__).stem).main(parser.parse_args().tiny)
