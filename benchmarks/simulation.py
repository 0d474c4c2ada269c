"""The efficient attacker run on drawn breaches: draws a second of every process, beside a plain loop over draws.

The loop draws rows with NumPy's generator, takes the attacker's means of them and its correction, one draw at a time;
both attack the same number of draws of the same table, on one core, and both are checked against the sharp value. Then
what a further noise scheme costs on breaches that were drawn already. Prints one line a number.
"""

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predcube.tasks import noises, processes, releases
from predcube.tasks.attackers import Simulation, attack, breach_stream, noise_stream
from predcube.tasks.breaches import Breaches, draw_breaches
from predcube.tasks.frames import Frame, Groups, total_of
from predcube.tasks.gains import Gains, Measure
from predcube.tasks.noises import Noise
from predcube.tasks.processes import Process

type Array = NDArray[np.float64]

MATRIX = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]


def table(rows: int) -> dict[str, Array]:
    """Made-up rows: a binary query, two features, weights, inclusion probabilities, shards of 10 and three states."""
    rng = np.random.default_rng(rows)
    age, weight = rng.normal(50, 12, rows), rng.normal(70, 15, rows)
    return {
        "query": (rng.random(rows) < 1 / (1 + np.exp((age - 50) / 12))).astype(float),
        "age": age,
        "weight": weight,
        "masses": np.clip(age / 10, 1, None),
        "chances": np.clip(age / 150, 0.02, 0.98),
        "shard": np.repeat(np.arange(-(-rows // 10)), 10)[:rows].astype(float),
        "state": np.digitize(age, [45, 55]).astype(float),
    }


def cases(rows: int) -> dict[str, tuple[Process[Any], str | None]]:
    n = round(0.3 * rows)
    transitions = {"labels": ["0", "1", "2"], "matrix": MATRIX}
    return {
        "iid": (processes.build("iid", size=n), None),
        "weighted": (processes.build("weighted", column="masses", size=n), "masses"),
        "random_shard": (processes.build("random_shard", fraction=0.3), None),
        "poisson": (processes.build("poisson", column="chances"), "chances"),
        "whole_shards": (processes.build("whole_shards", column="shard", count=max(1, n // 10)), "shard"),
        "markov": (processes.build("markov", column="state", steps=n, transitions=transitions), "state"),
    }


def plain_loop(
    kind: str, process: Process[Any], frame: Frame, g: Array, gains: Gains, draws: int, rng: np.random.Generator
) -> float:
    """Mean (θ₁ − θ₂)² over draws, one at a time, without noise."""
    rows, column, q = frame.rows, frame.column, frame.queries[:, 0]
    weights = np.linalg.solve(gains.law.variance, gains.law.cross.T)[:, 0]
    first, second, truth = np.empty((3, draws))
    members = [np.flatnonzero(column == s) for s in np.unique(column)] if kind in ("whole_shards", "markov") else []
    chain, stationary = np.array(MATRIX), np.linalg.matrix_power(np.array(MATRIX), 200)[0]
    for draw in range(draws):
        w, scale = None, 1.0
        if kind == "iid":
            held = rng.integers(rows, size=process.size)
        elif kind == "weighted":
            held = rng.choice(rows, process.size, p=column / column.sum())
            w = 1 / column[held]
        elif kind == "random_shard":
            held = rng.choice(rows, process.drawn(rows), replace=False)
        elif kind == "poisson":
            held = np.flatnonzero(rng.random(rows) < column)
            w = 1 / column[held]
        elif kind == "whole_shards":
            held = np.concatenate([members[s] for s in rng.choice(len(members), process.count, replace=False)])
        else:
            state, seen = rng.choice(3, p=stationary), []
            for step in range(process.steps):
                state = state if step == 0 else rng.choice(3, p=chain[state])
                seen.append(members[state][rng.integers(len(members[state]))])
            held = np.array(seen)
            w = np.array([len(m) for m in members])[column[held].astype(int)] / stationary[column[held].astype(int)]
        if kind in ("random_shard", "poisson", "whole_shards"):
            scale = rows / (rows - len(held))
        estimate = q[held].mean() if w is None else w @ q[held] / w.sum()
        mean = g[held].mean(axis=0) if w is None else w @ g[held] / w.sum()
        seen = q[held].sum() if scale > 1 else 0.0
        first[draw] = (rows * estimate - seen) / (rows - len(held)) if scale > 1 else estimate
        truth[draw] = (rows * q.mean() - seen) / (rows - len(held)) if scale > 1 else q.mean()
        second[draw] = first[draw] - scale * (mean @ weights)
    assert np.isfinite(np.mean((first - second) * (second - truth)))
    return float(np.mean((first - second) ** 2))


def seconds[T](call: Callable[[], T], repeats: int) -> tuple[float, T]:
    """Least CPU seconds of several calls, and what the last returned."""
    found = math.inf
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        found = min(found, time.process_time() - start)
    return found, result


def compare(kind: str, rows: int, columns: dict[str, Array], draws: int, loop_draws: int) -> None:
    process, column = cases(rows)[kind]
    release = releases.build("mean", columns=["age", "weight"])
    inputs = np.column_stack([columns[name] for name in release.inputs])
    codes = None if column is None else columns[column]
    frame = Frame(queries=columns["query"][:, None], inputs=inputs, column=codes)
    groups = Groups.of(f"{int(s):08d}" if kind == "whole_shards" else str(int(s)) for s in frame_codes(frame))
    fitted = release.fit(total_of([frame]))
    g = fitted.moments(inputs)
    gains = Gains(law=process.law(process.request(fitted, groups)(frame), groups), coordinates=fitted)

    def breach(draws: int = draws) -> Breaches:
        rng = breach_stream(1, process, rows, 0)
        return draw_breaches(frame, g, process, groups=groups, draws=draws, rng=rng)

    def attacked(noise: Noise) -> Simulation:
        return attack(breaches, gains, process, noise, rng=noise_stream(1, process, noise, rows, 0))

    breach(2)  # compiles
    quick, breaches = seconds(breach, 3)
    attacks, simulated = seconds(lambda: attacked(noises.build("none")), 3)
    further, _ = seconds(lambda: attacked(noises.build("calibrated", level=1.0)), 3)
    rng = np.random.default_rng(1)
    slow, looped = seconds(lambda: plain_loop(kind, process, frame, g, gains, loop_draws, rng), 1)
    each = (quick + attacks) / draws
    ratio, error = float(simulated.simulated_ratio[0]), float(simulated.simulated_ratio_error[0])
    print(
        f"{kind:13} {rows:7} rows: {1 / each:9.0f} draws a second, {slow / loop_draws / each:6.1f} times the loop's "
        f"{loop_draws / slow:8.0f}; simulated ÷ sharp {ratio:.3f} ± {error:.3f}, loop "
        f"{looped / float(gains.values(process, noises.build('none'), Measure()).sharp[0]):.3f}; a further noise "
        f"{further / (quick + attacks):.3f} of a simulation"
    )


def frame_codes(frame: Frame) -> Array:
    return np.zeros(1) if frame.column is None else frame.column


def run(rows: int, draws: int, loop_draws: int) -> None:
    columns = table(rows)
    for kind in cases(rows):
        compare(kind, rows, columns, draws, loop_draws)


def main(*, tiny: bool = False) -> None:
    if tiny:
        run(60, 50, 20)
        return
    run(1_500, 10_000, 400)
    run(200_000, 200, 20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a size that only shows that it runs")
    main(tiny=parser.parse_args().tiny)
