"""docs/predictability.md and the README show what the commands in them print, and the figures that they name exist."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = runpy.run_path(str(ROOT / "docs" / "predictability.py"))
PAGE = (ROOT / "docs" / "predictability.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PROGRAM["PAGES"])
def test_what_is_shown_of_the_small_table_is_what_is_printed(page: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shown = [m for m in PROGRAM["COMMAND"].finditer((ROOT / page).read_text(encoding="utf-8")) if "nhefs" in m[2]]
    [match] = shown
    # The simulated line is drawn, and may differ in its last digit where another BLAS adds in another order.
    assert _still(match[4]) == _still(PROGRAM["printed"](match[2], tmp_path))


def _still(text: str) -> str:
    return re.sub(r"^simulated .*$", "simulated", text, flags=re.MULTILINE)


def test_every_command_of_the_page_has_an_output() -> None:
    found = list(PROGRAM["COMMAND"].finditer(PAGE))
    assert len(found) == PAGE.count("```sh\npredcube predictability") >= 4
    assert all("removes" in m[4] or "is said to remove" in m[4] for m in found)


def test_its_figures_exist() -> None:
    named = re.findall(r"!\[[^\]]+\]\((predictability/[^)]+)\)", PAGE)
    assert sorted(named) == ["predictability/epsilon.svg", "predictability/frontier.svg"]
    for name in named:
        assert (ROOT / "docs" / name).stat().st_size > 10_000
