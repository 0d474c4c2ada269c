"""The worst Lipschitz query of one column: in goes a table, a column and a release, out comes what its gain is at most.

Every L-Lipschitz f is ∫f′(t)·1{x > t}dt, so that the family is summed up by the queries 1{x > t} alone, read and worked
out together as those of any answer are.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.pipeline.answering import Refused, path_of, predictability
from predcube.storage import StoreError
from predcube.storage.matrices import columns_read, matrix
from predcube.storage.rows import batches, open_rows
from predcube.tasks.families import FamilyValue
from predcube.tasks.families_lipschitz import Thresholds, lipschitz_bound, thresholds

MOST = 1000
"""Values of a column that are all taken for thresholds."""


def lipschitz_family(
    table: Any,
    column: str,
    release: Any,
    process: Any,
    noise: Any = None,
    *,
    constant: float = 1.0,
    points: int = 200,
) -> FamilyValue:
    """What the attacker gains at most, in squared units, about the mean of any f(column) with |f′| ≤ ``constant``, f
    chosen after the draw: H·L²·K·∫√(F(1 − F))dt·∫√(gain_t)dt, H = 2.

    table, release, process, noise: as for ``predictability``; ``column``: a column, or of a file an SQL expression. A
    bound for a column of at most 1,000 values, whose integrals are sums; for more of them the integrals are taken over
    ``points`` equal steps, and the result is called an estimate. Memory does not grow with the rows of a file.

    Raises ValueError as ``predictability`` does, and for a column without two values. Source: Lu & Sridharan 2026,
    section 5, in place of Theorem 5.4, which is false unless f is affine.
    """
    if not (np.isfinite(constant) and constant > 0):
        raise Refused(f"constant = {constant}: give the Lipschitz constant, a finite number above 0")
    if points < 1:
        raise Refused(f"points = {points}: give at least 1")
    path = path_of(table)
    held = None if path is not None else np.asarray(table[column], dtype=np.float64)
    values, least, largest = _read(str(path), column) if held is None else _distinct(held)
    if not least < largest:
        raise Refused(f"column {column!r} has fewer than two values: every function of it is a constant")
    if values is None:
        steps = np.linspace(least, largest, points + 1)
        family = Thresholds(at=steps[:-1], widths=np.diff(steps), complete=False)
    else:
        family = thresholds(values)
    queries: Mapping[str, Any]
    if held is None:
        queries = {f"t{i}": f"({column}) > {float(t)!r}" for i, t in enumerate(family.at)}
    else:
        above = np.where(np.isnan(held)[:, None], np.nan, family.queries(held))
        queries = {f"t{i}": above[:, i] for i in range(len(family.at))}
    found = predictability(table, queries, release, process, noise)
    return lipschitz_bound(family, found.s1, found.gain, constant=constant, K=found.K)


def _distinct(values: NDArray[np.float64]) -> tuple[NDArray[np.float64] | None, float, float]:
    """The distinct values (None: more than ``MOST``), the least and the largest; of those that are not missing."""
    found = np.unique(values[~np.isnan(values)])
    if not len(found):
        return found, np.inf, -np.inf
    return (found if len(found) <= MOST else None), float(found[0]), float(found[-1])


def _read(path: str, column: str) -> tuple[NDArray[np.float64] | None, float, float]:
    """The same of a column of a file, batch by batch."""
    try:
        rows = open_rows(path)
        read = columns_read(rows.schema, (column,))
        seen: NDArray[np.float64] | None = np.empty(0)
        least, largest = np.inf, -np.inf
        for part in rows.parts:
            for batch in batches(rows, part, read):
                values, low, high = _distinct(matrix(batch, (column,))[:, 0])
                least, largest = min(least, low), max(largest, high)
                seen = None if seen is None or values is None else np.union1d(seen, values)
                seen = None if seen is None or len(seen) > MOST else seen
    except StoreError as e:
        raise Refused(str(e)) from e
    return seen, float(least), float(largest)
