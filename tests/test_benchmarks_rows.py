"""The benchmark of reading runs at a tiny size and prints what it promises."""

import subprocess
import sys
from pathlib import Path


def test_the_rows_benchmark_runs() -> None:
    program = [sys.executable, str(Path(__file__).parents[1] / "benchmarks" / "rows.py"), "--tiny"]
    printed = subprocess.run(program, check=True, capture_output=True, text=True, timeout=300).stdout
    for part in ("of bare read + product", "as a matrix", "as SQL", "times the memory"):
        assert part in printed
