"""Draws the pictures of docs/classes.md: for each class on a plane, points with one of their labelings and what the
representative of that labeling says everywhere else.

    python docs/pictures.py [FOLDER]        (docs/pictures unless given)
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from predcube.tasks.hypotheses import HypothesisClass, build

mpl.rcParams["svg.hashsalt"] = "predcube"
ZERO, ONE = "#4477aa", "#ee6677"
SIZE = 241
"""Queries a side."""


def draw(h: HypothesisClass, points: np.ndarray, labels: np.ndarray, title: str, path: Path) -> None:
    """One labeling of ``points`` and its representative. On a finite X every point of X is drawn, those of T filled."""
    found = h.labelings(points)
    row = int(np.flatnonzero((found == labels).all(axis=1))[0])
    representative = h.representatives(points)[row : row + 1]
    figure = Figure(figsize=(3.4, 3.1), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    if h.domain is None:
        side = np.linspace(0.0, 1.0, SIZE)
        x, y = np.meshgrid(side, side)
        says = h.predict(representative, np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
        axes.imshow(
            says, extent=(0, 1, 0, 1), origin="lower", cmap=ListedColormap([ZERO, ONE]), vmin=0, vmax=1, alpha=0.25
        )
    else:
        says = h.predict(representative, h.domain)[0]
        for label, colour in ((0, ZERO), (1, ONE)):
            there = h.domain[says == label]
            axes.scatter(there[:, 0], there[:, 1], s=70, facecolors="none", edgecolors=colour, marker="os"[label])
    for label, colour in ((0, ZERO), (1, ONE)):
        there = points[labels == label]
        axes.scatter(
            there[:, 0], there[:, 1], s=36, color=colour, marker="os"[label], zorder=3, label=f"labelled {label}"
        )
    axes.set_title(f"{title}: {len(found)} labelings of {len(points)} points", fontsize=9)
    axes.set_aspect("equal")
    axes.tick_params(labelsize=7)
    figure.savefig(path, metadata={"Software": None})


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    points = np.random.default_rng(11).random((12, 2)).round(3)
    boxes = build("boxes", dimension=2)
    draw(boxes, points, boxes.predict(boxes.named([0.17, 0.83, 0.17, 0.83]), points)[0], "boxes", folder / "boxes.png")
    stumps = build("stumps", dimension=2)
    draw(stumps, points, stumps.predict(stumps.named([1, 0.45, -1]), points)[0], "stumps", folder / "stumps.png")
    halfspaces = build("halfspaces", dimension=2)
    labels = halfspaces.predict(halfspaces.named([1, 1.5, 1.2]), points)[0]
    draw(halfspaces, points, labels, "halfspaces", folder / "halfspaces.png")
    lines = build("gf_lines", q=7)
    chosen = np.array([[0, 1], [1, 3], [3, 0], [4, 4], [5, 6], [6, 2]])
    draw(lines, chosen, lines.predict(lines.named([2, 1]), chosen)[0], "gf_lines, q = 7", folder / "gf_lines.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures")
