"""Runs the commands of docs/predictability.md and README.md, puts what they print beside them, and draws the figures.

    python docs/predictability.py [FOLDER]        (this project unless given: where pages and figures are written)

The pages' commands are run in a folder of their own, which has ``examples`` and ``mortgages.parquet`` in it.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from predcube.pipeline.answering import work
from predcube.pipeline.drawing import LABEL_COLOURS
from predcube.tasks import noises, processes

mpl.rcParams["svg.hashsalt"] = "predcube"
ROOT = Path(__file__).parents[1]
PAGES = ("docs/predictability.md", "README.md")
WIDTH = 100
FRACTIONS = (0.01, 0.1, 0.5, 0.9)
COMMAND = re.compile(r"(<!-- command -->\n```sh\n)(.*?)(```\n```text\n)(.*?)(```\n<!-- /command -->)", re.DOTALL)


def mortgages(path: Path) -> None:
    """The census table, from the package that carries it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from causaldata import mortgages as table

        table.load_pandas().data.to_parquet(path)


def printed(command: str, folder: Path) -> str:
    """What a command of the page prints there."""
    words = shlex.split(command.replace("\\\n", " "))
    program = [sys.executable, "-c", "from predcube.pipeline.cli.app import main; main()", *words[1:]]
    environment = {**os.environ, "COLUMNS": str(WIDTH)}
    done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines() if not line.startswith("drew ")) + "\n"


def filled(page: str, folder: Path) -> str:
    """The page with the output of its commands."""
    return COMMAND.sub(lambda m: f"{m[1]}{m[2]}{m[3]}{printed(m[2], folder)}{m[5]}", page)


def against_epsilon(folder: Path) -> Figure:
    """The share that two releases remove against ε, a line for each part of the rows that is held."""
    figure = Figure(figsize=(7.6, 3.3), layout="constrained")
    panels = figure.subplots(1, 2)
    asked = (
        ("share of quitters", "examples/data/nhefs.csv", "qsmk", ["qsmk"], (1e-3, 10.0)),
        ("veterans, non-whites", "mortgages.parquet", "home_ownership", ["vet_wwko", "nonwhite"], (1e-4, 1.0)),
    )
    for axes, (title, path, query, columns, (low, high)) in zip(panels, asked, strict=True):
        worked = work(
            {
                "kind": "predictability",
                "table": {"path": str(folder / path)},
                "query": {"query": query},
                "release": {"kind": "mean", "columns": columns},
                "process": {"kind": "random_shard", "fraction": 0.5},
            }
        )
        epsilons = np.geomspace(low, high, 60)
        sensitivity = len(columns) ** 0.5 / worked.sample.rows
        for i, fraction in enumerate(FRACTIONS):
            process = processes.build("random_shard", fraction=fraction)
            shares = [
                float(worked.gains.values(process, noise, worked.measure).r[0] ** 2)
                for noise in (
                    noises.build("gaussian", epsilon=float(e), delta=1e-6, sensitivity=sensitivity) for e in epsilons
                )
            ]
            axes.plot(epsilons, shares, color=LABEL_COLOURS[i], linewidth=1.6, label=f"{fraction:.0%} held")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_title(f"{title} (N = {worked.sample.rows:,})", fontsize=10)
        axes.set_xlabel("ε of the noise", fontsize=9)
        axes.grid(True, color="#d1d5db", linewidth=0.6, alpha=0.7)
        axes.tick_params(labelsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0].set_ylabel("share of the uncertainty removed (r²)", fontsize=9)
    panels[0].legend(fontsize=8, frameon=False, loc="lower right")
    return figure


def main(target: Path) -> None:
    pictures = target / "docs" / "predictability"
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        mortgages(folder / "mortgages.parquet")
        for page in PAGES:
            (target / page).write_text(filled((ROOT / page).read_text(encoding="utf-8"), folder), encoding="utf-8")
        shutil.copy(folder / "frontier.svg", pictures / "frontier.svg")
        against_epsilon(folder).savefig(pictures / "epsilon.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
