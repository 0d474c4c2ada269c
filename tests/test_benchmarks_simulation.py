"""The benchmark runs at a tiny size and prints what it promises."""

import runpy
from pathlib import Path

import pytest


def test_the_simulation_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    program = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "simulation.py"))
    program["main"](tiny=True)
    printed = capsys.readouterr().out
    for kind in ("iid", "weighted", "random_shard", "poisson", "whole_shards", "markov"):
        assert f"\n{kind} " in f"\n{printed}"
    for part in ("draws a second", "times the loop's", "simulated ÷ sharp", "a further noise"):
        assert part in printed
