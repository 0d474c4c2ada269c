"""A sweep of 4,000 cells × 48 trials on two workers: how busy they are with science, and the same sweep by xyzpy.

Baseline: xyzpy, which maps a Python function over a labelled grid in a pool of processes, as its manual shows
(``parallel=True``) on the same two workers. Twice: one call per trial, and one call per cell (which then loops over the
trials itself). Both call the very function that our workers call for a trial, with objects cached per process, so only
the fan-out and the storing differ. A trial takes about a tenth of a millisecond, so the fan-out matters.

Prints: seconds of science (CPU time inside workers), the share of two workers' wall time that it fills, the ratios to
xyzpy, and the overheads 2·wall − science. All in one run, ours and theirs in turn.
"""

import argparse
import functools
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import xyzpy
from numpy.typing import NDArray

from predcube.pipeline import load_spec, run
from predcube.pipeline.building import build_problem
from predcube.pipeline.spec.sweep import Sweep
from predcube.storage import open_cube
from predcube.tasks.trials import Problem, measure

SPEC = """
name = "busy"
kind = "prediction"
seed = 3
trials = {trials}
[hypotheses]
kind = "thresholds"
points = 9
[distribution]
kind = "threshold"
at = 4
noise = 0.1
[learner]
kind = "stable"
gamma = 0.1
[measure]
quantities = ["excess_error"]
[sweep]
n = {ns}
"learner.gamma" = {gammas}
"distribution.noise" = {noises}
"""
WORKERS = 2


def spec(tiny: bool) -> str:
    if tiny:
        return SPEC.format(trials=2, ns=[40, 60], gammas=[0.1, 0.2], noises=[0.0, 0.1])
    ns = list(range(100, 300, 20))
    gammas = [round(0.1 + 0.01 * i, 2) for i in range(20)]
    noises = [round(0.02 * i, 2) for i in range(20)]
    return SPEC.format(trials=48, ns=ns, gammas=gammas, noises=noises)


@functools.cache
def sweep_of(text: str) -> Sweep:
    return load_spec(text)


@functools.cache
def problem(text: str, index: tuple[int, ...]) -> Problem:
    """Built once per process and cell, as our workers do."""
    sweep = sweep_of(text)
    return build_problem(sweep.cell(index), sweep)


def one_trial(text: str, n: int, gamma: int, noise: int, trial: int) -> tuple[float, float]:
    """What xyzpy maps: excess error of one trial, and the CPU seconds that computing it took."""
    start = time.thread_time()
    value = measure(problem(text, (n, gamma, noise)), trial)["excess_error"]
    return value, time.thread_time() - start


def one_cell(text: str, n: int, gamma: int, noise: int, trials: int) -> tuple[float, float]:
    """The same called once per cell: the mean over its trials."""
    both = [one_trial(text, n, gamma, noise, t) for t in range(trials)]
    return sum(v for v, _ in both) / trials, sum(s for _, s in both)


def by_xyzpy(text: str, *, per_trial: bool, folder: Path) -> tuple[float, float, NDArray[np.float64]]:
    """Wall seconds and science seconds of the whole sweep through xyzpy, and the mean excess error of each cell. Its
    pool is up, and has imported what it needs, before the clock runs, as ours."""
    sweep = sweep_of(text)
    combos: dict[str, Any] = {a.name: list(range(len(a.values))) for a in sweep.axes}
    constants: dict[str, Any] = {"text": text}
    if per_trial:
        combos["trial"] = list(range(sweep.trials))
    else:
        constants["trials"] = sweep.trials
    runner = xyzpy.Runner(one_trial if per_trial else one_cell, ["excess_error", "seconds"], constants=constants)
    first = {name: values[:2] for name, values in combos.items()}
    runner.run_combos(first, parallel=True, num_workers=WORKERS, verbosity=0)
    start = time.perf_counter()
    found = runner.run_combos(combos, parallel=True, num_workers=WORKERS, verbosity=0)
    xyzpy.save_ds(found, str(folder / "baseline.h5"))
    wall = time.perf_counter() - start
    means = found["excess_error"].mean("trial") if per_trial else found["excess_error"]
    return wall, float(found["seconds"].sum()), means.transpose(*(a.name for a in sweep.axes)).values


def ours(text: str, *, folder: Path) -> tuple[float, float, float, NDArray[np.float64]]:
    """Wall of the whole ``run`` (cluster's start, cube, surfaces and all), wall with workers up, science, means."""
    url = str(folder / "ours.zarr")
    start = time.perf_counter()
    summary = run(text, url, workers=WORKERS)
    whole = time.perf_counter() - start
    means = open_cube(url)["surfaces"]["excess_error"].values
    return whole, summary.wall, summary.science, means


def main(tiny: bool = False) -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # the pool's processes inherit it, as our workers have it
    text = spec(tiny)
    sweep = sweep_of(text)
    cells = int(np.prod(sweep.shape))
    print(f"{cells} cells × {sweep.trials} trials, {WORKERS} workers, everything in one run")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole, wall, science, mine = ours(text, folder=folder)
        trial_wall, trial_science, theirs = by_xyzpy(text, per_trial=True, folder=folder)
        cell_wall, cell_science, again = by_xyzpy(text, per_trial=False, folder=folder)
    assert np.allclose(mine, theirs, rtol=0, atol=1e-12)
    assert np.allclose(mine, again, rtol=0, atol=1e-12)
    print(f"{'':28}{'wall s':>9}{'science s':>11}{'busy':>7}{'ms a trial':>12}{'overhead s':>12}")
    many = cells * sweep.trials
    for label, w, s in (
        ("predcube, workers up", wall, science),
        ("predcube, the whole command", whole, science),
        ("xyzpy, one call per trial", trial_wall, trial_science),
        ("xyzpy, one call per cell", cell_wall, cell_science),
    ):
        print(f"{label:28}{w:9.2f}{s:11.2f}{s / (WORKERS * w):7.3f}{1e3 * s / many:12.3f}{WORKERS * w - s:12.2f}")
    print(f"ratio to xyzpy, one call per trial: {trial_wall / wall:.2f}× (whole command {trial_wall / whole:.2f}×)")
    print(f"ratio to xyzpy, one call per cell:  {cell_wall / wall:.2f}× (whole command {cell_wall / whole:.2f}×)")
    share = (WORKERS * wall - science) / (WORKERS * cell_wall - cell_science)
    print(f"our overhead ÷ its, one call per cell: {share:.2f}")


if __name__ == "__main__":
    import sweep  # this file by its name: what workers are sent is then a reference, not a copy without its caches

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a few cells, to see that it runs")
    sweep.main(**vars(parser.parse_args()))
