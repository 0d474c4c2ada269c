"""``predcube predictability`` on small tables, against the science called directly, brute force, and values by hand."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from predcube import tasks
from predcube.pipeline import disclosures
from predcube.pipeline.cli import commands  # noqa: F401  (registers the command)
from predcube.pipeline.cli.app import app
from predcube.pipeline.failures import BadInput, Interrupted
from predcube.pipeline.spec.inline import inline
from predcube.tasks import processes, releases

SHARD = ("--process", "random_shard:fraction=0.3")
MEANS = ("--release", "mean:columns=a,b")
PLAIN: dict[str, Any] = {
    "release": {"kind": "mean", "columns": ["a", "b"]},
    "process": {"kind": "random_shard", "fraction": 0.3},
}
RIDGE = {"kind": "linear", "target": "a", "features": ["b"], "l2": 0.5}
LAPLACE = {"kind": "laplace", "epsilon": 0.5, "sensitivity": 1}
SHARDS = {"kind": "whole_shards", "column": "s", "count": 4}
VALUES = ("p", "rho2", "gain", "r", "sharp", "correlated", "cauchy_schwarz", "paper", "s1")


def columns(rows: int = 200, seed: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-50, 50, (2, rows)).astype(float)
    return {
        "q": (a + rng.normal(0, 30, rows) > 0).astype(float),
        "a": a,
        "b": b,
        "s": [f"s{i}" for i in rng.integers(0, 12, rows)],
        "state": np.where(b > 0, "x", "y"),
        "gap": pa.array(b, mask=np.arange(rows) < 20),
        "one": np.ones(rows),
        "minus": -np.ones(rows),
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("table") / "people.parquet"
    parquet.write_table(pa.table(columns()), path)
    return str(path)


def asked(table: str, *options: str) -> Result:
    return CliRunner(env={"COLUMNS": "220"}).invoke(app, ["predictability", table, *options])


def text(table: str, *options: str) -> str:
    result = asked(table, *options)
    assert result.exit_code == 0, result.exception
    return result.stdout


def data(table: str, *options: str) -> dict[str, Any]:
    result = asked(table, *options, "--format", "json")
    assert result.exit_code == 0, result.exception
    found: dict[str, Any] = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))
    return found


@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), {"release": {"kind": "mean", "columns": ["a", "b"]}}),
        (("--release", "linear:target=a,features=b,l2=0.5"), {"release": RIDGE}),
        (("--noise", "isotropic:sd=2"), {"noise": {"kind": "isotropic", "sd": 2}}),
        (("--noise", "laplace:epsilon=.5,sensitivity=1"), {"noise": LAPLACE}),
        (("--process", "whole_shards:column=s,count=4"), {"process": SHARDS}),
        (("--process", "iid:size=50"), {"process": {"kind": "iid", "size": 50}}),
    ],
    ids=["plain", "linear", "isotropic", "laplace", "whole_shards", "iid"],
)  # fmt: skip
def test_the_command_says_what_the_science_says(
    table: str, options: tuple[str, ...], words: dict[str, Any], loss: str
) -> None:
    expected = tasks.predictability(columns(), "q", **{**PLAIN, **words}, loss=loss)
    both = {"--release": MEANS[1], "--process": SHARD[1], "--loss": loss}
    both |= dict(zip(options[::2], options[1::2], strict=True))
    got = data(table, "--query", "q", *(part for pair in both.items() for part in pair))
    for name in VALUES:
        assert got["queries"][0][name] == pytest.approx(getattr(expected, name), rel=1e-12), name
    for name in ("n", "K", "m", "rank", "condition", "utility_cost"):
        assert got[name] == pytest.approx(getattr(expected, name), rel=1e-9), name
    assert got["flags"] == list(expected.flags)
    assert got["released"] == pytest.approx(dict(zip(expected.release_names, expected.estimate, strict=True)))


def test_the_share_comes_first_and_every_number_says_what_it_is(table: str) -> None:
    found = tasks.predictability(columns(), "q", **PLAIN)
    said = text(table, "--query", "q", *MEANS, *SHARD)
    lines = said.splitlines()
    assert lines[0] == f"{table}: 200 of 200 rows"
    assert "attacker: holds 60 rows" in said
    assert "predicts the mean over the 140 rows that it has not seen" in said
    before, after = math.sqrt(found.K * found.s1), math.sqrt(found.K * (found.s1 - found.gain))
    assert f"removes {100 * found.r**2:.1f}% (r²) of the uncertainty about 'q'" in said
    assert f"falls from {before:.4g} to {after:.4g}" in said
    assert f"sharp = {found.sharp:.4g} (squared units of the query), out of s1·K = {found.K * found.s1:.4g}" in said
    row = {line.split()[0]: line for line in lines if line and line.split()[0] in VALUES}
    assert "exact to first order" in row["sharp"]
    assert all("upper bound" in row[name] for name in ("correlated", "cauchy_schwarz", "paper"))
    assert "rank 2 of 2" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--loss", "log"), ["nats"]),
        (("--noise", "laplace:epsilon=1,sensitivity=9"), ["linear attacker's", "a Bayes attacker gains more"]),
        (("--convention", "paper", "--noise", "isotropic:sd=3"), ["loose bound", "S_tot, as printed"]),
        (("--process", "whole_shards:column=s,count=4"), ["few_shards", "about"]),
        (("--process", "iid:size=50"), ["the mean over all 200 rows"]),
        (("--process", "random_shard:fraction=0.3,target=b > 0 AND a < 9"), ["rows where b > 0 AND a < 9", "all "]),
        (("--release", "mean:columns=a,gap"), ["180 of 200 rows; left out: 20 by release input gap"]),
        (("--release", "mean:columns=a,b,a+b,one"), ["rank 2 of 4", "2 of them vary freely"]),
        (("--query", "one > 0"), ["has one value alone", "constant_query"]),
    ],
    ids=lambda v: v[0].strip("-") if isinstance(v, tuple) else "",
)  # fmt: skip
def test_what_a_reader_must_know_is_in_words(table: str, options: tuple[str, ...], words: list[str]) -> None:
    both = {"--query": "q", "--release": MEANS[1], "--process": SHARD[1]}
    both |= dict(zip(options[::2], options[1::2], strict=True))
    said = text(table, *(part for pair in both.items() for part in pair))
    for word in words:
        assert word in said


# --- queries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "names", "expressions"),
    [
        ("q", ["q"], ["q"]),
        ("smokes=q", ["smokes"], ["q"]),
        ("q = 1", ["q = 1"], ["(q = 1)"]),
        ("q=1", ["q=1"], ["(q = 1)"]),
        ("Q = 1", ["Q = 1"], ["(Q = 1)"]),
        ("young = a<0", ["young"], ["(a < 0)"]),
        ("same=q = 1", ["same"], ["(q = 1)"]),
        ("a >= 3", ["a >= 3"], ["(a >= 3)"]),
        ("a == b", ["a == b"], ["(a = b)"]),
        ("a = b", ["a = b"], ["(a = b)"]),
        ('{ "two words" = "a IN (1, 2)", r = "b" }', ["two words", "r"], ["(a IN (1, 2))", "b"]),
        ('{ state = { categories = "state" } }', ["state = x", "state = y"], None),
    ],
)
def test_a_query_may_have_a_name(table: str, query: str, names: list[str], expressions: list[str] | None) -> None:
    got = data(table, "--query", query, *MEANS, *SHARD)["queries"]
    assert [q["name"] for q in got] == names
    if expressions is not None:
        assert [q["expression"] for q in got] == expressions


def test_the_worst_of_a_family_is_estimated_and_bounded(table: str) -> None:
    options = ("--query", "q", "--query", "old=a > 10", "--query", "c=0.01 * a - 0.02 * b", *MEANS, *SHARD)
    got = data(table, *options)
    family, sharps = got["family"], [q["sharp"] for q in got["queries"]]
    c = columns()
    q = np.stack([c["q"], c["a"] > 10, 0.01 * c["a"] - 0.02 * c["b"]], axis=1)
    g = np.stack([c["a"], c["b"]], axis=1)
    both = np.cov(np.hstack([q, g]), rowvar=False)
    gamma = both[:3, 3:] @ np.linalg.inv(both[3:, 3:]) @ both[3:, :3]
    rng = np.random.default_rng(0)
    after = rng.multivariate_normal(np.zeros(3), both[:3, :3] - gamma, 2 * 10**5, method="eigh")
    before = after + rng.multivariate_normal(np.zeros(3), gamma, 2 * 10**5, method="eigh")
    drawn = got["K"] * np.max(before**2 - after**2, axis=1)
    assert family["gain"] == pytest.approx(drawn.mean(), abs=4 * (family["standard_error"] + drawn.std() / 400))
    assert family["lower"] < family["gain"] < family["upper"]
    assert max(sharps) < family["gain"] < family["bound"]
    assert data(table, *options)["family"] == family
    assert "estimate" in (said := text(table, *options))
    assert "(bound)" in said
    for name in ("q", "old", "c"):
        assert any(line.startswith(f"{name} ") for line in said.splitlines())


def test_of_several_processes_the_one_that_gains_most_is_shown(table: str) -> None:
    ways = ["random_shard:fraction=0.5", "random_shard:fraction=0.05", "iid:size=30"]
    asks = ("--query", "q", *MEANS, *(part for way in ways for part in ("--process", way)))
    got = data(table, *asks)
    alone = [data(table, "--query", "q", *MEANS, "--process", way)["queries"][0]["sharp"] for way in ways]
    assert [p["sharp"] for p in got["processes"]] == [[sharp] for sharp in alone]
    ends = dict.fromkeys(("value", "lower", "upper"), max(alone))
    assert got["worst_process"] == {"process": ways[1], "kind": "exact", **ends}
    assert got["queries"][0]["sharp"] == max(alone)
    assert f"Most is gained under {ways[1]}:" in text(table, *asks)
    several = data(table, *asks, "--query", "a > 3")
    assert several["worst_process"]["kind"] == "estimate"
    assert several["worst_process"]["value"] == several["family"]["gain"]
    assert several["worst_process"]["upper"] >= several["family"]["upper"]
    result = asked(table, *asks, "--process", "iid:size=9,target=unseen")
    assert "iid:size=9,target=unseen: --process target" in str(result.exception)


# --- the exact value of a count ---------------------------------------------------------------------------------------


def binary(folder: Path, rows: int, ones: int) -> str:
    path = folder / "binary.parquet"
    parquet.write_table(pa.table({"x": (np.arange(rows) < ones).astype(int), "y": np.arange(rows) % 3}), path)
    return str(path)


@pytest.mark.parametrize("release", ["count:columns=x", "proportion:columns=x = 1", "mean:columns=5 - 2 * x"])
def test_the_exact_value_of_a_count_of_twenty_rows(tmp_path: Path, release: str) -> None:
    """Theory F: .728 of sharp at N = 20, six ones, a = .3."""
    got = data(binary(tmp_path, 20, 6), "--query", "x = 1", "--release", release, *SHARD)
    exact = got["exact_count"]
    assert exact["ones"] == 6
    assert exact["gain"] / exact["sharp"] == pytest.approx(0.728, abs=5e-4)
    assert exact["sharp"] == pytest.approx(got["queries"][0]["sharp"], rel=1e-9)
    assert exact["average"] < exact["average_sharp"]


@pytest.mark.parametrize("noise", ["laplace:epsilon=1,sensitivity={}", "isotropic:sd={}"])
def test_noise_counts_in_rows_whatever_is_released(tmp_path: Path, noise: str) -> None:
    path = binary(tmp_path, 20, 6)
    one, two, three = (
        data(path, "--query", "x", "--release", release, *SHARD, "--noise", noise.format(unit))["exact_count"]
        for release, unit in (("count:columns=x", 1), ("mean:columns=x", 0.05), ("mean:columns=1 - 3 * x", 0.15))
    )
    assert one["gain"] == pytest.approx(two["gain"], rel=1e-9)
    assert one["gain"] == pytest.approx(three["gain"], rel=1e-9)
    assert one["gain"] < 0.728 * one["sharp"] * 2


def test_other_releases_have_no_exact_value(tmp_path: Path) -> None:
    path = binary(tmp_path, 20, 6)
    for query, release in (("x", "mean:columns=y"), ("x", "mean:columns=x,y"), ("y", "mean:columns=y")):
        assert "exact_count" not in data(path, "--query", query, "--release", release, *SHARD)
    large = data(binary(tmp_path, 20_000, 6), "--query", "x", "--release", "count:columns=x", *SHARD)
    assert large["exact_count"]["note"].startswith("left out")


# --- noise for a target, and the attacker run -------------------------------------------------------------------------


def test_the_noise_found_reaches_the_target(table: str) -> None:
    options = ("--query", "q", *MEANS, *SHARD)
    bare = data(table, *options)["queries"][0]["sharp"]
    got = data(table, *options, "--target", str(bare / 4), "--noise", "gaussian:epsilon=1,delta=1e-5,sensitivity=.5")
    schemes = {s["scheme"]: s for s in got["reach"]["schemes"]}
    assert list(schemes) == ["calibrated", "rank_one", "isotropic", "gaussian"]
    assert schemes["calibrated"]["noise"]["level"] == pytest.approx(3, rel=1e-9)
    for name, scheme in schemes.items():
        words = {k: v for k, v in scheme["noise"].items() if k != "kind"}
        given = f"{name}:{','.join(f'{k}={v!r}' for k, v in words.items())}"
        again = data(table, *options, "--noise", given)
        assert again["queries"][0]["sharp"] == pytest.approx(bare / 4, rel=1e-9)
        assert again["utility_cost"] == pytest.approx(scheme["utility_cost"], rel=1e-9)
        assert again["utility_cost"] == pytest.approx(sum(sd**2 for sd in scheme["sd"]), rel=1e-9)
    said = text(table, *options, "--target", str(bare / 4))
    assert "level = 3" in said
    assert "÷ least" in said


def test_a_target_that_needs_no_noise_and_schemes_that_do_not_reach(table: str) -> None:
    options = ("--query", "q", *MEANS, *SHARD)
    assert data(table, *options, "--target", "9")["reach"] == {"target": 9.0, "needed": False, "schemes": []}
    assert "no noise is needed" in text(table, *options, "--target", "9")
    several = (*options, "--query", "a > 3", "--target", "1e-5")
    found = {s["scheme"]: s["reason"] for s in data(table, *several)["reach"]["schemes"]}
    assert "hides one query" in found["rank_one"]
    assert found["calibrated"] is None
    assert "rank_one: rank_one noise hides one query" in text(table, *several)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_frontiers_are_drawn(table: str, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"frontier.{ending}"
    said = text(table, "--query", "q", *MEANS, *SHARD, "--target", "1e-4", "-o", str(path))
    assert said.rstrip().endswith(f"drew {path}")
    assert path.stat().st_size > 4000
    first = path.read_bytes()
    text(table, "--query", "q", *MEANS, *SHARD, "--target", "1e-4", "-o", str(path))
    assert path.read_bytes() == first


def test_a_frontier_falls_with_the_value_that_is_left() -> None:
    from predcube.pipeline.answering import work
    from predcube.pipeline.frontier import figure, lines

    path = Path(__file__).parents[1] / "examples" / "data" / "nhefs.csv"
    ask = {
        "kind": "predictability",
        "table": {"path": str(path)},
        "query": {"quit": "qsmk"},
        "release": {"kind": "linear", "target": "wt82_71", "features": ["age", "sex", "wt71"]},
        "process": {"kind": "random_shard", "fraction": 0.3},
    }
    worked = work(ask)
    bare = float(worked.values.sharp[0])
    made = lines(worked, bare)
    assert [line.scheme for line in made] == ["calibrated", "rank_one", "isotropic"]
    for line in made:
        assert np.all(np.diff(line.sharps) > 0)
        assert np.all(np.diff(line.costs) < 0)
        assert 0 < line.sharps[0] < 0.01 * bare
        assert 0.99 * bare < line.sharps[-1] < bare
    calibrated = np.array(made[0].costs) / (bare / np.array(made[0].sharps) - 1)
    np.testing.assert_allclose(calibrated, calibrated[0], rtol=1e-6)  # σ²/m·tr(M Var ψ), σ² = bare/sharp − 1
    axes = figure(worked, made, bare / 2).axes[0]
    assert [line.get_label() for line in axes.lines][:3] == ["calibrated", "rank_one", "isotropic"]


def test_the_attacker_is_run_beside(table: str) -> None:
    options = ("--query", "q", "--query", "a > 3", *MEANS, *SHARD, "--simulate", "4000", "--seed", "5")
    got = data(table, *options)
    for query in got["queries"]:
        run = query["simulated"]
        assert run["draws"] == 4000
        assert abs(run["simulated_ratio"] - 1) < 4 * run["simulated_ratio_error"]
        assert run["simulated_gain"] == pytest.approx(run["simulated_ratio"] * query["sharp"], rel=1e-9)
        assert abs(run["cross"]) < 4 * run["cross_error"]
    assert data(table, *options)["queries"] == got["queries"]
    assert "simulated ÷ sharp by 4,000 attackers: q " in text(table, *options)
    log = ("--query", "a > 30", *MEANS, *SHARD, "--simulate", "50", "--loss", "log")
    [line] = [line for line in text(table, *log).splitlines() if line.startswith("simulated ")]
    [one] = data(table, *log)["queries"]
    assert "50 attackers" in line
    assert float(line.split()[1]) == pytest.approx(one["simulated"]["simulated_ratio"] * one["sharp"], rel=1e-3)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--query", "qq = 1"), "--query qq = 1: expression 'qq = 1': there is no column 'qq'; did you mean 'q'?"),
        (("--query", "n=qq = 1"), "--query n: expression 'qq = 1': there is no column 'qq'; did you mean 'q'?"),
        (("--query", "state"), "--query state: expression 'state': column 'state' is string"),
        (("--query", "x=read_csv('/etc/passwd')"), "--query x: "),
        (("--query", "(SELECT 1)"), "subqueries are not allowed"),
        (("--query", "{ x = 1"), "--query: "),
        (("--query", "{ x = 1 }"), "--query x: 1 is an integer; give a column or an SQL expression in quotes"),
        (("--query", ""), "--query"),
        (("--query", "q + " * 600 + "q"), "q +…: the expression has 2401 characters; at most 2000 are read"),
        (("--release", "mean:columns=aa"), "--release columns[0]: expression 'aa': there is no column 'aa'"),
        (("--release", "mean"), "--release columns: missing; give a list of strings"),
        (("--release", "means:columns=a"), '--release kind: unknown kind of release "means"; did you mean "mean"?'),
        (("--release", "linear:target=q,features=a,l3=1"), "--release features[1]: expression 'l3=1': there is"),
        (("--release", "{ kind = 3 }"), "--release kind: 3 is an integer"),
        (("--release", "ridge:target=q,features=a,l2=-1"), "--release l2: -1 is out of range; give a number > 0"),
        (("--release", "logistic:target=q,features=2 * q"), "eparat"),
        (("--process", "random_shard"), "random_shard needs fraction or size"),
        (("--process", "random_shard:fraction=1e-9"), "n = 0 of 200 complete rows is not between 1 and 199"),
        (("--process", "random_shard:fraction"), "--process: 'fraction' in 'random_shard:fraction' is no param=value"),
        (("--process", "weighted:column=minus,size=3"), "every weight must be above 0"),
        (("--process", "weighted:column=minuss,size=3"), "--process column: expression 'minuss': there is no column"),
        (("--process", "iid:size=3,target=unseen"), "--process target"),
        (("--noise", "isotropic:sd=no"), '--noise sd: "no" is a string; give a number ≥ 0'),
        (("--noise", "rank_one:gain=9"), "no noise is needed"),
        (("--query", "a > 40", "--loss", "log", "--tau", "0.4"), "tau = 0.4 is above min(p, 1 − p)"),
        (("--loss", "log", "--tau", "0.7"), "--tau: 0.7 is out of range; give a number > 0 and ≤ 0.5"),
        (("--tau", "0.1"), "--tau: τ is of the log loss, and none is measured"),
        (("--query", "a", "--loss", "log"), "log loss needs a binary query"),
        (("--target", "0"), "--target 0: give a sharp value above 0"),
        (("--target", "nan"), "--target nan: give a sharp value above 0"),
        (("--query", "one", "-o", "x.png"), "there is nothing to draw"),
        (("-o", "x.gif"), "x.gif: ending '.gif'"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)  # fmt: skip
def test_bad_input_is_one_message(table: str, options: tuple[str, ...], message: str) -> None:
    both = {"--query": "q", "--release": MEANS[1], "--process": SHARD[1]}
    both |= dict(zip(options[::2], options[1::2], strict=True))
    result = asked(table, *(part for pair in both.items() for part in pair))
    assert isinstance(result.exception, BadInput), (result.exception, result.stdout)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_all_problems_are_said_with_their_options(table: str) -> None:
    options = ("--query", "q", *MEANS, "--process", "random_shard:fraction=2", "--noise", "isotropic:sds=1")
    result = asked(table, *options)
    assert isinstance(result.exception, BadInput)
    lines = str(result.exception).splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["2 problems", "--process fraction", "--noise sds"]
    twice = asked(table, "--query", "x=q", "--query", "x=a", *MEANS, *SHARD)
    assert "stands twice" in str(twice.exception)


def test_the_program_exits_with_2_and_one_line(table: str) -> None:
    program = [sys.executable, "-c", "from predcube.pipeline.cli.app import main; main()"]
    options = ["predictability", table, "--query", "x=read_csv('/etc/passwd')", *MEANS, *SHARD]
    done = subprocess.run([*program, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("predcube: --query x: ")
    assert "root:" not in done.stderr


def test_an_interrupt_writes_nothing(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(disclosures, "disclose", stopped)
    result = asked(table, "--query", "q", *MEANS, *SHARD)
    assert isinstance(result.exception, Interrupted)
    assert result.exception.status == 130


def test_sections_with_lists_of_names() -> None:
    kinds = releases.KINDS
    assert inline("mean:columns=a,b", kinds) == {"kind": "mean", "columns": ["a", "b"]}
    assert inline("proportion:columns=q = 1,s = 'x, y'", kinds)["columns"] == ["q = 1", "s = 'x, y'"]
    assert inline("mean:columns=if(a > 0, 1, 0),001", kinds)["columns"] == ["if(a > 0, 1, 0)", "001"]
    ridge = {"kind": "ridge", "target": "1", "features": ["a", "b"], "l2": 0.5}
    assert inline("ridge:target=1,features=a,b,l2=0.5", kinds) == ridge
    assert inline('ridge:l2=0.5,target="1",features=["a", "b"]', kinds) == ridge
    members = [{"kind": "mean", "columns": ["a", "b"]}, {"kind": "count", "columns": ["q"]}]
    assert inline("stack:releases=[{mean:columns=a,b},{count:columns=q}]", kinds)["releases"] == members
    assert inline('{ kind = "mean", columns = ["a"] }', kinds) == {"kind": "mean", "columns": ["a"]}
    shard = {"kind": "random_shard", "fraction": 0.3, "target": "a = 1 OR b = 2"}
    assert inline("random_shard:fraction=.3,target=a = 1 OR b = 2", processes.KINDS) == shard
