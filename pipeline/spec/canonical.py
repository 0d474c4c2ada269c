"""A sweep as one canonical JSON text: what a cube remembers of its spec, and what two specs are compared by.

Always true: two specs that ask for the same numbers in the same order have the same text and so the same hash, however
they were written (quoted or nested keys, ranges or lists, 4 or 4.0 for a float, defaults said or left out); and
``from_resolved`` gives back what ``resolved`` was made of.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from predcube.pipeline.spec.mistakes import show
from predcube.pipeline.spec.sweep import Sweep, SweepAxis, Targets

# What of a sweep changes no number: how it was written, where it lies, and what was said about it.
_ASIDE = ("notes", "text", "directory")


def resolved(sweep: Sweep) -> str:
    """The sweep as canonical JSON: the fields of ``Sweep``, defaults filled in, without text, folder and notes."""
    data = {k: v for k, v in asdict(sweep).items() if k not in _ASIDE}
    return json.dumps(data, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def from_resolved(text: str, *, directory: str = ".") -> Sweep:
    """The sweep that a cube's ``resolved`` attribute describes. Its values were checked when it was made."""
    data = json.loads(text)
    axes = tuple(
        SweepAxis(
            **{
                **axis,
                "values": tuple(axis["values"]),
                "sections": None if axis["sections"] is None else tuple(axis["sections"]),
                "applies": tuple(axis["applies"]),
            }
        )
        for axis in data["axes"]
    )
    changed = {"axes": axes, "quantities": tuple(data["quantities"]), "targets": Targets(**data["targets"])}
    return Sweep(**{**data, **changed, "notes": (), "text": "", "directory": directory})


def spec_hash(sweep: Sweep) -> str:
    """SHA-256 of the canonical text, in hex."""
    return hashlib.sha256(resolved(sweep).encode()).hexdigest()


def difference(theirs: str, ours: str) -> list[str]:
    """What differs between two resolved specs, in words: a line for each place, the store's value first."""
    return list(_differences(json.loads(theirs), json.loads(ours), ""))


def _differences(a: Any, b: Any, path: str) -> list[str]:
    if a == b and type(a) is type(b):
        return []
    if path == "axes":
        return _axes(a, b)
    if path.endswith(".digest"):
        return [f"{path.removesuffix('.digest')}: the table is no longer the one that the store was made of"]
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        lines = []
        for key in dict.fromkeys([*a, *b]):
            place = f"{path}.{key}" if path and path != "sections" else str(key)
            lines += _differences(a.get(key), b.get(key), place)
        return lines
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and all(isinstance(v, dict) for v in a + b):
        return [line for i, pair in enumerate(zip(a, b, strict=True)) for line in _differences(*pair, f"{path}[{i}]")]
    return [f"{path}: {show(_said(a))} in the store, {show(_said(b))} in the spec"]


def _axes(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]) -> list[str]:
    theirs, ours = {x["path"]: x for x in a}, {x["path"]: x for x in b}
    lines = [f"sweep.{p}: an axis in the store alone" for p in theirs if p not in ours]
    lines += [f"sweep.{p}: an axis in the spec alone" for p in ours if p not in theirs]
    for path in theirs:
        if path not in ours or theirs[path] == ours[path]:
            continue
        before, after = theirs[path]["values"], ours[path]["values"]
        gone, new = [v for v in before if v not in after], [v for v in after if v not in before]
        if gone or new:
            parts = [f"without {show(gone)}" if gone else "", f"with the new values {show(new)}" if new else ""]
            lines.append(f"sweep.{path}: the spec has the axis {' and '.join(p for p in parts if p)}")
        elif before != after:
            lines.append(f"sweep.{path}: the values stand in another order")
        else:
            for key in theirs[path]:
                lines += _differences(theirs[path][key], ours[path][key], f"sweep.{path}.{key}")
    if not lines:
        lines.append(
            f"sweep: the axes stand in another order, {show(list(theirs))} in the store, {show(list(ours))} in the spec"
        )
    return lines


def _said(value: Any) -> Any:
    return "nothing" if value is None else value
