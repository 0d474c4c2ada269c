"""The Laplace integral for thresholds on n distinct points: seconds, error, growth, and what it stands beside.

Baselines, in the same run: the positive recursion written in NumPy (one array operation an example and node), which is
also the measure of what numba is worth; and enumeration, in subsets a second. Errors are against the recursion in the
product, relative to every weight. Prints one line a number.
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from predcube.tasks import audit, predict
from predcube.tasks.audits import batch_predictions
from predcube.tasks.hypotheses.thresholds import Thresholds
from predcube.tasks.learners.stable import Stable
from predcube.tasks.mixture import Occupancy, evaluate, laplace, occupancy, subset_mixture, subsets
from predcube.tasks.moves import moves


def sample(n: int) -> Occupancy:
    rng = np.random.default_rng(n)
    x = rng.random(n)
    return occupancy(x, ((x >= 0.5) ^ (rng.random(n) < 0.1)).astype(int))


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Least CPU seconds of several calls: other programs on the machine do not count."""
    call()
    found = math.inf
    for _ in range(repeats):
        start = time.process_time()
        call()
        found = min(found, time.process_time() - start)
    return found


def by_numpy(losses: NDArray[np.float64], size: int, beta: float) -> NDArray[np.float64]:
    """The recursion of ``predcube.tasks.mixture.recursion`` over all nodes at once, for distinct points; the nodes end
    where E[e^{−tZ}] < 1e-16, so absolute accuracy only."""
    log_scale = beta * (losses[0] - losses[1:])
    n = len(log_scale)
    tau, log_step = laplace.nodes(
        float(np.logaddexp(0.0, log_scale.min())),
        float(np.logaddexp.reduce(np.append(0.0, np.sort(log_scale)[-size:]))),
    )
    blocks = []
    j = np.arange(size + 2)
    for start in range(0, len(tau), 16):
        t, step = tau[start : start + 16], log_step[start : start + 16]
        x = np.exp(-np.exp(t[:, None] + log_scale))  # (nodes, n)
        forward = np.zeros((n + 1, len(t), size + 1))
        forward[0, :, 0] = 1.0
        for v in range(n):
            take = j[: size + 1] / (v + 1)
            np.multiply(forward[v], np.maximum(1.0 - take, 0.0), out=forward[v + 1])
            forward[v + 1, :, 1:] += take[1:] * x[:, v : v + 1] * forward[v, :, :-1]
        back = np.zeros((len(t), size + 2))
        back[:, size] = 1.0
        hit = np.empty((len(t), n))
        for v in range(n - 1, -1, -1):
            take = j / (v + 1)
            up = take[1:] * back[:, 1:]
            hit[:, v] = x[:, v] * np.einsum("ij,ij->i", up, forward[v])
            back[:, : size + 1] = np.maximum(1.0 - take[:-1], 0.0) * back[:, : size + 1] + x[:, v : v + 1] * up
        null = forward[n, :, size]
        with np.errstate(divide="ignore"):
            blocks.append(np.log(np.concatenate([null[:, None], hit], axis=1)) + (step - np.exp(t))[:, None])
        if null[-1] * math.exp(-math.exp(t[-1])) < 1e-16:
            break
    logs = np.logaddexp.reduce(np.concatenate(blocks), axis=0)
    return np.asarray(logs + np.append(0.0, log_scale))


def contour_by_numpy(losses: NDArray[np.float64], size: int, beta: float) -> NDArray[np.float64]:
    """The contour of ``predcube.tasks.mixture.contour`` in NumPy, for distinct points merged by loss: a node is a few
    array operations over (angles, distinct losses). The nodes end where E[e^{−tZ}] < 1e-16, as above."""
    log_scale, place, repeats = np.unique(beta * (losses[0] - losses[1:]), return_inverse=True, return_counts=True)
    n = int(repeats.sum())
    tau, log_step = laplace.nodes(
        float(np.logaddexp(0.0, log_scale[0])),
        float(np.logaddexp.reduce(np.append(0.0, np.repeat(log_scale, repeats)[-size:]))),
    )
    y, logs = math.log(size / (n - size)), []
    for t, step in zip(tau, log_step, strict=True):
        a = np.exp(np.minimum(t + log_scale, 600.0))
        for _ in range(50):
            p = 1.0 / (1.0 + np.exp(np.minimum(a - y, 700.0)))
            off, variance = repeats @ p - size, repeats @ (p * (1.0 - p))
            if abs(off) < 0.02 * math.sqrt(variance):
                break
            y -= off / variance
        sigma = math.sqrt(variance)
        around = int(8.6 * sigma + 18.0) | 1
        half = around // 2 if sigma < 4.4 else min(around // 2, int(around * math.asin(4.4 / sigma) / math.pi) + 1)
        m = np.arange(half + 1)
        turn = np.exp(2j * np.pi * m / around)
        share = np.where(m > 0, 2.0, 1.0) / around
        r = 1.0 + p * (turn[:, None] - 1.0)
        q = share * np.exp(-2j * np.pi * ((m * size) % around) / around) * np.prod(r**repeats, axis=1)
        hit = p * ((q * turn)[:, None] / r).real.sum(axis=0)
        peak = repeats @ np.logaddexp(0.0, y - a) - size * y - laplace.log_binomial(n, size) - math.exp(t)
        with np.errstate(divide="ignore"):
            logs.append(step + peak + np.log(np.maximum(np.append(q.real.sum(), hit), 0.0)))
        if peak < -37.0:
            break
    found = np.logaddexp.reduce(np.array(logs), axis=0)
    return np.append(found[0], (found[1:] + log_scale)[place])


def enumeration_by_numpy(scale: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Σ 1/Z for the null hypothesis and each point, from the subsets as rows of distinct points."""
    share = 1.0 / (1.0 + scale[rows].sum(axis=1))
    hits = np.bincount(rows.reshape(-1), weights=np.repeat(share, rows.shape[1]), minlength=len(scale))
    return np.append(share.sum(), hits)


def main(tiny: bool) -> None:
    n, size, repeats = (60, 12, 1) if tiny else (1000, 100, 5)
    line = Thresholds()
    data = sample(n)
    losses = line.loss(line.representatives(data.points), data.points, data.counts)
    held = data.counts.sum(axis=1)[::-1]
    for beta in (0.05, 0.5):
        exact = laplace.log_weights(losses, held, subset_size=size, beta=beta, kernel="recursion")
        plain = seconds(lambda beta=beta: by_numpy(losses, size, beta), 1)  # type: ignore[misc]
        gap = np.abs(np.exp(by_numpy(losses, size, beta)) - np.exp(exact)).max()
        print(f"n={n} n'={size} beta={beta}: recursion in NumPy, absolute {1e3 * plain:.1f} ms, error {gap:.1e}")
        slow = seconds(
            lambda beta=beta: laplace.log_weights(  # type: ignore[misc]
                losses, held, subset_size=size, beta=beta, kernel="recursion"
            ),
            1,
        )
        print(f"n={n} n'={size} beta={beta}: recursion in numba, relative {1e3 * slow:.1f} ms")
        vectorised = seconds(lambda beta=beta: contour_by_numpy(losses, size, beta), 1)  # type: ignore[misc]
        gap = np.abs(np.exp(contour_by_numpy(losses, size, beta)) - np.exp(exact)).max()
        print(f"n={n} n'={size} beta={beta}: contour in NumPy, absolute {1e3 * vectorised:.1f} ms, error {gap:.1e}")
        for relative in (True, False):
            workload = subset_mixture(line, data, subset_size=size, beta=beta, method="laplace", relative=relative)
            found = laplace.log_weights(losses, held, subset_size=size, beta=beta, relative=relative, kernel="contour")
            error = np.abs(found - exact).max() if relative else np.abs(np.exp(found) - np.exp(exact)).max()
            took = seconds(lambda workload=workload: evaluate(workload), repeats)  # type: ignore[misc]
            kind = "relative" if relative else "absolute"
            print(
                f"n={n} n'={size} beta={beta}: laplace, {kind} {1e3 * took:.2f} ms, {kind} error {error:.1e}, "
                f"in NumPy the recursion takes {plain / took:.0f}x, the contour {vectorised / took:.1f}x"
            )
    sizes = (50, 100) if tiny else (500, 1000, 2000, 4000)
    for beta in (0.05, 0.5):
        costs = []
        for m in sizes:
            workload = subset_mixture(line, sample(m), subset_size=m // 10, beta=beta, method="laplace")
            costs.append(seconds(lambda workload=workload: evaluate(workload), repeats))  # type: ignore[misc]
        slope = np.polyfit(np.log(sizes), np.log(costs), 1)[0]
        shown = ", ".join(f"{m}: {1e3 * c:.2f} ms" for m, c in zip(sizes, costs, strict=True))
        print(f"growth at n'=n/10, beta={beta}, relative: {shown}; log-log slope {slope:.2f}")

    few, drawn = (15, 4) if tiny else (60, 6)
    workload = subset_mixture(line, sample(few), subset_size=drawn, beta=0.3, method="enumerate")
    total = math.comb(few, drawn)
    took = seconds(lambda: evaluate(workload), 1)
    rows = subsets.ranked(0, min(total, 2**18), few, drawn)
    scale = np.ones(few)
    plain = seconds(lambda: enumeration_by_numpy(scale, rows), 1) / len(rows)
    print(
        f"enumerate: {total} subsets of {drawn} from {few}: {1e9 * took / total:.1f} ns each, {total / took:.2e} a "
        f"second, {plain * total / took:.0f}x NumPy on subsets already listed"
    )
    same = seconds(
        lambda: evaluate(subset_mixture(line, sample(few), subset_size=drawn, beta=0.3, method="laplace")), repeats
    )
    print(f"laplace on that sample: {1e3 * same:.2f} ms, {took / same:.0f}x faster")

    audits(tiny)


def audits(tiny: bool) -> None:
    """An exhaustive audit against a loop over the public ``predict``, on every so many of its neighbours."""
    k, n, size = (6, 30, 4) if tiny else (16, 320, 16)
    finite, learner = Thresholds(points=k), Stable(beta=0.05, subset_size=size)
    rng = np.random.default_rng(0)
    x = rng.integers(0, k, n)
    y = ((x >= k // 2) ^ (rng.random(n) < 0.1)).astype(int)
    whole = audit(learner, finite, x, y, method="laplace")
    took = seconds(lambda: audit(learner, finite, x, y, method="laplace"), 1 if tiny else 5)
    near = moves(learner, finite, occupancy(x, y), None, limit=1, rng=lambda: rng)
    samples = np.concatenate([block.samples()[1:] for block in near.blocks])
    batch = batch_predictions(learner, finite, np.arange(k), samples, np.arange(k), method="laplace")
    some = np.arange(0, len(samples), max(1, len(samples) // 20))
    types = [np.repeat(np.arange(2 * k), samples[i].ravel()) for i in some]
    singly = [predict(learner, finite, t // 2, t % 2, np.arange(k)) for t in types]
    alone = seconds(lambda: [predict(learner, finite, t // 2, t % 2, np.arange(k)) for t in types], 1) / len(some)
    logs = np.stack([np.stack([p.log_p0, p.log_p1], axis=-1) for p in singly])
    with np.errstate(invalid="ignore"):
        gap = np.where(logs == batch[some], 0.0, np.abs(logs / batch[some] - 1.0)).max()
    print(
        f"audit, k={k} n={n} n'={size} beta=0.05: {whole.neighbours} neighbours, {whole.neighbours / took:.0f} a "
        f"second, {alone * whole.neighbours / took:.0f}x a loop over predict, logs agree to {gap:.1e}, relative"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a size for tests")
    main(parser.parse_args().tiny)
