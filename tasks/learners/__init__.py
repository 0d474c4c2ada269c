"""Learners by name: ``build(kind, **parameters)`` makes one, ``KINDS`` names them all. A new one: a file and a line."""

from collections.abc import Mapping
from typing import Any

from predcube.tasks import parameters as _parameters
from predcube.tasks.learners.base import Learner, Prediction
from predcube.tasks.learners.df_agnostic import DfAgnostic
from predcube.tasks.learners.df_realizable import DfRealizable
from predcube.tasks.learners.df_thresholds import DfThresholds
from predcube.tasks.learners.erm import Erm
from predcube.tasks.learners.exponential import Exponential
from predcube.tasks.learners.private import Private
from predcube.tasks.learners.private_lwy import PrivateLwy
from predcube.tasks.learners.stable import Stable
from predcube.tasks.learners.stable_flip import StableFlip
from predcube.tasks.learners.stable_net import StableNet
from predcube.tasks.learners.subsample import Subsample
from predcube.tasks.learners.subsample_average import SubsampleAverage
from predcube.tasks.learners.two_point import TwoPoint

KINDS: Mapping[str, type[Learner]] = {
    cls.kind: cls
    for cls in (
        Stable,
        StableNet,
        StableFlip,
        Private,
        PrivateLwy,
        DfRealizable,
        DfAgnostic,
        DfThresholds,
        SubsampleAverage,
        Subsample,
        Exponential,
        Erm,
        TwoPoint,
    )
}


def build(kind: str, **parameters: Any) -> Learner:
    """The learner called ``kind``, parameters spelled as in a spec.

    Raises ValueError that names the nearest known kind or parameter, or the limit that a value breaks.

    >>> build("stable", gamma=0.29).derived(100)["subset_size"]
    29
    """
    return _parameters.build(KINDS, kind, parameters, family="learner")


__all__ = ["KINDS", "Learner", "Prediction", "build"]
