"""Lemmas in a sweep: their quantities, the bounds and ratios beside them, and the smallest n that holds a supremum."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from predcube import storage
from predcube.pipeline.costs import Costs
from predcube.pipeline.execution import execute
from predcube.pipeline.opening import read_surfaces
from predcube.pipeline.planning import plan
from predcube.pipeline.queries import query
from predcube.pipeline.spec import load_spec, problems
from predcube.tasks.bounds import uniform_deviation_bound

SPEC: dict[str, Any] = {
    "seed": 2,
    "trials": 5,
    "hypotheses": {"kind": "thresholds", "points": 4},
    "distribution": {"kind": "threshold", "at": 2, "noise": 0.1},
}


def surfaces(url: Path, **parts: Any) -> xr.Dataset:
    planned = plan(load_spec({**SPEC, **parts}), workers=1, costs=Costs())
    assert execute(planned, str(url), cluster="serial").failed == 0
    return read_surfaces(str(url))


def test_the_main_learners_lemmas_beside_its_measured_loss(tmp_path: Path) -> None:
    names = [
        "swap_ratio",
        "swap_ratio_elsewhere",
        "subset_ratio",
        "net_failure",
        "swapped_privacy_loss",
        "privacy_loss",
    ]
    data = surfaces(
        tmp_path / "private.zarr",
        learner={"kind": "private", "epsilon": 2.0, "alpha": 0.2, "chunks": 3, "subset_size": 3},
        measure={"quantities": names},
        sweep={"n": [8, 16], "learner.eta": [0.2, 0.4]},
    )
    for n in (8, 16):
        for eta in (0.2, 0.4):
            cell = data.sel(n=n, eta=eta)
            assert float(cell["bound_swap_ratio"]) == pytest.approx(4 * math.exp(6))
            assert float(cell["bound_subset_ratio"]) == pytest.approx(math.exp(3 / (eta * n)))
            assert float(cell["bound_net_failure"]) == pytest.approx(3 / n)
            for q in ("swap_ratio", "subset_ratio", "net_failure"):
                ratio = float(cell[f"{q}_maximum"]) / float(cell[f"bound_{q}"])
                assert float(cell[f"ratio_{q}"]) == pytest.approx(ratio, rel=1e-12)
                assert ratio <= 1 + 1e-12
    assert "bound_swap_ratio_elsewhere" not in data
    assert "swapped_privacy_loss_infinite" in data
    trials = storage.open_cube(str(tmp_path / "private.zarr"))["trials"].to_dataset()
    assert (trials["privacy_loss"] <= trials["swapped_privacy_loss"]).all()
    assert (trials["lemma_sets"] == 1).all()
    assert trials["lemma_sets"].attrs["flag_meanings"] == "missing all drawn"


def test_the_smallest_n_that_holds_uniform_convergence_and_the_relabelling_error(tmp_path: Path) -> None:
    data = surfaces(
        tmp_path / "uniform.zarr",
        trials=40,
        learner={"kind": "df_realizable", "epsilon": 4.0, "alpha": 0.2, "chunks": 5},
        measure={
            "quantities": ["uniform_deviation", "relabelling_error"],
            "targets": {"uniform_deviation": 0.12, "relabelling_error": 0.12, "confidence": 0.8},
        },
        sweep={"n": [10, 40, 160, 640]},
    )
    assert str(data["smallest_n"].attrs["goal"]).count("Pr[") == 2
    smallest = int(data["smallest_n"])
    assert smallest in (40, 160, 640)
    met = (data["uniform_deviation_reached"] >= 0.8) & (data["relabelling_error_reached"] >= 0.8)
    assert smallest == int(data["n"].values[met.values.argmax()])
    bound = data["bound_uniform_deviation"]
    for n in (10, 640):
        assert float(bound.sel(n=n)) == pytest.approx(uniform_deviation_bound(n, 0.2, math.log(5), math.log(5)))
    trials = storage.open_cube(str(tmp_path / "uniform.zarr"))["trials"].to_dataset()
    assert ((trials["uniform_deviation"] <= bound).mean("trial") >= 0.8).all()
    assert "ratio_uniform_deviation" not in data
    assert (trials["supremum"] == 1).all()
    rows = query(str(tmp_path / "uniform.zarr"), smallest="n", such_that="uniform_deviation <= 0.1").to_pylist()
    assert rows[0]["status"] == "reached"


def test_amplification_beside_the_exact_formula_and_the_papers(tmp_path: Path) -> None:
    inner = {"kind": "exponential", "epsilon": 0.8}
    data = surfaces(
        tmp_path / "amplified.zarr",
        measure={"quantities": ["privacy_loss", "stability", "bounds"]},
        sweep={
            "n": [8],
            "learner": [
                {"label": "2 of 8", "kind": "subsample", "inner": inner, "subset_size": 2},
                {"label": "all", "kind": "subsample", "inner": inner, "subset_size": 8},
                {"label": "strong", "kind": "subsample", "inner": inner | {"epsilon": 1.5}, "subset_size": 2},
                {"label": "stable", "kind": "stable", "gamma": 0.25},
            ],
        },
    ).isel(n=0)
    exact, literal = data["bound_privacy_loss"], data["bound_privacy_loss_paper"]
    assert float(exact.sel(learner="2 of 8")) == pytest.approx(math.log(1 + 0.25 * (math.exp(0.8) - 1)))
    assert float(literal.sel(learner="2 of 8")) == pytest.approx(2 * 0.8 * 0.25)
    assert float(exact.sel(learner="all")) == pytest.approx(0.8)
    assert float(literal.sel(learner="all")) == pytest.approx(1.6)
    assert np.isnan(literal.sel(learner=["strong", "stable"])).all()
    assert float(data["bound_stability_paper"].sel(learner="stable")) == pytest.approx(2 / 8 + 2 * 0.25)
    assert np.isnan(data["bound_stability_paper"].sel(learner="all"))
    amplified = data.sel(learner="2 of 8")
    assert 0 < float(amplified["ratio_privacy_loss_paper"]) < float(amplified["ratio_privacy_loss"]) <= 1 + 1e-12
    assert float(data["privacy_loss_maximum"].sel(learner="2 of 8")) < float(
        data["privacy_loss_maximum"].sel(learner="all")
    )


def test_a_lemma_without_a_bound_in_any_cell_has_no_surface_of_nothing(tmp_path: Path) -> None:
    data = surfaces(
        tmp_path / "plain.zarr",
        learner={"kind": "stable", "gamma": 0.3},
        measure={"quantities": ["subset_ratio"]},
        sweep={"n": [10]},
    )
    assert float(data["bound_subset_ratio"].isel(n=0)) == pytest.approx(math.exp(0.3))
    assert not [n for n in data.data_vars if str(n).endswith("_paper")]


def test_where_no_cell_has_the_lemma_the_spec_is_refused_with_the_reason() -> None:
    found = problems({**SPEC, "n": 10, "learner": {"kind": "erm"}, "measure": {"quantities": ["swap_ratio", "error"]}})
    assert any("swap_ratio is of learners that vote" in m.message for m in found)
