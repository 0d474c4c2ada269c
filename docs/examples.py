"""Runs the examples that the README shows, draws their pictures and writes their tables into it.

    python docs/examples.py [FOLDER]        (stores go there; a temporary folder unless given)

What stands in README.md between ``<!-- NAME -->`` and ``<!-- /NAME -->`` comes from here and nowhere else.
"""

import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from predcube.pipeline import query, run
from predcube.pipeline.figures import plot, save
from predcube.pipeline.printing import table

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "examples"
SHOWN = {
    # name: (spec, hue, facet)
    "quickstart": ("quickstart.toml", "gamma", "noise"),
    "nhefs": ("nhefs.toml", "gamma", "table"),
}


def text(store: str) -> str:
    """The smallest n of each combination of the other axes, as a terminal shows it."""
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(table(query(store, smallest="n")))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")


def main(folder: Path) -> None:
    page = ROOT / "README.md"
    words = page.read_text(encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for name, (spec, hue, facet) in SHOWN.items():
        store = str(folder / f"{name}.zarr")
        run(ROOT / "examples" / spec, store)
        save(plot(store, x="n", y="excess_error", hue=hue, facet=facet), PICTURES / f"{name}.svg")
        block = f"<!-- {name} -->\n```text\n{text(store)}\n```\n<!-- /{name} -->"
        words, found = re.subn(rf"<!-- {name} -->.*?<!-- /{name} -->", lambda _, b=block: b, words, flags=re.DOTALL)
        if found != 1:
            raise SystemExit(f"README.md has {found} places for {name!r}; it needs one")
    page.write_text(words, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
