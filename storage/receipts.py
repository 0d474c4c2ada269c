"""A tile's receipt: in go what the worker knows of its work, out comes one line of JSON, and back.

Always true: a text is a receipt only if all of it parses; it fits its width.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from predcube.storage.layout import RECEIPT_WIDTH
from predcube.storage.schema import TileKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What is known of a tile that was written. A worker gives the first five; ``write_tile`` adds the rest.

    ``cpu_seconds``, ``wall_seconds``: what the work took. ``worker``: a name, for people. ``attempt``: 1 for the
    first. ``failed``: how many (cell, trial) places of the tile failed. ``coordinates``: per axis its label, or its
    first and last where the tile holds several. ``digest``: of the tile's arrays and labels.
    """

    cpu_seconds: float
    wall_seconds: float
    worker: str
    attempt: int = 1
    failed: int = 0
    key: TileKey = ()
    coordinates: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""

    def signed(self, key: TileKey, labels: Mapping[str, NDArray[Any]], digest: str) -> "Receipt":
        """The receipt of this very tile."""
        ends = {
            name: values[0].item() if len(values) == 1 else [values[0].item(), values[-1].item()]
            for name, values in labels.items()
        }
        signed = replace(self, key=tuple(int(k) for k in key), coordinates=ends, digest=digest)
        # Long labels would not fit; the digest covers them, and the key says where they stand in the cube.
        return (
            signed
            if len(signed.to_text()) <= RECEIPT_WIDTH
            else replace(signed, coordinates={}, worker=self.worker[:64])
        )

    def to_text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"), allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> "Receipt":
        """Raises ValueError on anything but a whole receipt."""
        parsed = json.loads(text)
        try:
            receipt = cls(**parsed)
            receipt = replace(receipt, key=tuple(int(k) for k in receipt.key))
        except TypeError as e:
            raise ValueError(f"not a receipt: {text[:80]!r}") from e
        if not (receipt.key and len(receipt.digest) == 64):
            raise ValueError(f"not a receipt: {text[:80]!r}")
        return receipt
