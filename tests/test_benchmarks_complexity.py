"""The program behind docs/findings.md runs, and finds the exponents of the theorems where they are to be seen."""

import runpy
from pathlib import Path

import pytest

PROGRAM = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "complexity.py"))


def test_every_section_runs_at_a_tiny_size(capsys: pytest.CaptureFixture[str]) -> None:
    PROGRAM["main"](list(PROGRAM["SECTIONS"]), tiny=True)
    printed = capsys.readouterr().out
    for name in PROGRAM["SECTIONS"]:
        assert f"({name}: " in printed
    assert "stability 0.304394" in printed
    assert "stability 0.264214" in printed


def test_the_smallest_n_is_where_the_error_crosses_its_target() -> None:
    """One example fewer is not enough."""
    from predcube.tasks.closed_forms import expected_errors, unavailable

    law = PROGRAM["distributions"].build("lower_bound", alpha=0.2)
    for name, make in PROGRAM["STABLE"].items():
        learner = make(0.1)
        found = PROGRAM["smallest"](learner, 3, law, 0.2)
        h = PROGRAM["cube"](3)

        def enough(n: int, a: object = learner, h: object = h) -> bool:
            return unavailable(a, h, law, n) is None and expected_errors(a, h, law, n)["expected_error"] <= 0.2

        # Chunks of unequal length, and n' = ⌊γn⌋, make errors that do not quite fall with n.
        assert enough(int(found)), name
        assert not enough(int(found) - 1), name
