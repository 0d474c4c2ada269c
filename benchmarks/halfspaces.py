"""Subsets of halfspaces: how many a second on one core, beside the direct way, and what does not grow with them.

The direct way, in the same run: for each subset T every line through two of its points labels the sample with its two
sides and the two points either way, ``numpy.unique`` keeps one row for each labeling of T, losses are products with the
labels, and λ/Z of the rows are summed into p_S on the sample. Both sum the same weights, which is checked. Then seconds
a subset as n' grows, for halfspaces in space and boxes (a picture with ``--picture FILE``), and memory as the number of
subsets grows.
"""

import argparse
import resource
import time
import tracemalloc
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses import HypothesisClass, build
from predcube.tasks.mixture import Labels, Occupancy, aimed, evaluate, occupancy, subset_mixture, subsets
from predcube.tasks.mixture.montecarlo import MonteCarlo
from predcube.tasks.mixture.visits import Visitor

BETA = 0.1
PATTERNS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool)


def sample(n: int, features: int) -> Occupancy:
    rng = np.random.default_rng(n)
    x = rng.random((n, features))
    return occupancy(x, ((x.sum(axis=1) >= features / 2) ^ (rng.random(n) < 0.1)).astype(int))


def direct(
    points: NDArray[np.float64], gain: NDArray[np.float64], ones: float, t: NDArray[np.int64]
) -> tuple[int, float, NDArray[np.float64]]:
    """Of one subset |H_T|, Z_T and Σ_h λ_h/Z_T·h(x) at each point x of the sample: every pair of the subset, rows on
    the sample, ``numpy.unique`` of their labels on T."""
    a, b = np.triu_indices(len(t), 1)
    a, b = t[a], t[b]
    d = points[b] - points[a]
    r = points[None] - points[a][:, None]
    left = d[:, :1] * r[:, :, 1] - d[:, 1:] * r[:, :, 0] > 0
    rows = np.repeat(np.concatenate([left, ~left]), 4, axis=0)
    at = np.arange(len(rows))
    rows[at, np.tile(np.repeat(a, 4), 2)] = np.tile(PATTERNS[:, 0], 2 * len(a))
    rows[at, np.tile(np.repeat(b, 4), 2)] = np.tile(PATTERNS[:, 1], 2 * len(a))
    kept = rows[np.unique(rows[:, t], axis=0, return_index=True)[1]].astype(np.float64)
    weights = np.exp(-BETA * (ones + kept @ gain))
    z = float(weights.sum())
    return len(kept), z, (weights / z) @ kept


def seconds_each(hypotheses: HypothesisClass, data: Occupancy, size: int, count: int) -> float:
    """CPU seconds a subset, tables included neither here nor in the direct way."""
    visitor = Visitor(
        hypotheses=hypotheses,
        sample=data,
        size=size,
        beta=BETA,
        functional=Labels(hypotheses=hypotheses, queries=data.points[:8]),
    )
    rows = subsets.sampled(np.random.default_rng(0), count, data.n, size)
    groups = np.zeros(count, dtype=np.int64)
    visitor.visit(rows[:2], groups[:2])
    start = time.process_time()
    visitor.visit(rows, groups)
    return (time.process_time() - start) / count


def speed(tiny: bool) -> None:
    n, size, count, few = (40, 6, 256, 8) if tiny else (200, 20, 2**16, 100)
    plane, data = build("halfspaces", dimension=2), sample(n, 2)
    start = time.process_time()
    visitor = Visitor(hypotheses=plane, sample=data, size=size, beta=BETA)
    visitor.visit(np.arange(size)[None], np.zeros(1, dtype=np.int64))
    tables = time.process_time() - start
    gain, ones = (data.counts[:, 0] - data.counts[:, 1]).astype(float), float(data.counts[:, 1].sum())
    rows = np.sort(subsets.sampled(np.random.default_rng(0), few, n, size), axis=1)
    times = []
    sums, held = np.zeros(n), []
    for t in rows:
        start = time.process_time()
        count_of_t, _, labelled = direct(data.points, gain, ones, t)
        sums += labelled
        times.append(time.process_time() - start)
        held.append(count_of_t)
    for t, expected in zip(rows, held, strict=True):
        # Both labelings of a T are the same; off T the direct rows may be others, so only T = S has equal sums.
        found = visitor.visit(t[None], np.zeros(1, dtype=np.int64))
        assert found.spread[0] == expected, "labelings differ"
    alone = Visitor(
        hypotheses=plane,
        sample=Occupancy(points=data.points[:size], counts=data.counts[:size]),
        size=size,
        beta=BETA,
    )
    whole = np.arange(size)
    _, z, labelled = direct(alone.sample.points, gain[:size], float(data.counts[:size, 1].sum()), whole)
    exact = alone.visit(whole[None], np.zeros(1, dtype=np.int64))
    assert alone.chart is not None
    least = -alone.chart[0].losses(alone.sample.counts).min() * BETA
    assert abs(-exact.spread[1] + least - np.log(z)) < 1e-9, "Z differs"
    hypotheses, logs = alone.weights(exact)
    p = np.exp(logs[0]) @ plane.predict(hypotheses, alone.sample.points)
    assert np.abs(p - labelled).max() < 1e-9, "sums differ"
    each = min(seconds_each(plane, data, size, count) for _ in range(3))
    slow = float(np.median(times))
    print(f"halfspaces in the plane, n={n}, n'={size}: tables {tables:.2f} s, once for a sample")
    print(f"  on the chart {1 / each:,.0f} subsets a second on one core (aim 100,000)")
    print(f"  numpy.unique over pairs of T {1 / slow:,.0f} subsets a second: {slow / each:,.0f} times slower (aim 500)")


def growth(tiny: bool, picture: Path | None) -> None:
    sizes = (3, 5) if tiny else (4, 6, 8, 12, 16, 20, 24)
    n, count = (30, 2) if tiny else (200, 24)
    found: dict[str, list[tuple[float, float]]] = {}
    for name, hypotheses, features in (
        ("halfspaces in space", build("halfspaces", dimension=3), 3),
        ("boxes in the plane", build("boxes", dimension=2), 2),
        ("boxes in space", build("boxes", dimension=3), 3),
    ):
        data = sample(n, features)
        for size in sizes:
            each = seconds_each(hypotheses, data, size, count)
            rows = subsets.sampled(np.random.default_rng(1), 8, n, size)
            held = float(np.mean([len(hypotheses.representatives(data.points[np.sort(r)])) for r in rows]))
            found.setdefault(name, []).append((each, held))
            print(f"{name}, n={n}, n'={size}: {1e3 * each:.2f} ms a subset, {held:,.0f} hypotheses of H_T")
    if picture is not None:
        _draw(sizes, found, picture)


def _draw(sizes: tuple[int, ...], found: dict[str, list[tuple[float, float]]], path: Path) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "predcube"
    figure = Figure(figsize=(6.8, 2.9), dpi=100, layout="constrained")
    time_axes, count_axes = figure.subplots(1, 2)
    for marker, (name, values) in zip("osd", found.items(), strict=True):
        time_axes.plot(sizes, [1e3 * each for each, _ in values], marker=marker, label=name, markersize=4)
        count_axes.plot(sizes, [held for _, held in values], marker=marker, label=name, markersize=4)
    time_axes.set_ylabel("milliseconds a subset")
    count_axes.set_ylabel("hypotheses of H_T, mean")
    for axes in (time_axes, count_axes):
        axes.set_xlabel("n'")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.tick_params(labelsize=8)
    time_axes.legend(fontsize=7)
    figure.savefig(path, metadata={"Software": None})


def memory(tiny: bool) -> None:
    cases = (
        ("halfspaces in the plane", build("halfspaces", dimension=2), 2, (64, 256) if tiny else (2**12, 2**14, 2**16)),
        ("boxes in the plane", build("boxes", dimension=2), 2, (64, 128) if tiny else (64, 256, 1024)),
    )
    for name, hypotheses, features, counts in cases:
        data = sample(20 if tiny else 100, features)
        labels = Labels(hypotheses=hypotheses, queries=data.points)
        peaks = []
        for count in counts:
            work = subset_mixture(
                hypotheses, data, subset_size=4 if tiny else 10, beta=BETA, method="mc", samples=count
            )
            assert isinstance(work, MonteCarlo)
            tracemalloc.start()
            evaluate(aimed(work, labels)).predict(hypotheses, data.points)
            peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
            tracemalloc.stop()
        shown = ", ".join(f"{c:,} subsets {p:.0f} MiB" for c, p in zip(counts, peaks, strict=True))
        print(
            f"{name}: {shown} ({peaks[-1] / peaks[0]:.2f} times the memory for {counts[-1] // counts[0]} times as many)"
        )
    print(f"peak of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    speed(arguments.tiny)
    growth(arguments.tiny, arguments.picture)
    memory(arguments.tiny)
