"""The benchmark of moments runs at a tiny size, and what it compares agrees."""

import re
import runpy
from pathlib import Path

import pytest


def test_the_moments_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("statsmodels")
    program = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "moments.py"))
    program["main"](tiny=True)
    printed = capsys.readouterr().out
    for part in ("moments, 0 queries", "moments, 20 queries", "240 cells", "statsmodels GMM"):
        assert part in printed
    assert float(re.findall(r"they differ by ([0-9.e+-]+)", printed)[0]) < 1e-7
