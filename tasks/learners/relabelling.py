"""Votes on a relabelled sample: in go a class and the sample's points, out comes what a voter says that was trained on
some of them as each hypothesis of the class labels them.

A voter that sees the points C labelled by h returns the class's representative of h's labelling of C, which depends on
h through its labels on C alone: so each set C is trained once for all hypotheses.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points

KEPT = 2**26
"""Bytes of votes that are kept at most."""
WORD = 62
"""Labels that fit an integer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relabelling:
    """``labels`` (M, k): what each hypothesis says at the sorted ``points`` (k, …); ``queries`` (Q, …)."""

    hypotheses: HypothesisClass
    points: Points
    labels: Labels
    queries: Points
    known: dict[bytes, NDArray[np.uint8]] = field(default_factory=dict)

    def said(self, chunk: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The voter on the points of (sorted, distinct) indices ``chunk``, for each hypothesis: (M, Q)."""
        key = chunk.tobytes()
        found = self.known.get(key)
        if found is None:
            seen = self.points[chunk]
            representatives = self.hypotheses.representatives(seen)
            rows = places(self.hypotheses.labelings(seen), self.labels[:, chunk])
            found = self.hypotheses.predict(representatives, self.queries)[rows]
            if len(self.known) * max(found.nbytes, 1) > KEPT:
                self.known.clear()
            self.known[key] = found
        return found

    def votes(self, chunks: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
        """How many of the voters say 1: (M, Q)."""
        total = np.zeros((len(self.labels), len(self.queries)), dtype=np.int64)
        for chunk in chunks:
            total += self.said(chunk)
        return total


def places(listed: Labels, rows: Labels) -> NDArray[np.int64]:
    """Where each of ``rows`` (M, c) stands among ``listed`` (L, c), distinct rows in lexicographic order."""
    if rows.shape[1] <= WORD:
        powers = 1 << np.arange(rows.shape[1] - 1, -1, -1, dtype=np.int64)
        return np.searchsorted(listed.astype(np.int64) @ powers, rows.astype(np.int64) @ powers)
    return np.searchsorted(_words(listed), _words(rows))


def _words(rows: Labels) -> NDArray[np.bytes_]:
    """Each row of 0 and 1 as text of bytes, in the same order."""
    packed = np.ascontiguousarray(np.packbits(rows, axis=1))
    return packed.view(f"S{packed.shape[1]}").reshape(-1)
