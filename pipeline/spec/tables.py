"""Real data for a sweep: in goes the section of a table, out come its rows, or what is wrong with them.

Always true of the rows: every feature is a finite number, every label 0 or 1; rows with a missing feature or label are
left out and counted. The digest is one of the rows themselves, so it does not depend on the file's format.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from predcube.pipeline.spec.mistakes import Mistakes, show
from predcube.pipeline.spec.sweep import Section, Sweep
from predcube.storage.expressions import evaluate
from predcube.storage.failures import StoreError
from predcube.storage.tables import numbers, read_matrix, read_table
from predcube.tasks.distributions import Table

SHOWN = 6  # values of a label column that a message lists


class BadTable(ValueError):
    """What is wrong with a table; ``key`` is the key of the section that says so."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """The rows of a table that can be used. ``x`` is (N,) for one feature, otherwise (N, features); ``dropped`` counts
    rows that were left out; ``numbers`` (N,) are places in the file, from 1, a header not counted."""

    x: NDArray[np.float64]
    y: NDArray[np.uint8]
    digest: str
    dropped: int
    numbers: NDArray[np.int64]

    def distribution(self) -> Table:
        return Table(x=self.x, y=self.y, digest=self.digest)


def read_rows(section: Section, directory: str) -> TableRows:
    """The rows of a table section. ``BadTable`` says what is wrong; where the section has a digest, also that the rows
    are no longer those it was taken of."""
    path = Path(directory, section["path"])
    try:
        table = read_table(str(path))
    except StoreError as e:
        raise BadTable("path", str(e)) from None
    for i, name in enumerate(section["features"]):
        if name in section["features"][:i]:
            raise BadTable(f"features[{i}]", f'"{name}" stands twice; name each column once')
    features = [_feature(table, name, i) for i, name in enumerate(section["features"])]
    labels = _labels(table, section["label"])
    kept = np.isfinite(labels) & np.all([np.isfinite(f) for f in features], axis=0)
    if kept.sum() < 2:
        raise BadTable("path", f"{section['path']}: {kept.sum()} of {len(kept)} rows have every value; give at least 2")
    if len(only := np.unique(labels[kept])) == 1:
        raise BadTable(
            "label",
            f'"{section["label"]}" is {only[0]:.0f} in every row; check its value or its column',
        )
    x = np.stack([f[kept] for f in features], axis=-1)
    y = labels[kept].astype(np.uint8)
    digest = hashlib.sha256(np.ascontiguousarray(x, dtype="<f8").tobytes() + y.tobytes() + repr(x.shape).encode())
    if section.get("digest", digest.hexdigest()) != digest.hexdigest():
        raise BadTable("path", f"{section['path']}: the table has changed since the sweep was made; restore it")
    return TableRows(
        x=x[:, 0] if len(features) == 1 else x,
        y=y,
        digest=digest.hexdigest(),
        dropped=int(len(kept) - kept.sum()),
        numbers=np.flatnonzero(kept) + 1,
    )


def read_class(path: str, directory: str) -> tuple[list[list[int]], int]:
    """The functions of a finite class given as a file, each once and in the order in which they come first, and how
    many rows were others' repeats; ``BadTable`` says what is wrong."""
    try:
        matrix = read_matrix(str(Path(directory, path)))
    except StoreError as e:
        raise BadTable("path", str(e)) from None
    first = np.sort(np.unique(matrix, axis=0, return_index=True)[1])
    return matrix[first].astype(int).tolist(), len(matrix) - len(first)


def with_digests(sweep: Sweep, mistakes: Mistakes, notes: list[str]) -> Sweep:
    """The sweep with the digest of its rows in every table section; what is wrong with a table is a mistake."""

    def digested(section: Section, place: str) -> Section:
        if section["kind"] != "table":
            return section
        digest = _digest(section, sweep.directory, place, mistakes, notes)
        return section if digest is None else {**section, "digest": digest}

    axes = tuple(
        replace(a, sections=tuple(digested(s, f"sweep.{a.path}[{i}]") for i, s in enumerate(a.sections)))
        if a.section == "distribution" and a.sections is not None
        else a
        for a in sweep.axes
    )
    base = sweep.sections.get("distribution")
    if base is None:
        return replace(sweep, axes=axes)
    return replace(sweep, axes=axes, sections={**sweep.sections, "distribution": digested(base, "table")})


def _digest(section: Section, directory: str, place: str, mistakes: Mistakes, notes: list[str]) -> str | None:
    try:
        rows = read_rows(section, directory)
    except BadTable as e:
        mistakes.add(f"{place}.{e.key}", str(e))
        return None
    if rows.dropped:
        notes.append(
            f"{place}: {rows.dropped} of {rows.dropped + len(rows.y)} rows of {section['path']} lack a value of "
            f"{', '.join(section['features'])} or {section['label']} and were dropped"
        )
    return rows.digest


def _feature(table: pa.Table, name: str, place: int) -> NDArray[np.float64]:
    key = f"features[{place}]"
    try:
        values = numbers(table, name, key)
    except StoreError as e:
        raise BadTable(key, str(e).removeprefix(f"{key}: ")) from None
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        others = f" (and in {len(infinite) - 1} more)" if len(infinite) > 1 else ""
        raise BadTable(
            key,
            f'"{name}" is {values[infinite[0]]} in row {infinite[0] + 1}{others}; leave such rows out of the table, or '
            "clear the values",
        )
    return values


def _labels(table: pa.Table, label: str) -> NDArray[np.float64]:
    """Labels as 0.0, 1.0, or NaN where missing."""
    if label in table.column_names:
        column = table.column(label)
    else:
        try:
            column = evaluate(label, table)
        except StoreError as e:
            raise BadTable("label", str(e)) from None
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    found = pc.unique(column.drop_null()).to_pylist()
    if not all(isinstance(v, int | float) and v in (0, 1) for v in found):
        listed = ", ".join(show(v) for v in found[:SHOWN]) + (", …" if len(found) > SHOWN else "")
        example = f"{label} = {found[0]!r}"
        raise BadTable(
            "label",
            f'"{label}" is not binary: it has {len(found)} values ({listed}); give a column of 0 and 1, or a condition '
            f'such as "{example}"',
        )
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
