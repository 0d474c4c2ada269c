"""Specs: in goes a TOML file, text or dictionary, out comes a checked ``Sweep``, or every problem with its cure."""

from predcube.pipeline.spec.canonical import difference, from_resolved, resolved, spec_hash
from predcube.pipeline.spec.loading import load_spec, problems
from predcube.pipeline.spec.mistakes import Mistake
from predcube.pipeline.spec.sweep import Cell, Section, Sweep, SweepAxis, Targets, Value

__all__ = [
    "Cell",
    "Mistake",
    "Section",
    "Sweep",
    "SweepAxis",
    "Targets",
    "Value",
    "difference",
    "from_resolved",
    "load_spec",
    "problems",
    "resolved",
    "spec_hash",
]
