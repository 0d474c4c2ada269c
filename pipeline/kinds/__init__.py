"""The kinds of sweep by name. A new one: a file here, a grammar in ``spec.grammar``, and a line in ``KINDS``."""

from collections.abc import Mapping

from predcube.pipeline.kinds.base import Kind
from predcube.pipeline.kinds.predictability import Predictability
from predcube.pipeline.kinds.prediction import Prediction
from predcube.pipeline.spec.sweep import Sweep

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (Prediction(), Predictability())}


def kind_of(sweep: Sweep) -> Kind:
    """What serves a sweep."""
    return KINDS[sweep.kind]


__all__ = ["KINDS", "Kind", "kind_of"]
