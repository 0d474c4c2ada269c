"""The page on the cube names what a cube may hold."""

from pathlib import Path

import pytest

from predcube.pipeline.quantities import PREDICTABILITY, QUANTITIES

PAGE = (Path(__file__).parent.parent / "docs" / "cube.md").read_text()


@pytest.mark.parametrize("name", [*QUANTITIES, *PREDICTABILITY])
def test_every_quantity_stands_in_a_table(name: str) -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    assert any(f"`{name}`" in row for row in rows)
