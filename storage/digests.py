"""The fingerprint of a tile: in go its arrays and labels, out comes SHA-256 in hex.

Always true: it depends on decoded values alone (never on codecs, chunk files, byte order or the width of a text
array), and tells every name, type, shape, label and bit apart.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def digest(arrays: Mapping[str, NDArray[Any]], coordinates: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over every array's name, dtype, shape and little-endian C-order bytes, in the order of their names,
    the labels after the variables. Text is hashed as JSON, so a wider ``<U…`` changes nothing.

    >>> a = {"error": np.array([0.5, np.nan])}
    >>> digest(a, {"n": np.array([20, 40])}) == digest({"error": a["error"].astype(">f8")}, {"n": np.array([20, 40])})
    True
    >>> digest(a, {"n": np.array([20, 40])}) == digest(a, {"n": np.array([20, 80])})
    False
    """
    state = hashlib.sha256()
    for part in (arrays, coordinates):
        for name in sorted(part):
            array = np.asarray(part[name])
            if array.dtype.kind == "U":
                kind, content = "str", json.dumps(array.tolist()).encode()
            else:
                little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
                kind, content = little.dtype.str, little.tobytes()
            # The header fixes where the content ends: no two inputs make one stream of bytes.
            state.update(json.dumps([name, kind, list(array.shape), len(content)]).encode() + b"\n" + content)
        state.update(b"\n")
    return state.hexdigest()
