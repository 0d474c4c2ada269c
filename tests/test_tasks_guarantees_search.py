"""No learner is beyond its guarantee on any of ten thousand random data sets, and the search would tell."""

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from predcube.tasks import learners
from predcube.tasks.learners.df_agnostic import DfAgnostic

PROGRAM = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "guarantees.py"))


@pytest.mark.long
def test_no_learner_is_beyond_its_guarantee(capsys: pytest.CaptureFixture[str]) -> None:
    assert PROGRAM["main"](10_000, seed=1)
    printed = capsys.readouterr().out
    assert "no guarantee is broken" in printed
    lines = {line.split()[0]: line.split() for line in printed.splitlines()[1:-1]}
    assert set(lines) == set(learners.KINDS)
    assert sum(int(words[1]) for words in lines.values()) >= 10_000
    # Tight where theory says so: a search that looked at easy data alone would find nothing near 1.
    for kind in ("df_realizable", "df_thresholds", "subsample_average", "exponential", "two_point"):
        assert float(lines[kind][2]) > 0.999


class Boastful(DfAgnostic):
    """Claims a tenth less than it keeps."""

    __slots__ = ()

    def guaranteed_stability(self, n: int) -> float:
        return 0.9 * DfAgnostic.guaranteed_stability(self, n)


def test_a_broken_guarantee_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def build(kind: str, **parameters: Any) -> Boastful:
        return Boastful(**parameters)

    names = PROGRAM["search"].__globals__
    monkeypatch.setitem(names, "learners", SimpleNamespace(build=build))
    monkeypatch.setitem(names, "PARAMETERS", {"df_agnostic": names["PARAMETERS"]["df_agnostic"]})
    assert not PROGRAM["main"](100)
    assert "A GUARANTEE IS BROKEN" in capsys.readouterr().out
