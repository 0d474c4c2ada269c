"""What docs/findings.md shows is what its commands print: the short ones are run, the others are held to its words."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
PROGRAM = runpy.run_path(str(ROOT / "benchmarks" / "complexity.py"))
FILLER = runpy.run_path(str(ROOT / "docs" / "findings.py"))
BLOCKS = {m[2]: m[5] for m in FILLER["COMMAND"].finditer(PAGE)}


@pytest.mark.parametrize("section", ["constants", "plateau", "lower"])
def test_the_page_shows_what_is_printed(section: str, capsys: pytest.CaptureFixture[str]) -> None:
    PROGRAM["main"]([section], clock=False)
    shown = BLOCKS[f"python benchmarks/complexity.py {section} --no-clock\n"]
    printed = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
    assert printed == shown


def test_every_command_has_its_output_and_every_picture_is_there() -> None:
    assert len(BLOCKS) >= 7
    assert all(BLOCKS.values())
    pictures = re.findall(r"\]\((examples/[\w-]+\.svg)\)", PAGE)
    assert len(pictures) == 2
    for picture in pictures:
        assert (ROOT / "docs" / picture).exists()
        assert f"-o {Path(picture).name}" in PAGE


def test_numbers_in_the_text_stand_in_the_outputs() -> None:
    """Those that a reader would look up: 1.10 times the bound, 2,063 examples, a loss of 0.81."""
    printed = "".join(BLOCKS.values())
    for said, shown in (
        ("0.0203 to 0.0211", "0.0203–0.0211"),
        ("2,063", "2063"),
        ("253,293", "253293"),
        ("0.81 at", "0.8137"),
        ("1.155ε", "1.155"),
        ("0.594ε", "0.594"),
        ("1.37ε", "1.371"),
        ("0.5625γ", "0.5625"),
        ("0.159 against", "0.1586"),
        ("at most 0.34", "0.341472"),
        ("0.051 for", "0.051115"),
    ):
        assert said in PAGE
        assert shown in printed
