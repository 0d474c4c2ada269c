"""Runs the examples that the README shows, draws their pictures and writes their tables into it.

    python docs/examples.py [FOLDER]        (stores go there; a temporary folder unless given)

What stands in README.md between ``<!-- NAME -->`` and ``<!-- /NAME -->`` comes from here and nowhere else.
"""

import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console, RenderableType

from predcube.pipeline import query, run
from predcube.pipeline.figures import plot, save
from predcube.pipeline.printing import table
from predcube.pipeline.table_audits import Request, audit_table
from predcube.pipeline.verdicts import as_text

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "examples"
SHOWN = {
    # name: (spec, hue, facet)
    "quickstart": ("quickstart.toml", "gamma", "noise"),
    "nhefs": ("nhefs.toml", "gamma", "table"),
}


def text(store: str) -> str:
    """The smallest n of each combination of the other axes, as a terminal shows it."""
    return shown(table(query(store, smallest="n")))


def audited() -> str:
    """What ``predcube audit`` says of one table and one learner."""
    request = Request(
        table="examples/data/nhefs.csv",
        features=("age",),
        label="death = 1",
        hypotheses="thresholds",
        learner="stable_flip:epsilon=1,alpha=0.1",
        neighbours=20_000,
    )
    return shown(as_text(audit_table(request, directory=str(ROOT))))


def shown(what: RenderableType) -> str:
    """What a terminal of 100 columns shows."""
    console = Console(width=100, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(what)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")


def put(words: str, name: str, text: str) -> str:
    """The page with a block exchanged."""
    block = f"<!-- {name} -->\n```text\n{text}\n```\n<!-- /{name} -->"
    words, found = re.subn(rf"<!-- {name} -->.*?<!-- /{name} -->", lambda _: block, words, flags=re.DOTALL)
    if found != 1:
        raise SystemExit(f"README.md has {found} places for {name!r}; it needs one")
    return words


def main(folder: Path) -> None:
    page = ROOT / "README.md"
    words = page.read_text(encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for name, (spec, hue, facet) in SHOWN.items():
        store = str(folder / f"{name}.zarr")
        run(ROOT / "examples" / spec, store)
        save(plot(store, x="n", y="excess_error", hue=hue, facet=facet), PICTURES / f"{name}.svg")
        words = put(words, name, text(store))
    words = put(words, "audit", audited())
    page.write_text(words, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
