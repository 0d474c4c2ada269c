"""The benchmarks of the engine run at a tiny size and print what they promise."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_the_halfspaces_benchmark_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = runpy.run_path(str(BENCHMARKS / "halfspaces.py"))
    program["speed"](tiny=True)
    program["growth"](tiny=True, picture=tmp_path / "growth.png")
    program["memory"](tiny=True)
    assert (tmp_path / "growth.png").stat().st_size > 1000
    printed = capsys.readouterr().out
    for part in ("subsets a second on one core", "times slower", "ms a subset", "times the memory"):
        assert part in printed


def test_the_enumeration_benchmark_runs() -> None:
    program = [sys.executable, str(BENCHMARKS / "enumeration.py"), "--tiny"]
    printed = subprocess.run(program, check=True, capture_output=True, text=True, timeout=120).stdout
    for part in ("subsets take", "a second worker gains"):
        assert part in printed
