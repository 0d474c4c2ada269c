"""The words of predictability sweeps that are not the science's own, and the sections that need more than a type.

In go tables of a spec, out come canonical sections: queries as two lists (their order counts), transitions written out,
stacks with every member checked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen

from predcube.pipeline.quantities import DEFAULT_PREDICTABILITY
from predcube.pipeline.spec.mistakes import Mistakes, noun, show
from predcube.storage.failures import StoreError
from predcube.storage.tables import numbers, read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The whole file of a predictability sweep."""

    trials: Annotated[int, Ge(1), Le(10**7)] = 1
    name: Annotated[str, MinLen(1)] = "sweep"
    kind: Literal["prediction", "predictability"] = "predictability"
    seed: Annotated[int, Ge(0), Lt(2**63)] = 0
    table: dict[str, Any] | None = None
    query: dict[str, Any] | None = None
    release: dict[str, Any] | None = None
    process: dict[str, Any] | None = None
    noise: dict[str, Any] | None = None
    measure: dict[str, Any] = field(default_factory=dict)
    sweep: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """[table]: a CSV, Parquet or Arrow file, or a folder of them."""

    path: Annotated[str, MinLen(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """[query] as it is kept: names and, beside each, a column or an SQL expression."""

    names: Annotated[list[str], MinLen(1)]
    expressions: Annotated[list[str], MinLen(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """[measure]: what is measured and how. ``loss``, ``tau``, ``convention``: see ``tasks.gains.Measure``. ``draws``:
    of a trial's simulation. ``family``: over which queries family_gain and family_bound go, those of [query] (finite)
    or their linear combinations in a ball or an L1 ball of this ``radius``."""

    quantities: Annotated[list[str], MinLen(1)] = field(default_factory=lambda: list(DEFAULT_PREDICTABILITY))
    loss: Literal["squared", "log"] = "squared"
    tau: Annotated[float, Gt(0), Le(0.5)] | None = None
    convention: Literal["corrected", "paper"] = "corrected"
    draws: Annotated[int, Ge(2), Le(10**7)] = 1000
    family: Literal["finite", "ball", "l1"] = "finite"
    radius: Annotated[float, Gt(0)] = 1.0


OPTIONS = ("loss", "tau", "convention", "draws", "family", "radius")
"""What of [measure] belongs to a cell, and so may be an axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """Predictability sweeps have no targets: --smallest answers what is reached where."""


def parse_queries(table: Mapping[str, Any], path: str, mistakes: Mistakes) -> dict[str, Any] | None:
    """[query] as two lists. A query is a column, an SQL expression or { categories = "column" }: one for each value."""
    names: list[str] = []
    expressions: list[Any] = []
    for name, value in table.items():
        if not name.strip() or "\0" in name:
            mistakes.add(f"{path}.{name}", "a query needs a name; it is a label of the cube")
        elif isinstance(value, Mapping):
            column = value.get("categories")
            if value.keys() != {"categories"} or not isinstance(column, str):
                mistakes.add(f"{path}.{name}", f'{show(dict(value))}: give a text, or {{ categories = "column" }}')
            names.append(name)
            expressions.append({"categories": column})
        elif not isinstance(value, str) or not value.strip():
            mistakes.add(
                f"{path}.{name}", f"{show(value)} is {noun(value)}; give a column or an SQL expression in quotes"
            )
        else:
            names.append(name)
            expressions.append(value.strip())
    if not table:
        mistakes.add(path, 'empty; give each query a name and a column or SQL expression, as in smoker = "qsmk = 0"')
    return {"names": names, "expressions": expressions} if names else None


def parse_transitions(value: Any, path: str, directory: str, mistakes: Mistakes) -> Any:
    """Transitions written out: a table { labels, matrix } as it stands, or what a file holds. None where wrong."""
    if isinstance(value, Mapping):
        return {str(k): v for k, v in value.items()}
    if not isinstance(value, str):
        mistakes.add(
            path, f"{show(value)} is {noun(value)}; give {{ labels = [...], matrix = [[...]] }} or the path of a file"
        )
        return None
    try:
        table = read_table(str(Path(directory, value)))
        first, *others = table.column_names
        labels = [str(v) for v in table.column(first).to_pylist()]
        columns = {name: numbers(table, name, path).tolist() for name in others}
    except StoreError as e:
        mistakes.add(path, str(e))
        return None
    if sorted(labels) != sorted(others):
        mistakes.add(
            path,
            f"{value}: its first column lists the states {show(labels)} and its other columns are {show(others)}; "
            "give one row and one column for each state",
        )
        return None
    return {"labels": labels, "matrix": [[columns[name][i] for name in labels] for i in range(len(labels))]}
