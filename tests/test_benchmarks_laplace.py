"""The benchmark runs at a tiny size and prints what it promises."""

import runpy
from pathlib import Path

import pytest


def test_the_laplace_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    program = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "laplace.py"))
    program["main"](tiny=True)
    printed = capsys.readouterr().out
    for part in ("laplace, relative", "laplace, absolute", "log-log slope", "enumerate:", "neighbours, "):
        assert part in printed
    assert float(printed.partition("logs agree to ")[2].partition(",")[0]) < 1e-11
