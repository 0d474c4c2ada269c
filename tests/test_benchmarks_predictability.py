"""The benchmark of whole predictability sweeps runs at a tiny size and agrees with the program by hand."""

import re
import runpy
from pathlib import Path

import pytest

PROGRAM = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "predictability.py"))


def test_the_predictability_benchmark_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    PROGRAM["sweep"](tmp_path, 2000, 8, 2, 2)
    PROGRAM["one_query"](tmp_path, 1500, 8)
    printed = capsys.readouterr().out
    for part in ("by hand in NumPy", "times as long", "they differ by"):
        assert part in printed
    assert all(float(gap) < 1e-9 for gap in re.findall(r"differ by (\S+)", printed))


def test_the_peak_is_a_number_of_kilobytes(tmp_path: Path) -> None:
    PROGRAM["ROWS"]["write"](tmp_path / "peak.parquet", 1000)
    assert 10**4 < PROGRAM["peak"](tmp_path / "peak.parquet") < 10**7
