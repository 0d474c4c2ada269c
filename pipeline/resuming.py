"""What a sweep and a store have to do with each other: in goes a sweep and a URL, out comes how to go on.

Always true: a store is resumed only by the sweep that it holds. The order in which an axis lists its values changes no
number, so it is the store's that counts; new values go at the end, and only where that was asked for.
"""

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube import storage
from predcube.pipeline.failures import BadInput, OtherSweep
from predcube.pipeline.spec.canonical import difference, from_resolved, resolved, spec_hash
from predcube.pipeline.spec.sweep import Sweep, SweepAxis
from predcube.storage import extension


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """``sweep`` with its axes in the store's order; ``schema`` of the store as it is to be (None: there is none yet);
    ``appended``: the values that each growing axis lacks. ``notes``: what the user should hear."""

    sweep: Sweep
    schema: storage.CubeSchema | None = None
    appended: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def reconcile(sweep: Sweep, url: str, *, extend: bool = False) -> Standing:
    """How ``sweep`` goes on in the store at ``url``. Repairs what a killed driver left there, writes nothing else.

    Raises ``OtherSweep`` with the difference, ``BadInput`` where an axis cannot grow by that many values, StoreError
    for what is no store.
    """
    if not storage.exists(url):
        return Standing(sweep=sweep)
    extension.recover(url)
    stored = from_resolved(storage.read_attributes(url)["resolved"], directory=sweep.directory)
    aligned, appended = align(sweep, stored)
    known = replace(
        aligned,
        axes=tuple(
            _first(axis, len(axis.values) - len(appended[axis.name])) if axis.name in appended else axis
            for axis in aligned.axes
        ),
    )
    if resolved(known) != resolved(stored) or (appended and not extend):
        lines = difference(resolved(stored), resolved(aligned))
        cure = "give this sweep another --store"
        if resolved(known) == resolved(stored):
            cure = "append the new values with --extend, or " + cure
        raise OtherSweep(f"store {url!r} holds another sweep; {cure}:\n  " + "\n  ".join(lines))
    schema = storage.read_schema(url)
    return Standing(
        sweep=aligned,
        schema=replace(schema, axes=tuple(_longer(url, axis, appended.get(axis.name)) for axis in schema.axes)),
        appended=appended,
        notes=tuple(_other_versions(schema.attributes.get("versions", "{}"))),
    )


def grow(url: str, standing: Standing) -> None:
    """Appends to the store what it lacks, and the spec with it."""
    extension.extend(
        url,
        standing.appended,
        {
            "spec": standing.sweep.text,
            "resolved": resolved(standing.sweep),
            "spec_hash": spec_hash(standing.sweep),
        },
    )


def align(sweep: Sweep, stored: Sweep) -> tuple[Sweep, dict[str, NDArray[Any]]]:
    """The sweep with every axis that holds all of the store's values in the store's order, new values last; and those
    new values as coordinates."""
    theirs = {axis.path: axis for axis in stored.axes}
    axes, appended = [], {}
    for axis in sweep.axes:
        before = theirs.get(axis.path)
        if before is not None and before.dtype == axis.dtype and set(before.values) <= set(axis.values):
            new = [v for v in axis.values if v not in set(before.values)]
            axis = _ordered(axis, [axis.values.index(v) for v in (*before.values, *new)])
            if new:
                appended[axis.name] = axis.coordinate()[len(before.values) :]
        axes.append(axis)
    return replace(sweep, axes=tuple(axes)), appended


def _other_versions(text: object) -> Iterator[str]:
    """Packages that have changed since the store was begun: equal bytes are promised under equal versions only."""
    for package, before in json.loads(str(text)).items():
        now = platform.python_version() if package == "python" else version(package)
        if before != now:
            yield f"the store was begun with {package} {before}, this is {now}; last digits may differ between tiles"


def _ordered(axis: SweepAxis, order: list[int]) -> SweepAxis:
    sections = None if axis.sections is None else tuple(axis.sections[i] for i in order)
    return replace(axis, values=tuple(axis.values[i] for i in order), sections=sections)


def _first(axis: SweepAxis, count: int) -> SweepAxis:
    return _ordered(axis, list(range(count)))


def _longer(url: str, axis: storage.Axis, new: NDArray[Any] | None) -> storage.Axis:
    if new is None:
        return axis
    if len(new) % axis.chunk:
        raise BadInput(
            f"store {url!r}: axis {axis.name!r} is cut in chunks of {axis.chunk}, and {len(new)} new values are no "
            f"multiple of that; append {axis.chunk - len(new) % axis.chunk} more, or give the sweep another --store"
        )
    return replace(axis, values=np.concatenate([axis.values, new]))
