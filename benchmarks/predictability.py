"""A whole predictability sweep from a file into a store, beside a NumPy program that does the same sums by hand.

10⁶ rows × 50 released means (Parquet) × 1,000 queries in SQL × 50 fractions of a random shard × 20 levels of noise: 10⁶
values of each quantity. In one run it prints

* CPU seconds of ``run`` (rows counted, release fitted, law summed up, cells, store, surfaces), and of the NumPy
  program: one uncentred pass over the batches, comparisons for queries, one solve a fraction and level, nothing stored;
* how far the two agree;
* what one query costs of one answer on a tenth of the rows, reading included, against statsmodels' GMM of its moments;
* peak memory of one answer over ten times the rows against the rows.

``moments.py`` and ``rows.py`` take apart what is one here. On one thread.
"""

import argparse
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from threadpoolctl import threadpool_limits

from predcube.pipeline import predictability, run
from predcube.pipeline.progress import Silent
from predcube.storage import open_cube

type Array = NDArray[np.float64]

ROWS = runpy.run_path(str(Path(__file__).with_name("rows.py")))
MOMENTS = runpy.run_path(str(Path(__file__).with_name("moments.py")))
COLUMNS: int = ROWS["COLUMNS"]
NAMES = [f"c{i}" for i in range(COLUMNS)]


def thresholds(count: int) -> tuple[NDArray[np.int64], Array]:
    """Of each query, its column and the value that it is compared with."""
    return np.arange(count) % COLUMNS, np.round(0.5 * np.sin(np.arange(count)), 4)


def conditions(count: int) -> dict[str, str]:
    return {f"q{i}": f"c{j} > {t}" for i, (j, t) in enumerate(zip(*thresholds(count), strict=True))}


def spec(path: Path, count: int, fractions: list[float], levels: list[float]) -> dict[str, Any]:
    return {
        "kind": "predictability",
        "table": {"path": str(path)},
        "query": conditions(count),
        "release": {"kind": "mean", "columns": NAMES},
        "process": {"kind": "random_shard"},
        "noise": {"kind": "isotropic"},
        "measure": {"quantities": ["r", "sharp", "correlated", "cauchy_schwarz", "paper"]},
        "sweep": {"process.fraction": fractions, "noise.sd": levels},
    }


def by_hand(path: Path, count: int, fractions: list[float], levels: list[float]) -> Array:
    """(fractions, levels, queries) sharp values, as one would write them down."""
    columns, limits = thresholds(count)
    n, sq, sx = 0, np.zeros(count), np.zeros(COLUMNS)
    xx, xq = np.zeros((COLUMNS, COLUMNS)), np.zeros((COLUMNS, count))
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(2**14):
            x = np.stack([column.to_numpy() for column in batch.columns], axis=1)
            q = (x[:, columns] > limits).astype(np.float64)
            n, sq, sx = n + len(x), sq + q.sum(axis=0), sx + x.sum(axis=0)
            xx += x.T @ x
            xq += x.T @ q
    cross = (xq - np.outer(sx, sq) / n) / (n - 1)
    variance = (xx - np.outer(sx, sx) / n) / (n - 1)
    found = np.empty((len(fractions), len(levels), count))
    for i, fraction in enumerate(fractions):
        held = round(fraction * n)
        left = 1 - held / n
        for j, sd in enumerate(levels):
            noisy = variance + held / left * sd**2 * np.eye(COLUMNS)
            found[i, j] = np.einsum("ij,ij->j", cross, np.linalg.solve(noisy, cross)) / (left * held)
    return found


def timed[T](work: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of this process, all its threads together."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def sweep(folder: Path, rows: int, count: int, fractions: int, levels: int) -> None:
    path, store = folder / "sweep.parquet", str(folder / "sweep.zarr")
    ROWS["write"](path, rows)
    held = [round(float(f), 4) for f in np.linspace(0.02, 0.98, fractions)]
    noise = [float(f"{s:.4g}") for s in np.geomspace(1e-5, 1e-1, levels)]
    asked = spec(path, count, held, noise)
    theirs, expected = timed(lambda: by_hand(path, count, held, noise))
    ours, _ = timed(lambda: run(asked, store, cluster="serial", progress=Silent()))
    found = open_cube(store)["surfaces"]["sharp"].transpose("fraction", "sd", "query").values
    gap = float(np.max(np.abs(found / expected - 1)))
    values = 5 * found.size
    print(f"{rows:,} rows × {COLUMNS} means × {count:,} queries × {fractions} fractions × {levels} noise levels:")
    print(
        f"  {values:,} values in the store in {ours:.1f} s, {1e6 * ours / values:.2f} µs a value; by hand in NumPy "
        f"{theirs:.1f} s, one quantity, none stored; ratio {ours / theirs:.2f}; they differ by {gap:.1e}"
    )


def one_query(folder: Path, rows: int, count: int) -> None:
    path = folder / "one.parquet"
    ROWS["write"](path, rows)
    release, process = {"kind": "mean", "columns": NAMES}, {"kind": "iid", "size": rows}
    ours, values = timed(lambda: predictability(path, conditions(count), release, process))
    x = np.stack([column.to_numpy() for column in parquet.read_table(path).columns], axis=1)
    columns, limits = thresholds(1)
    q, g = (x[:, columns[0]] > limits[0]).astype(np.float64), x - x.mean(axis=0)
    theirs, left = MOMENTS["gmm"](q, g / g.std(axis=0))
    gap = abs(left / float(values.s1[0] - values.gain[0]) - 1)
    print(
        f"one query of {count:,} on {rows:,} rows, reading included: {1e3 * ours / count:.2f} ms; statsmodels GMM "
        f"{1e3 * theirs:.0f} ms in memory, {theirs * count / ours:.0f} times as long; they differ by "
        f"{gap:.1e}"
    )


def memory(folder: Path, rows: int) -> None:
    peaks = []
    for size in (rows, 10 * rows):
        path = folder / f"memory{size}.parquet"
        ROWS["write"](path, size)
        program = [sys.executable, __file__, "--peak", str(path)]
        peaks.append(int(subprocess.run(program, check=True, capture_output=True, text=True).stdout))
        print(f"one answer over {size:,} × {COLUMNS}: at most {peaks[-1] / 1e3:.0f} MB")
        path.unlink()
    print(f"  ten times the rows take {peaks[1] / peaks[0]:.2f} times the memory (aim 1.2)")


def peak(path: Path) -> int:
    """Peak resident memory of this process after an answer with ten queries in SQL, in kB."""
    predictability(path, conditions(10), {"kind": "mean", "columns": NAMES}, {"kind": "random_shard", "fraction": 0.3})
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def main(tiny: bool = False) -> None:
    pa.set_cpu_count(1)
    with threadpool_limits(1), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if tiny:
            sweep(folder, 3000, 12, 3, 2)
            one_query(folder, 2000, 12)
            memory(folder, 1000)
        else:
            sweep(folder, 10**6, 1000, 50, 20)
            one_query(folder, 10**5, 1000)
            memory(folder, 10**6)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--peak", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak(options.peak))
    else:
        main(options.tiny)
