"""A sweep over every learner there is, from its spec to its surfaces."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from predcube.pipeline.cli.listing import describe
from predcube.pipeline.costs import Costs
from predcube.pipeline.execution import execute
from predcube.pipeline.planning import plan
from predcube.pipeline.reduction import reduce_surfaces
from predcube.pipeline.spec import load_spec
from predcube.storage import open_cube
from predcube.tasks import learners

SECTIONS: list[dict[str, Any]] = [
    {"kind": "stable", "gamma": 0.4},
    {"kind": "stable_net", "gamma": 0.4, "alpha": 0.5},
    {"kind": "stable_flip", "epsilon": 1.0, "alpha": 0.4},
    {"kind": "private", "epsilon": 0.9, "alpha": 0.2, "eta": 0.2, "chunks": 3, "subset_size": 2},
    {"kind": "private_lwy", "epsilon": 0.25, "alpha": 0.2, "chunks": 2},
    {"kind": "df_realizable", "epsilon": 1.0, "alpha": 0.2, "chunks": 3},
    {"kind": "df_agnostic", "epsilon": 1.0, "chunks": 3},
    {"kind": "df_thresholds", "epsilon": 1.0, "alpha": 0.1},
    {"kind": "subsample_average", "chunks": 3},
    {"kind": "subsample", "inner": {"kind": "df_agnostic", "epsilon": 1.0, "chunks": 2}, "subset_size": 3},
    {"kind": "exponential", "epsilon": 1.0},
    {"kind": "erm"},
    {"kind": "two_point"},
]


def test_every_learner_runs_from_spec_to_surfaces(tmp_path: Path) -> None:
    assert {s["kind"] for s in SECTIONS} == learners.KINDS.keys()
    spec = {
        "name": "every learner",
        "trials": 2,
        "n": 9,
        "hypotheses": {"kind": "thresholds", "points": 2},
        "distribution": {"kind": "threshold", "at": 1, "noise": 0.1},
        "measure": {"quantities": ["excess_error", "stability", "privacy_loss"]},
        "sweep": {"learner": [{"label": s["kind"], **s} for s in SECTIONS]},
    }
    planned = plan(load_spec(spec), workers=1, costs=Costs())
    url = str(tmp_path / "cube")
    execute(planned, url, cluster="serial", workers=1, extend=False)
    reduce_surfaces(url)
    found = open_cube(url)["surfaces"].to_dataset().load().sel(learner=[s["kind"] for s in SECTIONS])
    runs = np.array([s["kind"] != "two_point" for s in SECTIONS])  # thresholds are no pair
    for quantity in ("stability", "privacy_loss"):
        measured, promised = found[f"{quantity}_maximum"].values, found[f"bound_{quantity}"].values
        assert (measured[runs] <= promised[runs] + 1e-12).all()
        assert np.isnan(measured[~runs]).all()
        # measured ÷ guaranteed wherever something finite is guaranteed: for every learner's stability, at least.
        finite = np.isfinite(promised)
        assert (finite == runs).all() or quantity == "privacy_loss"
        np.testing.assert_array_equal(found[f"ratio_{quantity}"].values[finite], measured[finite] / promised[finite])
        assert np.isnan(found[f"ratio_{quantity}"].values[~finite]).all()
    assert np.isfinite(found["excess_error"].values[runs]).all()


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section["kind"])
def test_declared_once(section: dict[str, Any]) -> None:
    kind = section["kind"]
    (entry,) = [d for d in describe(learners.KINDS) if d["kind"] == kind]
    assert entry["source"]
    assert entry["description"]
    assert {p["name"] for p in entry["parameters"]} >= section.keys() - {"kind"}
    built = learners.build(**section)
    assert built.parameters().keys() == {p["name"] for p in entry["parameters"]}
