"""Hypothesis classes: ``build(kind, **parameters)`` makes one, ``KINDS`` names them all."""

from typing import Any

from predcube.tasks import parameters as declared
from predcube.tasks.hypotheses.base import HypothesisClass, Labels, Points, Representatives
from predcube.tasks.hypotheses.boxes import Boxes
from predcube.tasks.hypotheses.complement_pair import ComplementPair
from predcube.tasks.hypotheses.cube import Cube
from predcube.tasks.hypotheses.gf_lines import GfLines
from predcube.tasks.hypotheses.halfspaces import Halfspaces
from predcube.tasks.hypotheses.interval_unions import IntervalUnions
from predcube.tasks.hypotheses.intervals import Intervals
from predcube.tasks.hypotheses.point_functions import PointFunctions
from predcube.tasks.hypotheses.points import distinct, finite_points, real_points
from predcube.tasks.hypotheses.stumps import Stumps
from predcube.tasks.hypotheses.table import Table
from predcube.tasks.hypotheses.thresholds import Thresholds

KINDS: dict[str, type[HypothesisClass]] = {
    c.kind: c
    for c in (
        Thresholds,
        PointFunctions,
        Intervals,
        IntervalUnions,
        Boxes,
        Stumps,
        Halfspaces,
        GfLines,
        Cube,
        ComplementPair,
        Table,
    )
}


def build(kind: str, **parameters: Any) -> HypothesisClass:
    """The hypothesis class of this kind; ValueError names the nearest known kind or parameter.

    >>> build("thresholds", points=3).labelings([0, 2])
    array([[0, 0],
           [0, 1],
           [1, 1]], dtype=uint8)
    """
    return declared.build(KINDS, kind, parameters, family="hypotheses")


__all__ = [
    "KINDS",
    "Boxes",
    "ComplementPair",
    "Cube",
    "GfLines",
    "Halfspaces",
    "HypothesisClass",
    "IntervalUnions",
    "Intervals",
    "Labels",
    "PointFunctions",
    "Points",
    "Representatives",
    "Stumps",
    "Table",
    "Thresholds",
    "build",
    "distinct",
    "finite_points",
    "real_points",
]
