"""Quantities that do not apply to a cell: they alone are infeasible, the others are those of a sweep without them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from typer.testing import CliRunner

from predcube import storage
from predcube.pipeline import execution, working
from predcube.pipeline.bisection import search
from predcube.pipeline.cli import commands  # noqa: F401  (registers every command)
from predcube.pipeline.cli.app import app
from predcube.pipeline.costs import Costs
from predcube.pipeline.execution import Summary, execute
from predcube.pipeline.failures import BadInput
from predcube.pipeline.figures import draw
from predcube.pipeline.headlines import headlines
from predcube.pipeline.kinds import kind_of
from predcube.pipeline.opening import CELL_STATUSES, read_surfaces
from predcube.pipeline.outlook import as_data, as_text
from predcube.pipeline.planning import Plan, plan
from predcube.pipeline.queries import query
from predcube.pipeline.reporting import completeness, report
from predcube.pipeline.resuming import reconcile
from predcube.pipeline.shaping import blueprint
from predcube.pipeline.spec import load_spec, problems
from predcube.pipeline.tiles import Site
from predcube.storage import DONE, FAILED, INFEASIBLE, worst
from predcube.tasks import distributions, hypotheses, learners, trials
from predcube.tasks.problems import AUDITS, CODES, MIXED, QUANTITIES, Problem, applicable, inapplicable, infeasible

LEARNERS: list[dict[str, Any]] = [
    {"label": "stable", "kind": "stable", "gamma": 0.3},
    {"label": "erm", "kind": "erm"},
    {"label": "private", "kind": "private", "epsilon": 1.5, "alpha": 0.2, "chunks": 3, "subset_size": 3, "eta": 0.3},
    {"label": "lwy", "kind": "private_lwy", "epsilon": 0.9, "alpha": 0.3, "chunks": 2, "subset_size": 4},
    {"label": "net", "kind": "stable_net", "alpha": 0.2, "gamma": 0.3},
    {"label": "gibbs", "kind": "exponential", "epsilon": 0.5},
]
CLASSES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "thresholds", "points": 4}, {"kind": "threshold", "at": 2, "noise": 0.1}),
    ({"kind": "thresholds", "points": 12}, {"kind": "threshold", "at": 5, "noise": 0.2}),
    ({"kind": "thresholds"}, {"kind": "threshold", "at": 0.4, "noise": 0.1}),
    ({"kind": "cube", "points": 3}, {"kind": "lower_bound", "alpha": 0.1}),
    ({"kind": "boxes", "dimension": 2, "points": 2}, {"kind": "concept", "hypothesis": [0, 0, 0, 1], "noise": 0.1}),
]
SPEC: dict[str, Any] = {
    "name": "partial",
    "seed": 5,
    "trials": 4,
    "hypotheses": {"kind": "cube", "points": 3},
    "distribution": {"kind": "lower_bound", "alpha": 0.1},
    "measure": {"quantities": ["error", "net_failure", "swap_ratio", "expected_error"]},
    "sweep": {"n": [2, 12], "learner": [LEARNERS[0], LEARNERS[2], LEARNERS[3], LEARNERS[4]]},
}
"""n = 2 is too few for any of the learners; of the others each has its own quantities."""


def built(part: Mapping[str, Any], room: Any) -> Any:
    return room.build(part["kind"], **{k: v for k, v in part.items() if k not in ("kind", "label")})


def drawn(rng: np.random.Generator) -> Problem:
    h, law = CLASSES[rng.integers(len(CLASSES))]
    names = rng.choice(np.array(QUANTITIES), size=int(rng.integers(2, 7)), replace=False).tolist()
    return Problem(
        hypotheses=built(h, hypotheses),
        distribution=built(law, distributions),
        learner=built(LEARNERS[rng.integers(len(LEARNERS))], learners),
        n=int(rng.choice([2, 6, 9, 14])),
        quantities=tuple(sorted(names, key=QUANTITIES.index)),
        seed=int(rng.integers(9)),
        method=str(rng.choice(["auto", "auto", "enumerate", "mc"])),
        samples=16,
        neighbours=4,
        net_alpha=[None, 0.1][rng.integers(2)],
        delta_epsilon=(0.1, 1.0),
    )


def made(url: Path, spec: Mapping[str, Any], *, chunks: tuple[int, ...] | None = None, extend: bool = False) -> Plan:
    standing = reconcile(load_spec(spec), str(url), extend=extend)
    schema = standing.schema
    if schema is None and chunks is not None:
        schema = blueprint(standing.sweep, chunks, {})
    return plan(standing.sweep, workers=1, schema=schema, costs=Costs())


def fill(url: Path, spec: Mapping[str, Any] = SPEC, *, extend: bool = False, **options: Any) -> Summary:
    planned = made(url, spec, chunks=options.pop("chunks", None), extend=extend)
    return execute(planned, str(url), cluster="serial", extend=extend, **options)


def trials_of(url: Path) -> xr.Dataset:
    return storage.open_cube(str(url))["trials"].to_dataset(inherit=False)


def contents(url: Path) -> dict[str, bytes]:
    """Every array of /trials and /surfaces, axes ascending."""
    tree, found = storage.open_cube(str(url)), {}
    for group in ("trials", "surfaces"):
        data = tree[group].to_dataset(inherit=False).sortby(["n", "learner"])
        found |= {f"{group}/{name}": array.values.tobytes() for name, array in data.variables.items()}
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    url = tmp_path_factory.mktemp("partial") / "cube"
    summary = fill(url)
    assert (summary.status, summary.failed) == (0, 0)
    return url


# --- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_each_value_is_that_of_a_trial_that_measures_nothing_else(seed: int) -> None:
    """To the bit, and with the same reasons; a code is that of the least exact value that it goes with."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        problem = drawn(rng)
        without = inapplicable(problem)
        alone = {q: replace(problem, quantities=(q,)) for q in problem.quantities}
        assert {q: r for q, p in alone.items() if (r := infeasible(p)) is not None} == without
        assert (infeasible(problem) is None) == (len(without) < len(problem.quantities))
        if infeasible(problem) is not None:
            continue
        joint = trials.measure(applicable(problem), 3)
        single = {q: trials.measure(p, 3) for q, p in alone.items() if q not in without}
        for q, found in single.items():
            assert np.array_equal(joint[q], found[q]), (problem, q)
        for code in CODES.keys() & joint.keys():
            values = {q: found[code] for q, found in single.items() if code in found}
            if code == "mixture_method":
                first = next((q for group in (MIXED, AUDITS) for q in values if q in group), None)
                assert joint[code] == (CODES[code]["analytic"] if first is None else values[first])
            else:
                assert joint[code] == max(values.values())


def test_sets_are_gone_through_or_drawn_for_each_lemma_apart() -> None:
    """Of 9 records all sets can be gone through, of the 12 points that a fixed subset is of they cannot."""
    h, law = CLASSES[1]
    problem = Problem(
        hypotheses=built(h, hypotheses),
        distribution=built(law, distributions),
        learner=built(LEARNERS[2], learners),
        n=9,
        quantities=("swap_ratio", "subset_ratio"),
        seed=1,
        neighbours=4,
    )
    joint = trials.measure(problem, 0)
    found = {q: trials.measure(replace(problem, quantities=(q,)), 0) for q in problem.quantities}
    assert [found[q]["lemma_sets"] for q in problem.quantities] == [1, 2]
    assert joint == {"lemma_sets": 2.0, **{q: found[q][q] for q in problem.quantities}}


@pytest.mark.parametrize("seed", range(2))
def test_the_union_of_sweeps_of_single_quantities_is_the_joint_sweep(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(100 + seed)
    h, law = CLASSES[(0, 3)[seed]]
    chosen = [LEARNERS[i] for i in rng.choice(len(LEARNERS), size=3, replace=False)]
    options = {"samples": 16, "neighbours": 4, "net_alpha": 0.1}
    base = {"seed": seed, "trials": 2, "hypotheses": h, "distribution": law, "sweep": {"n": [4, 9], "learner": chosen}}
    usable = []
    for q in (q for q in QUANTITIES if q != "delta"):
        spec = {**base, "measure": {"quantities": [q], **options}}
        if found := problems(spec):
            assert all("infeasible" in m.message for m in found)
            continue
        usable.append(q)
    asked = rng.choice(np.array(usable), size=min(4, len(usable)), replace=False).tolist()
    fill(tmp_path / "joint", {**base, "measure": {"quantities": asked, **options}}, chunks=(2, 3, 1))
    joint = trials_of(tmp_path / "joint")
    statuses = []
    for q in asked:
        fill(tmp_path / q, {**base, "measure": {"quantities": [q], **options}}, chunks=(2, 3, 2))
        alone = trials_of(tmp_path / q)
        assert joint[q].values.tobytes() == alone[q].values.tobytes()
        assert np.array_equal(joint[f"{q}_status"], alone[f"{q}_status"])
        pair = [read_surfaces(str(tmp_path / name)) for name in ("joint", q)]
        for end in ("", "_lower", "_upper", "_count"):
            assert pair[0][q + end].values.tobytes() == pair[1][q + end].values.tobytes()
        statuses.append(alone["status"].values)
    assert np.array_equal(joint["status"].values, worst(*statuses))


# --- one sweep, looked at from every side -----------------------------------------------------------------------------

APPLIES = {"error": {"stable", "private", "lwy", "net"}, "net_failure": {"private"}, "swap_ratio": {"private", "lwy"}}
APPLIES["expected_error"] = {"stable", "private", "lwy"}


def test_only_what_does_not_apply_is_infeasible(store: Path) -> None:
    data = trials_of(store)
    for q, having in APPLIES.items():
        for label in data["learner"].values.tolist():
            at = data.sel(learner=label, n=12)
            assert set(at[f"{q}_status"].values.tolist()) == {DONE if label in having else INFEASIBLE}
            assert np.isfinite(at[q].values).all() == (label in having)
    assert (data["status"].values == worst(*(data[f"{q}_status"].values for q in APPLIES))).all()
    assert set(data["status"].sel(n=12, learner="private").values.tolist()) == {DONE}
    assert set(data["lemma_sets"].sel(n=12, learner="stable").values.tolist()) == {0}


def test_surfaces_say_it_of_each_quantity_and_only_where_it_is_needed(store: Path, tmp_path: Path) -> None:
    data = read_surfaces(str(store))
    words = {q: np.array(CELL_STATUSES)[data[f"{q}_status"].sel(n=12).values].tolist() for q in APPLIES}
    for q, having in APPLIES.items():
        assert words[q] == ["done" if label in having else "infeasible" for label in data["learner"].values.tolist()]
    # As many trials as there are lack something: all learners but private, at the n at which they run.
    assert data.attrs["trials_partly"] == 3 * 4
    assert data.attrs["trials_done"] + data.attrs["trials_infeasible"] == 2 * 4 * 4
    assert (data.attrs["trials_failed"], data.attrs["trials_missing"]) == (0, 0)
    assert "of them without quantities that do not apply there" in completeness(data)
    plain = {**SPEC, "measure": {"quantities": ["error"]}}
    fill(tmp_path / "plain", plain)
    alone = read_surfaces(str(tmp_path / "plain"))
    assert "error_status" not in alone
    assert "trials_partly" not in alone.attrs
    assert alone["error"].values.tobytes() == data["error"].values.tobytes()


def test_a_plan_names_the_quantity_and_the_reason(tmp_path: Path) -> None:
    planned = made(tmp_path / "none", SPEC)
    found = as_data(planned)
    cells = {(c["learner"], c["n"]): c for c in found["grid"]}
    assert list(cells["stable", 12]["quantities_infeasible"]) == ["net_failure", "swap_ratio"]
    assert "nets of the learner private" in cells["stable", 12]["quantities_infeasible"]["net_failure"]
    assert cells["stable", 12]["infeasible"] is None
    assert cells["stable", 12]["method"]
    assert cells["private", 12]["quantities_infeasible"] == {}
    assert cells["net", 2]["infeasible"] == "n' = ⌊0.3·2⌋ = 0 is below 1: raise n to 4 or more"
    assert found["partly_infeasible_cells"] == 3
    console = Console(width=200)
    with console.capture() as said:
        console.print(as_text(planned))
    assert "3 of 8 cells lack quantities that do not apply there" in said.get()
    assert "1: net_failure is of nets of the learner private, not of stable_net" in said.get()


def test_a_query_shows_what_is_done(store: Path) -> None:
    rows = query(str(store), at={"n": 12}).to_pylist()
    by = {r["learner"]: r for r in rows}
    assert by["stable"]["status"] == "infeasible"
    assert by["stable"]["error"] is not None
    assert by["stable"]["net_failure"] is None
    assert by["private"]["status"] == "done"
    every = query(str(store), at={"n": 12}, select=["*"]).to_pylist()
    assert {r["learner"]: r["net_failure_status"] for r in every}["lwy"] == "infeasible"
    done = query(str(store), where="error_status = 'done'", select=["error"])
    assert done.num_rows == int((read_surfaces(str(store))["error_status"].values == DONE).sum())
    ran = CliRunner().invoke(app, ["query", str(store)])
    assert ran.exit_code == 0
    assert "12 trials are infeasible in part" in ran.stderr


def test_an_inverse_look_up_is_infeasible_by_its_own_quantity_alone(store: Path) -> None:
    def answers(condition: str) -> dict[str, str]:
        found = query(str(store), smallest="n", such_that=condition).to_pylist()
        return {r["learner"]: r["status"] for r in found}

    assert answers("error <= 1") == dict.fromkeys(APPLIES["error"], "reached")
    assert answers("net_failure <= 1") == {
        label: "reached" if label in APPLIES["net_failure"] else "infeasible" for label in APPLIES["error"]
    }


def test_targets_do_not_mind_what_else_was_asked_for(tmp_path: Path) -> None:
    measure = {**SPEC["measure"], "targets": {"error": 0.9, "confidence": 0.2}}
    fill(tmp_path / "cube", {**SPEC, "measure": measure})
    data = read_surfaces(str(tmp_path / "cube"))
    assert data["smallest_n"].values.tolist() == [12.0] * 4
    answer = query(str(tmp_path / "cube"), smallest="n").to_pylist()
    assert {r["status"] for r in answer} == {"reached"}
    assert all("no smaller n was looked at" in r["note"] for r in answer)
    (head,) = headlines(data)
    assert all(v is not None for v in head.rows["error"].to_pylist())
    measure = {**SPEC["measure"], "targets": {"expected_error": 0.9}}
    fill(tmp_path / "closed", {**SPEC, "measure": measure})
    answer = query(str(tmp_path / "closed"), smallest="n").to_pylist()
    assert {r["learner"]: r["status"] for r in answer}["net"] == "infeasible"
    search({**SPEC, "measure": measure}, tmp_path / "searched", cluster="serial")
    assert query(str(tmp_path / "searched"), smallest="n").column("smallest_n").to_pylist() == [
        r["smallest_n"] for r in answer
    ]
    sweep = {"n": [12, 13, 14, 15, 16, 17], "learner": [LEARNERS[0], LEARNERS[2]]}
    measure = {"quantities": ["error", "net_failure"], "targets": {"error": 0.9, "confidence": 0.2}}
    summary = search({**SPEC, "sweep": sweep, "measure": measure}, tmp_path / "few", cluster="serial")
    assert summary.computed < summary.tiles / 2


def test_a_report_shows_the_numbers_and_the_reasons(store: Path) -> None:
    data = read_surfaces(str(store))
    found = kind_of(load_spec(SPEC)).reasons(load_spec(SPEC), data, str(store))
    cells = {r.reason: r.cells for r in found}
    assert sum("net_failure is of nets" in reason and n == 1 for reason, n in cells.items()) == 3
    assert cells["expected_error: stable_net has no closed form of its expected error; ask for error"] == 1
    page = report(str(store))
    assert "without quantities that do not apply there" in page
    assert "net_failure is of nets of the learner private, not of stable" in page
    figure = draw(data, x="n", y="net_failure", hue="learner")
    assert "infeasible" in [t.get_text() for legend in figure.legends for t in legend.get_texts()]


def test_a_family_without_a_value_keeps_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{int(a + b > 0.2)}" for a, b in rng.normal(size=(200, 2))]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows]))
    spec: dict[str, Any] = {
        "kind": "predictability",
        "trials": 2,
        "table": {"path": "t.csv"},
        "query": {"one": "b = 1", "high": "a > 1"},
        "release": {"kind": "mean", "columns": ["a"]},
        "process": {"kind": "random_shard", "fraction": 0.3},
        "measure": {"quantities": ["sharp", "family_gain", "family_bound"], "draws": 20},
        "sweep": {"measure.family": ["finite", "l1"]},
    }
    grid = as_data(plan(load_spec(spec), costs=Costs()))["grid"]
    assert [list(c["quantities_infeasible"]) for c in grid] == [[], ["family_gain"]]
    fill(tmp_path / "s", spec)
    (axis,) = load_spec(spec).axes
    data = trials_of(tmp_path / "s")
    assert data["family_gain_status"].values.tolist() == [[DONE] * 2, [INFEASIBLE] * 2]
    assert (data["family_bound_status"].values == DONE).all()
    assert (data["sharp_status"].values == DONE).all()
    (reason,) = kind_of(load_spec(spec)).reasons(load_spec(spec), read_surfaces(str(tmp_path / "s")), "s")
    assert (reason.cells, reason.example) == (1, f"{axis.name} = l1")
    only = {**spec, "measure": {**spec["measure"], "quantities": ["sharp", "family_gain"], "family": "l1"}, "sweep": {}}
    with pytest.raises(BadInput, match="family_gain applies to no cell; leave it out: an L1 ball"):
        plan(load_spec(only), costs=Costs())


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_quantity_that_no_cell_has_is_refused_by_name() -> None:
    sweep = {"n": [12], "learner": [LEARNERS[0], LEARNERS[1]]}
    (found,) = problems({**SPEC, "sweep": sweep, "measure": {"quantities": ["error", "net_failure"]}})
    assert found.path == "measure.quantities"
    assert "net_failure applies to no cell; leave it out: net_failure is of nets" in found.message
    (found,) = problems({**SPEC, "sweep": sweep, "measure": {"quantities": ["net_failure"]}})
    assert "all 2 cells are infeasible" in found.message


def test_a_section_that_does_not_build_is_told_beside_words_that_are_wrong() -> None:
    broken = {"kind": "stable", "gamma": 0.3, "subset_size": 3, "subset_fraction": 0.5}
    base = {**SPEC, "n": 12, "trials": 0, "sweep": {}}
    alone = problems({**base, "trials": 4, "learner": broken})
    assert [m.path for m in alone] == ["learner"]
    both = problems({**base, "learner": broken})
    assert [m.path for m in both] == ["trials", "learner"]
    assert alone[0] in both
    swept = problems({**base, "sweep": {"learner": [{"label": "b", **broken}, LEARNERS[1]]}})
    assert [m.path for m in swept] == ["trials", "sweep.learner[0]"]
    with_axis = problems({**base, "learner": broken, "sweep": {"learner.gamma": [0.1, 0.2]}})
    assert [m.path for m in with_axis] == ["trials"]


@pytest.mark.parametrize("label", ["a\x1b[31mred", "two\nlines", "\x7f", "a\u2028b"])
def test_a_label_that_a_terminal_would_obey_is_refused(label: str) -> None:
    (found,) = problems({**SPEC, "sweep": {"n": [12], "learner": [{**LEARNERS[0], "label": label}]}})
    assert found.path == "sweep.learner[0].label"
    assert "has control characters" in found.message
    assert found.message.isprintable()


# --- failures, resuming, growing --------------------------------------------------------------------------------------


def test_a_trial_that_fails_fails_in_what_applies_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = trials.prepare

    def breaking(problem: Problem, trial: int) -> Any:
        if trial == 1 and problem.learner.kind == "stable":
            raise RuntimeError("broken here")
        return prepare(problem, trial)

    with monkeypatch.context() as patch:
        patch.setattr(trials, "prepare", breaking)
        summary = fill(tmp_path / "cube", chunks=(1, 1, 4))
    assert (summary.failed, summary.trials_failed) == (1, 1)
    at = trials_of(tmp_path / "cube").sel(n=12, learner="stable", trial=1)
    assert {q: int(at[f"{q}_status"]) for q in APPLIES} == {
        "error": FAILED,
        "expected_error": FAILED,
        "net_failure": INFEASIBLE,
        "swap_ratio": INFEASIBLE,
    }
    data = read_surfaces(str(tmp_path / "cube")).sel(n=12, learner="stable")
    assert CELL_STATUSES[int(data["status"])] == "failed"
    assert CELL_STATUSES[int(data["swap_ratio_status"])] == "infeasible"
    assert float(data["error_count"]) == 3
    answers = query(str(tmp_path / "cube"), smallest="n", such_that="swap_ratio <= 1000").to_pylist()
    assert {r["learner"]: r["status"] for r in answers}["stable"] == "infeasible"
    assert fill(tmp_path / "cube", retry_failed=True).failed == 0
    fill(tmp_path / "whole")
    assert contents(tmp_path / "cube") == contents(tmp_path / "whole")


def test_a_tile_that_is_given_up_fails_in_what_applies_alone(tmp_path: Path) -> None:
    planned = made(tmp_path / "cube", SPEC, chunks=(1, 1, 4))
    execution._make(planned, str(tmp_path / "cube"), extend=False)
    site = Site(url=str(tmp_path / "cube"), generation=storage.generation(str(tmp_path / "cube")), directory=".")
    receipts = [working.give_up(site, working.Tile(key=key), "lost") for key in ((0, 0, 0), (1, 0, 0))]
    assert [r.failed for r in receipts] == [0, 4]
    at = trials_of(tmp_path / "cube").sel(n=12, learner="stable")
    assert set(at["error_status"].values.tolist()) == {FAILED}
    assert set(at["net_failure_status"].values.tolist()) == {INFEASIBLE}


def test_cells_resume_and_grow_to_the_same_bytes(store: Path, tmp_path: Path) -> None:
    first = {**SPEC, "sweep": {"n": [12], "learner": [LEARNERS[2], LEARNERS[0]]}}
    fill(tmp_path / "grown", first, chunks=(1, 1, 2))
    assert "net_failure_status" in read_surfaces(str(tmp_path / "grown"))
    fill(tmp_path / "grown", extend=True)
    assert contents(tmp_path / "grown") == contents(store)
    planned = made(tmp_path / "resumed", SPEC, chunks=(1, 1, 2))
    half = iter([[(1, 0, 0), (1, 1, 1)]])
    execute(planned, str(tmp_path / "resumed"), cluster="serial", choose=lambda: next(half, []))
    fill(tmp_path / "resumed")
    assert contents(tmp_path / "resumed") == contents(store)
    ran = CliRunner().invoke(app, ["status", str(tmp_path / "resumed"), "--json"])
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["failed"] == 0
