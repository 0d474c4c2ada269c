"""Results of the science as an array and a text: in goes a dataclass of ``tasks``, out come numbers and JSON, and back.

Never pickles: a store may come from elsewhere. Always true: what comes back equals what went in, to the bit; only
dataclasses that ``predcube.tasks`` declares are ever made.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROOT = "predcube.tasks."
_KINDS = {"f": np.float64, "i": np.int64, "b": np.bool_}
_EXACT = 2**53  # integers up to here are doubles


def encode(value: Any) -> tuple[NDArray[np.float64], str]:
    """The numbers (length,) and the text of a value: dataclasses of ``tasks``, arrays of float64, int64 and bool,
    tuples, lists, mappings from text, and plain values. TypeError for anything else."""
    arrays: list[NDArray[Any]] = []
    text = json.dumps(_plain(value, arrays), separators=(",", ":"), allow_nan=False)
    flat = [a.astype(np.float64).ravel() for a in arrays]
    return (np.concatenate(flat) if flat else np.zeros(0)), text


def decode(values: NDArray[np.float64], text: str) -> Any:
    """The reverse. ValueError where the text is not one that ``encode`` made."""
    try:
        return _value(json.loads(text), values)
    except (KeyError, TypeError, AttributeError, ImportError) as e:
        raise ValueError(f"not a stored result: {text[:80]!r} ({e})") from e


def _plain(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        name = f"{type(value).__module__}:{type(value).__qualname__}"
        if not name.startswith(_ROOT):
            raise TypeError(f"{name} is no result of the science")
        given = {f.name: _plain(getattr(value, f.name), arrays) for f in fields(value) if f.init}
        return {"made": name.removeprefix(_ROOT), "of": given}
    match value:
        case np.ndarray():
            if value.dtype.kind not in _KINDS:
                raise TypeError(f"an array of {value.dtype} cannot be stored")
            if value.dtype.kind == "i" and value.size and int(np.abs(value).max()) > _EXACT:
                raise TypeError("an array of integers beyond 2^53 cannot be stored")
            place = sum(a.size for a in arrays)
            arrays.append(value)
            return {"array": value.dtype.kind, "shape": list(value.shape), "at": place}
        case tuple():
            return {"tuple": [_plain(v, arrays) for v in value]}
        case list():
            return [_plain(v, arrays) for v in value]
        case Mapping():
            return {"map": {str(k): _plain(v, arrays) for k, v in value.items()}}
        case np.generic():
            return _plain(value.item(), arrays)
        case float() if not math.isfinite(value):
            return {"number": repr(value)}
        case None | bool() | int() | float() | str():
            return value
    raise TypeError(f"a {type(value).__name__} cannot be stored")


def _value(plain: Any, values: NDArray[np.float64]) -> Any:
    if isinstance(plain, list):
        return [_value(v, values) for v in plain]
    if not isinstance(plain, dict):
        return plain
    if "made" in plain:
        module, _, name = plain["made"].partition(":")
        cls = getattr(import_module(_ROOT + module), name)
        if not (isinstance(cls, type) and is_dataclass(cls) and cls.__module__ == _ROOT + module):
            raise TypeError(f"{plain['made']} is no result of the science")
        return cls(**{k: _value(v, values) for k, v in plain["of"].items()})
    if "array" in plain:
        shape = tuple(plain["shape"])
        flat = values[plain["at"] : plain["at"] + math.prod(shape)]
        return flat.reshape(shape).astype(_KINDS[plain["array"]])
    if "tuple" in plain:
        return tuple(_value(v, values) for v in plain["tuple"])
    if "number" in plain:
        return float(plain["number"])
    return {k: _value(v, values) for k, v in plain["map"].items()}
