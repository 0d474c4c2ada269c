"""Partial results as bytes: in goes what a subtree gave, out come bytes that give it again, to the bit.

Arrays and text alone, never pickles: a store may come from elsewhere.
"""

import io
import json
import zipfile
from dataclasses import fields
from typing import Any

import numpy as np

from predcube.tasks.mixture.full import Logs
from predcube.tasks.mixture.listings import Averages, Listed
from predcube.tasks.mixture.visits import Numbered

KINDS: dict[str, type] = {kind.__name__: kind for kind in (Numbered, Listed, Averages, Logs)}


def packed(value: Any, about: dict[str, Any]) -> bytes | None:
    """A partial result with what is said ``about`` it; None for one that is not made of arrays."""
    if type(value) not in KINDS.values():
        return None
    arrays = {f.name: getattr(value, f.name) for f in fields(value)}
    text = json.dumps({"kind": type(value).__name__, **about}, allow_nan=False)
    held = io.BytesIO()
    np.savez(held, allow_pickle=False, **arrays, about=np.array(text))
    return held.getvalue()


def unpacked(content: bytes) -> tuple[Any, dict[str, Any]] | None:
    """The reverse; None where the bytes are not such a result."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as held:
            about = json.loads(str(held["about"]))
            kind = KINDS[about.pop("kind")]
            return kind(**{f.name: held[f.name] for f in fields(kind)}), about
    except (ValueError, KeyError, OSError, TypeError, zipfile.BadZipFile):
        return None
