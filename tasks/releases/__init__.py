"""Releases by name: ``build(kind, **parameters)`` makes one, ``KINDS`` names them all. A new one: a file and a line."""

from collections.abc import Mapping
from typing import Any

from predcube.tasks import parameters as _parameters
from predcube.tasks.releases.base import Fitted, Release
from predcube.tasks.releases.gradient_descent import GradientDescent
from predcube.tasks.releases.linear import Linear
from predcube.tasks.releases.logistic import Logistic
from predcube.tasks.releases.poisson import Poisson
from predcube.tasks.releases.ridge import Ridge
from predcube.tasks.releases.stack import Stack
from predcube.tasks.releases.statistics import Count, Mean, Proportion

KINDS: Mapping[str, type[Release]] = {
    cls.kind: cls for cls in (Mean, Proportion, Count, Linear, Ridge, Logistic, Poisson, GradientDescent, Stack)
}


def build(kind: str, **parameters: Any) -> Release:
    """The release called ``kind``, parameters spelled as in a spec.

    Raises ValueError that names the nearest known kind or parameter, or the limit that a value breaks.

    >>> build("linear", target="wt82_71", features=["age", "sex"]).names
    ('intercept', 'age', 'sex')
    """
    return _parameters.build(KINDS, kind, parameters, family="release")


__all__ = ["KINDS", "Fitted", "Release", "build"]
