"""One pass of moments and all the cells that follow from it, beside bare products and a method-of-moments library.

A table of 10⁶ rows × 50 released means, 1,000 queries, 50 fractions of a random shard and 20 levels of noise: 10⁶ cells
from one pass. In one run it prints

* the pass over the released columns against the bare NumPy product XᵀX on the same blocks, in memory;
* the same with the queries given as a matrix, against XᵀQ and XᵀX;
* the cells per second that follow, for isotropic and calibrated noise;
* what one query costs, its share of the pass and one cell, against statsmodels' GMM, as it iterates by default, of
  the same 51 moments on the same 10⁵ rows: the baseline that a user would otherwise run.

Queries are made block by block, outside of what is timed: 1,000 columns of 10⁶ rows are never held at once.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from predcube.tasks import noises, processes, releases
from predcube.tasks.frames import Frame, total_of
from predcube.tasks.gains import Gains, Measure

type Array = NDArray[np.float64]

BLOCK = 1 << 14
"""Rows of a block: with 1,000 queries, 138 MB."""


def table(rows: int, columns: int, seed: int = 1) -> Array:
    """Correlated columns with offsets."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    x += x[:, :1] * 0.5
    x += np.arange(columns) * 10.0
    return x


def queries_of(x: Array, count: int) -> Array:
    """Binary queries: a column above a threshold, q = 1{x_j > c}."""
    columns = np.arange(count) % x.shape[1]
    shift = 0.3 * np.sin(np.arange(count))
    return (x[:, columns] > columns * 10.0 + shift).astype(np.float64)


def blocks(x: Array, count: int) -> Iterator[tuple[Array, Array]]:
    for start in range(0, len(x), BLOCK):
        part = x[start : start + BLOCK]
        yield queries_of(part, count), part


class Clock:
    """CPU seconds of what is called through it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__[T](self, work: Callable[[], T]) -> T:
        start = time.process_time()
        result = work()
        self.seconds += time.process_time() - start
        return result


def passes(x: Array, count: int) -> tuple[float, float, Any, Any]:
    """CPU seconds of the bare products and of the pass, its state and the fitted release. Blocks take turns."""
    release = releases.build("mean", columns=[f"x{j}" for j in range(x.shape[1])])
    fitted = release.fit(total_of([Frame(queries=np.empty((len(x), 0)), inputs=x)]))
    request = processes.build("iid", size=1).request(fitted)
    bare, ours = Clock(), Clock()
    state: Any = None
    for q, part in blocks(x, count):
        bare(lambda q=q, part=part: (part.T @ q, part.T @ part))
        frame = Frame(queries=q, inputs=part)
        found = ours(lambda frame=frame: request(frame))
        state = found if state is None else ours(lambda state=state, found=found: state.add(found))
    return bare.seconds, ours.seconds, state, fitted


def cells(gains: Gains, fractions: int, levels: int) -> tuple[float, int, float]:
    """CPU seconds of all cells, how many they are, and a checksum."""
    clock, total, number = Clock(), 0.0, 0
    measure = Measure()
    spread = np.sqrt(np.diag(gains.law.variance).mean() / gains.law.rows)
    ladder = [noises.build("isotropic", sd=float(s * spread)) for s in np.geomspace(0.01, 100, levels // 2)]
    ladder += [noises.build("calibrated", level=float(s)) for s in np.geomspace(0.01, 100, levels - levels // 2)]
    for fraction in np.linspace(0.02, 0.98, fractions).round(4):
        process = processes.build("random_shard", fraction=float(fraction))
        for noise in ladder:
            values = clock(lambda process=process, noise=noise: gains.values(process, noise, measure))
            total += float(values.sharp.sum())
            number += values.sharp.size
    return clock.seconds, number, total


def gmm(q: Array, g: Array) -> tuple[float, float]:
    """CPU seconds of statsmodels' GMM of [q − p, g] with its defaults, and N·Var p̂.

    Its default optimiser fails on one parameter under this NumPy, so Nelder and Mead's is named.
    """
    from statsmodels.sandbox.regression.gmm import GMM

    class Attacker(GMM):  # type: ignore[misc]
        def momcond(self, params: Array) -> Array:
            return np.hstack([(q - params[0])[:, None], g])

    clock = Clock()
    model = Attacker(q, np.ones((len(q), 1)), None, k_moms=1 + g.shape[1], k_params=1)
    start = np.array([q.mean()])
    fit = clock(lambda: model.fit(start, optim_method="nm", optim_args={"disp": 0}))
    return clock.seconds, len(q) * float(fit.cov_params()[0, 0])


def main(tiny: bool = False) -> None:
    rows, columns, count, fractions, levels = (3000, 5, 20, 3, 4) if tiny else (10**6, 50, 1000, 50, 20)
    with threadpool_limits(1):
        x = table(rows, columns)
        passes(x[: 2 * BLOCK], 1)  # warm
        print(f"{rows} rows x {columns} released columns, CPU seconds, blocks of {BLOCK} rows in memory")
        for many in (0, count):
            bare, ours, state, fitted = min((passes(x, many) for _ in range(3 if many == 0 else 1)), key=lambda r: r[1])
            print(f"moments, {many} queries: {ours:.3f} s, bare product {bare:.3f} s, ratio {ours / bare:.2f}")
        law = processes.build("random_shard", fraction=0.5).law(state)
        clock = Clock()
        gains = clock(lambda: Gains(law=law, coordinates=fitted))
        seconds, number, _ = cells(gains, fractions, levels)
        print(
            f"{count} queries x {fractions} fractions x {levels} noise levels: {number} cells in {seconds:.3f} s after "
            f"a factorisation of {1e3 * clock.seconds:.2f} ms: {1e9 * seconds / number:.0f} ns a cell"
        )
        few = max(rows // 10, 1000)
        _, ours, state, fitted = min((passes(x[:few], count) for _ in range(3)), key=lambda r: r[1])
        iid = processes.build("iid", size=few)
        clock = Clock()
        values = clock(
            lambda: Gains(law=iid.law(state), coordinates=fitted).values(iid, noises.build("none"), Measure())
        )
        one = (ours + clock.seconds) / count
        q, g = queries_of(x[:few], 1)[:, 0], fitted.moments(x[:few])
        theirs, left = min(gmm(q, g / g.std(axis=0)) for _ in range(3))
        gap = abs(left / float(values.s1[0] - values.gain[0]) - 1)
        print(
            f"one query of {count}, {columns + 1} moments, {few} rows: {1e3 * one:.3f} ms; statsmodels GMM "
            f"{1e3 * theirs:.0f} ms, ratio {theirs / one:.0f}; they differ by {gap:.1e}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="a size that runs in a second")
    main(parser.parse_args().tiny)
