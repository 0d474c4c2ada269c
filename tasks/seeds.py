"""Random streams: in go a root seed and the values that identify a draw, out comes a generator.

The stream is a function of those values alone, never of position, chunking, worker, order or attempt, so a
sweep gives the same numbers however it is cut, resumed or extended.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

type Identity = bool | int | float | str | tuple["Identity", ...] | dict[str, "Identity"] | None


def stream(seed: int, purpose: str, *identity: Identity) -> np.random.Generator:
    """The generator of one draw.

    ``purpose`` names the quantity that is drawn ("data", "subsets", "neighbours", …), so that no two
    quantities share a stream; ``identity`` are the values that identify the draw, in a fixed order. They are
    written as canonical JSON (keys sorted, floats by their shortest decimal) and hashed with SHA-256; the first 128
    bits, as two little-endian words, are the key of a Philox counter that starts at 0. So (0, 1) and (1, 0) are as
    unrelated as any other two.

    >>> stream(7, "data", {"at": 4}, 20, 0).integers(100) == stream(7, "data", {"at": 4}, 20, 0).integers(100)
    np.True_
    """
    return _generator(_begun(seed, purpose, identity), b"]")


def streams(seed: int, purpose: str, *identity: Identity) -> Callable[[int], np.random.Generator]:
    """The streams of all trials of one identity: ``streams(seed, purpose, …)(trial)`` is ``stream(seed, purpose, …,
    trial)``, the hash of what trials share being taken once.

    >>> streams(7, "data", {"at": 4}, 20)(3).integers(100) == stream(7, "data", {"at": 4}, 20, 3).integers(100)
    np.True_
    """
    begun = _begun(seed, purpose, identity)
    return lambda trial: _generator(begun, b",%d]" % trial)


def _begun(seed: int, purpose: str, identity: tuple[Identity, ...]) -> Any:
    """The hash of the list but for its closing bracket."""
    text = json.dumps([seed, purpose, *identity], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text[:-1].encode())


def _generator(begun: Any, rest: bytes) -> np.random.Generator:
    digest = begun.copy()
    digest.update(rest)
    return np.random.Generator(np.random.Philox(_Key(digest.digest())))  # type: ignore[arg-type]  # ISeedSequence


class _Key(ISeedSequence):
    """The key of a Philox counter as it is: ``Philox(key=…)`` would first ask the system for entropy, which takes
    three times as long as all the rest."""

    def __init__(self, digest: bytes) -> None:
        self._digest = digest

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        size = np.dtype(dtype).itemsize
        return np.frombuffer(self._digest, dtype=f"<u{size}", count=n_words).astype(dtype, copy=False)
