"""Label vectors as words of bits: in go rows of 0 and 1, out come words whose order is the canonical order.

Always true: the first point is the highest bit of the first word, so words compare as label vectors do; a row of 64
points is one word.
"""

import numpy as np
from numpy.typing import NDArray

type Words = NDArray[np.uint64]  # (M, W): one row a labeling, 64 points a word


def pack(labels: NDArray[np.uint8] | NDArray[np.bool_]) -> Words:
    """(M, m) of 0 and 1 → (M, ⌈m/64⌉), at least one word."""
    packed = np.packbits(labels, axis=1)
    width = max(1, -(-labels.shape[1] // 64))
    bytes_ = np.zeros((len(labels), 8 * width), dtype=np.uint8)
    bytes_[:, : packed.shape[1]] = packed
    return bytes_.view(">u8").astype(np.uint64)


def unpack(words: Words, m: int) -> NDArray[np.uint8]:
    """The reverse of ``pack``: (M, W) → (M, m)."""
    bytes_ = np.ascontiguousarray(words).astype(">u8").view(np.uint8)
    return np.unpackbits(bytes_, axis=1, count=m) if m else np.zeros((len(words), 0), dtype=np.uint8)


def first_of_each(words: Words) -> NDArray[np.int64]:
    """Where each distinct row stands first, the distinct rows in lexicographic order."""
    if words.shape[1] == 1:
        return np.unique(words[:, 0], return_index=True)[1].astype(np.int64)
    order = np.lexsort(words.T[::-1])  # stable: of equal rows the first comes first
    ordered = words[order]
    new = np.ones(len(words), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order[new].astype(np.int64)
