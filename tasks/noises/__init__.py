"""Noise schemes by name: ``build(kind, **parameters)`` makes one, ``KINDS`` names them all."""

from collections.abc import Mapping
from typing import Any

from predcube.tasks import parameters as _parameters
from predcube.tasks.noises.base import Noise, Setting, Shape
from predcube.tasks.noises.calibrated import Calibrated
from predcube.tasks.noises.gaussian import Gaussian
from predcube.tasks.noises.isotropic import Isotropic
from predcube.tasks.noises.laplace import Laplace
from predcube.tasks.noises.none import NoNoise
from predcube.tasks.noises.rank_one import RankOne

KINDS: Mapping[str, type[Noise]] = {
    cls.kind: cls for cls in (NoNoise, Isotropic, Calibrated, RankOne, Gaussian, Laplace)
}


def build(kind: str, **parameters: Any) -> Noise:
    """The noise scheme called ``kind``, parameters spelled as in a spec.

    Raises ValueError that names the nearest known kind or parameter, or the limit that a value breaks.

    >>> round(build("laplace", epsilon=0.5, sensitivity=0.01).unit_sd, 6)
    2.828427
    """
    return _parameters.build(KINDS, kind, parameters, family="noise")


__all__ = ["KINDS", "Noise", "Setting", "Shape", "build"]
