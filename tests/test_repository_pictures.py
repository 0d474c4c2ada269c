"""The pictures of docs/classes.md can be drawn again, and the page names every class."""

import runpy
from pathlib import Path

from predcube.tasks.hypotheses import KINDS

DOCS = Path(__file__).parents[1] / "docs"


def test_pictures_are_drawn(tmp_path: Path) -> None:
    runpy.run_path(str(DOCS / "pictures.py"))["main"](tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in (DOCS / "pictures").iterdir())


def test_every_class_is_documented() -> None:
    page = (DOCS / "classes.md").read_text(encoding="utf-8")
    assert all(f"| `{kind}`" in page for kind in KINDS)
    assert all(f"pictures/{p.name}" in page for p in (DOCS / "pictures").iterdir())
