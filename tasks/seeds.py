"""Random streams: in go a root seed and the values that identify a draw, out comes a generator.

The stream is a function of those values alone, never of position, chunking, worker, order or attempt, so a
sweep gives the same numbers however it is cut, resumed or extended.
"""

import hashlib
import json

import numpy as np

type Identity = bool | int | float | str | tuple["Identity", ...] | dict[str, "Identity"] | None


def stream(seed: int, purpose: str, *identity: Identity) -> np.random.Generator:
    """The generator of one draw.

    ``purpose`` names the quantity that is drawn ("data", "subsets", "neighbours", …), so that no two
    quantities share a stream; ``identity`` are the values that identify the draw, in a fixed order. They are
    written as canonical JSON (keys sorted, floats by their shortest decimal) and hashed with SHA-256 into the
    256 bits that seed a Philox counter, so (0, 1) and (1, 0) are as unrelated as any other two.

    >>> stream(7, "data", {"at": 4}, 20, 0).integers(100) == stream(7, "data", {"at": 4}, 20, 0).integers(100)
    np.True_
    """
    text = json.dumps([seed, purpose, *identity], sort_keys=True, separators=(",", ":"), allow_nan=False)
    digest = hashlib.sha256(text.encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").astype(np.uint32)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(words.tolist())))
