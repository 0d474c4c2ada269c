"""Rows of a table file to moments: seconds and memory beside what reading and multiplying alone take.

Three ratios, each against a baseline of the same run, round by round in turn:

* the moment pass over 10⁶ × 50 Parquet (zstd) against pyarrow's reading of it plus the bare product xᵀx in memory;
* 1,000 queries, as SQL expressions and as a matrix in memory, against the bare products of the queries with 50 moment
  rows, and of the moment rows with each other;
* the peak memory of a process that makes the pass over 10⁷ rows against one over 10⁶.

Seconds are of CPU, on one thread (Arrow's and BLAS's pools have one each): whatever else the machine does, it blurs
ratios of wall time more. A worker of a cluster has one thread, too.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from threadpoolctl import threadpool_limits

from predcube.storage.matrices import blocks, columns_read
from predcube.storage.rows import Rows, batches, open_rows
from predcube.tasks.moments import Moments

type Array = NDArray[np.float64]

COLUMNS = 50
GROUP = 2**20  # rows of a row group, as pyarrow writes them unless told otherwise


def write(path: Path, rows: int) -> None:
    """Random columns, the same numbers in every row group."""
    rng = np.random.default_rng(1)
    table = pa.table({f"c{i}": rng.standard_normal(min(rows, GROUP)) for i in range(COLUMNS)})
    with parquet.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for start in range(0, rows, GROUP):
            writer.write_table(table.slice(0, min(GROUP, rows - start)))


def moments(rows: Rows, queries: Sequence[str], inputs: Sequence[str]) -> Moments:
    """One pass over a table."""
    needed = columns_read(rows.schema, [*queries, *inputs])
    read = (batch for part in rows.parts for batch in batches(rows, part, needed))
    return added(frame for batch in read for frame in blocks(batch, (queries, inputs)))


def added(frames: Iterator[tuple[Array, ...]]) -> Moments:
    total = None
    for queries, inputs in frames:
        state = Moments.of(queries, inputs)
        total = state if total is None else total.add(state)
    assert total is not None
    return total


def one_pass(path: Path) -> Moments:
    names = [f"c{i}" for i in range(COLUMNS)]
    return moments(open_rows(str(path)), names[:1], names[1:])


def bare_read(path: Path) -> None:
    """pyarrow's own reading, as fast as it goes: by default it would buffer whole row groups first."""
    with parquet.ParquetFile(path, buffer_size=2**16, pre_buffer=False) as file:
        for _ in file.iter_batches(2**16):
            pass


def in_turn(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each, in every round after a first one that is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            start = time.process_time()
            work()
            if turn:
                taken[name].append(time.process_time() - start)
    return taken


def ratio(taken: Mapping[str, list[float]], work: str, *baseline: str) -> float:
    """The median, over rounds, of the work's seconds to the sum of the baseline's in the same round."""
    return statistics.median(a / sum(b) for a, *b in zip(*(taken[k] for k in (work, *baseline)), strict=True))


def seconds(taken: Mapping[str, list[float]]) -> str:
    return ", ".join(f"{name} {statistics.median(values):.3f} s" for name, values in taken.items())


def reading(folder: Path, rows: int, rounds: int) -> None:
    path = folder / "read.parquet"
    write(path, rows)
    x = np.random.default_rng(1).standard_normal((rows, COLUMNS))
    taken = in_turn(
        {"read": lambda: bare_read(path), "product": lambda: x.T @ x, "pass": lambda: one_pass(path)}, rounds
    )
    print(f"{rows:,} × {COLUMNS} Parquet, {path.stat().st_size / 1e6:.0f} MB: {seconds(taken)}")
    print(f"  the pass takes {ratio(taken, 'pass', 'read', 'product'):.2f} of bare read + product (aim 1.3)")


def expressions(count: int) -> list[str]:
    """Conditions, products and cases on random columns."""
    rng = np.random.default_rng(2)
    made = []
    for i in range(count):
        (a, b, c), limit = rng.integers(0, COLUMNS, 3), float(rng.normal())
        forms = (
            f"c{a} > {limit:.4f}",
            f"c{a} * c{b}",
            f"c{a} > {limit:.4f} AND c{b} < c{c}",
            f"CASE WHEN c{a} > {limit:.4f} THEN c{b} ELSE c{c} END",
        )
        made.append(forms[i % len(forms)])
    return made


def queries(folder: Path, rows: int, count: int, rounds: int) -> None:
    path = folder / "queries.parquet"
    write(path, rows)
    table = open_rows(str(path))
    names = list(table.schema.names)
    held = [batch for part in table.parts for batch in batches(table, part, names)]
    asked = expressions(count)
    q, g = (np.concatenate(part) for part in zip(*(f for b in held for f in blocks(b, (asked, names))), strict=True))
    sql, matrix = (
        lambda: added(frame for batch in held for frame in blocks(batch, (asked, names))),
        lambda: added(iter([(q, g)])),
    )
    np.testing.assert_allclose(sql().cross, matrix().cross, atol=1e-6 * rows)
    taken = in_turn({"product": lambda: (q.T @ g, g.T @ g), "matrix": matrix, "SQL": sql}, rounds)
    print(f"{count:,} queries on {rows:,} × {COLUMNS} in memory: {seconds(taken)}")
    print(f"  as a matrix {ratio(taken, 'matrix', 'product'):.2f} of the bare product (aim 2.5)")
    print(f"  as SQL {ratio(taken, 'SQL', 'product'):.2f} of the bare product (aim 10)")


def memory(folder: Path, rows: int) -> None:
    peaks = []
    for size in (rows, 10 * rows):
        path = folder / f"memory{size}.parquet"
        write(path, size)
        program = [sys.executable, __file__, "--peak", str(path)]
        peaks.append(int(subprocess.run(program, check=True, capture_output=True, text=True).stdout))
        print(f"a pass over {size:,} × {COLUMNS}, {path.stat().st_size / 1e6:.0f} MB: at most {peaks[-1] / 1e3:.0f} MB")
        path.unlink()
    print(f"  ten times the rows take {peaks[1] / peaks[0]:.2f} times the memory (aim 1.2)")


def peak(path: Path) -> int:
    """Peak resident memory of this process after a pass, in kB."""
    one_pass(path)
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def main(tiny: bool) -> None:
    pa.set_cpu_count(1)
    with threadpool_limits(1), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reading(folder, 20_000 if tiny else 10**6, 1 if tiny else 7)
        queries(folder, 5_000 if tiny else 2**17, 50 if tiny else 1000, 1 if tiny else 5)
        memory(folder, 5_000 if tiny else 10**6)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--peak", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak(options.peak))
    else:
        main(options.tiny)
