"""The benchmark of one trial runs at a tiny size, and what it compares agrees."""

import re
import runpy
from pathlib import Path

import pytest


def test_the_trial_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    program = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "trial.py"))
    program["main"](tiny=True)
    printed = capsys.readouterr().out
    for part in ("us a trial; draw", "(support)", "(laplace)", "stability", "supports, k=9", "losses", "recursion"):
        assert part in printed
    gaps = [float(g) for g in re.findall(r"they differ by ([0-9.e+-]+)", printed)]
    assert len(gaps) == 4
    assert max(gaps) < 1e-12
