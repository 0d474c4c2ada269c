"""A small store with made-up trials, for the tests of what is read from stores."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from predcube import storage
from predcube.pipeline.reduction import reduce_surfaces
from predcube.pipeline.shaping import blueprint
from predcube.pipeline.spec import load_spec

SPEC = """
name   = "made <b>up</b>"
seed   = 7
trials = 24

[hypotheses]
kind   = "thresholds"
points = 5

[distribution]
kind  = "threshold"
at    = 2
noise = 0.1

[learner]
kind = "stable"

[measure]
quantities = ["excess_error", "stability", "privacy_loss", "bounds"]
targets    = { excess_error = 0.1, confidence = 0.7 }

[sweep]
n = [20, 40, 80, 160]
"learner.gamma" = [0.04, 0.1, 0.2]
"distribution.noise" = [0.0, 0.1]
"""

LABELLED = """
name = "labels"
trials = 4

[hypotheses]
kind = "thresholds"
points = 5

[distribution]
kind = "threshold"
at = 2

[measure]
quantities = ["error"]

[sweep]
n = [10, 20]

[[sweep.learner]]
label = "[red]stable[/red] <b>"
kind = "stable"
gamma = 0.2

[[sweep.learner]]
label = "erm"
kind = "erm"
"""

type Make = Callable[..., str]


def made_trials(axes: Mapping[str, NDArray[Any]], trials: int, seed: int = 3) -> dict[str, NDArray[Any]]:
    """Excess error ~ (0.4 + noise)/(nγ), stability ~ γ, privacy loss infinite in one trial of the last γ; n' < 1 is
    infeasible."""
    rng = np.random.default_rng(seed)
    n, gamma, noise = (a[..., None] for a in np.meshgrid(axes["n"], axes["gamma"], axes["noise"], indexing="ij"))
    shape = (*n.shape[:-1], trials)
    arrays: dict[str, NDArray[Any]] = {
        "excess_error": np.minimum((0.4 + noise) / (n * gamma) * rng.gamma(8, 1 / 8, shape), 1.0),
        "stability": gamma * rng.uniform(0.2, 0.6, shape),
        "privacy_loss": 3 * gamma * rng.uniform(0.5, 1, shape),
        "status": np.broadcast_to(np.where(np.floor(n * gamma + 1e-9) < 1, 3, 1), shape).astype(np.uint8),
    }
    arrays["privacy_loss"][:, 2, :, 5] = np.inf
    return arrays


def build(
    url: str,
    folder: Path,
    *,
    spec: str = SPEC,
    trials: Callable[[Mapping[str, NDArray[Any]], int], dict[str, NDArray[Any]]] = made_trials,
    change: Callable[[dict[str, NDArray[Any]]], None] = lambda arrays: None,
    skip: Callable[[tuple[int, ...]], bool] = lambda key: False,
    reduce: bool = True,
    create: bool = True,
) -> str:
    """Make a store of ``spec`` (its text lies in ``folder``), fill the tiles that ``skip(key)`` does not leave out with
    what ``change(arrays)`` made of the trials, and reduce it unless told not to. Returns the URL."""
    file = folder / "spec.toml"
    file.write_text(spec)
    sweep = load_spec(file)
    lengths = [1 if a.path == "n" or a.sections is not None else len(a.values) for a in sweep.axes]
    schema = blueprint(sweep, [*lengths, sweep.trials // 2], {"predcube": "0"})
    if create:
        storage.create(url, schema)
    arrays = trials({a.name: a.values for a in schema.axes}, sweep.trials)
    change(arrays)
    status = arrays["status"]
    for variable in schema.variables:
        if variable.name.endswith("_status"):
            arrays[variable.name] = status
        elif variable.dtype == "uint8":
            arrays.setdefault(variable.name, (status == storage.DONE).astype(np.uint8))
        else:
            arrays[variable.name] = np.where(status == storage.DONE, arrays[variable.name], np.nan)
    tiles = [key for key in schema.keys() if not skip(key)]  # noqa: SIM118 (a schema is no mapping)
    for key in tiles:
        place = schema.region(key)
        failed = int((status[place] == storage.FAILED).sum())
        storage.write_tile(
            url,
            key,
            coordinates={a.name: a.values[s] for a, s in zip(schema.axes, place, strict=True)},
            arrays={v.name: np.ascontiguousarray(arrays[v.name][place]) for v in schema.variables},
            receipt=storage.Receipt(cpu_seconds=1.5, wall_seconds=2.0, worker="<i>worker</i>", failed=failed),
            error="ValueError: <script>alert(1)</script>" if failed else None,
        )
    if reduce:
        reduce_surfaces(url)
    return url


@pytest.fixture
def make_store(tmp_path: Path) -> Make:
    """``build`` in a folder of the test's own; ``name`` tells several apart."""

    def make(*, name: str = "made.zarr", **options: Any) -> str:
        return build(str(tmp_path / name), tmp_path, **options)

    return make


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a whole store, to be read only."""
    folder = tmp_path_factory.mktemp("store")
    return build(str(folder / "made.zarr"), folder)


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a store whose learners are an axis of labels; one of them fails in one trial."""

    def trials(axes: Mapping[str, NDArray[Any]], trials: int) -> dict[str, NDArray[Any]]:
        rng = np.random.default_rng(1)
        shape = (len(axes["n"]), len(axes["learner"]), trials)
        status = np.ones(shape, dtype=np.uint8)
        status[1, 1, 2] = storage.FAILED
        return {"error": rng.uniform(0.1, 0.3, shape), "status": status}

    folder = tmp_path_factory.mktemp("labelled")
    return build(str(folder / "made.zarr"), folder, spec=LABELLED, trials=trials)
