"""One answer about a file: against the same columns in memory, and on files that are not as they should be."""

import csv
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as pa_csv
from pyarrow import feather, parquet

from predcube import tasks
from predcube.pipeline import predictability
from predcube.pipeline.failures import BadInput
from predcube.tasks import noises, processes, releases
from predcube.tasks.gains import Measure

NHEFS = Path(__file__).parent.parent / "examples" / "data" / "nhefs.csv"
SHARD = {"kind": "random_shard", "fraction": 0.3}
OLS = {"kind": "linear", "target": "wt82_71", "features": ["age", "sex", "wt71"]}
MEANS = {"kind": "mean", "columns": ["a", "b"]}
VALUES = ("n", "p", "rho2", "gain", "r", "sharp", "correlated", "cauchy_schwarz", "paper", "utility_cost", "s1")


def nhefs() -> dict[str, list[float | None]]:
    with NHEFS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) if row[name] else None for row in rows] for name in rows[0]}


def plain(rows: int = 300, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-50, 50, (2, rows)).astype(float)
    return {"q": (a + rng.normal(0, 30, rows) > 0).astype(float), "a": a, "b": b}


def written(folder: Path, columns: dict[str, Any], name: str = "table.parquet") -> str:
    path = folder / name
    parquet.write_table(pa.table(columns), path, row_group_size=100)
    return str(path)


def same(found: Any, expected: Any, rel: float = 1e-12) -> None:
    for name in VALUES:
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=rel), name
    assert found.rank == expected.rank
    assert found.condition == pytest.approx(expected.condition, rel=1e-9)
    assert (found.rows, found.dropped_rows) == (expected.rows, expected.dropped_rows)


def test_theory_gs_row_of_nhefs_from_the_file() -> None:
    found = predictability(NHEFS, "qsmk = 1", OLS, SHARD)
    assert (found.rows, found.dropped_rows) == (1566, 63)
    assert found.p == pytest.approx(0.2573, abs=5e-5)
    assert found.rho2 == pytest.approx(0.036463, abs=5e-7)
    assert found.queries == ("qsmk = 1",)
    assert found.dropped == {"release input wt82_71": 63}
    same(found, tasks.predictability(nhefs(), "qsmk", OLS, SHARD))


@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize("noise", [None, {"kind": "isotropic", "sd": 0.3}, {"kind": "calibrated", "level": 2.0}])
@pytest.mark.parametrize(
    "process",
    [
        SHARD,
        {"kind": "iid", "size": 40},
        {"kind": "weighted", "column": "c", "size": 40},
        {"kind": "poisson", "column": "u"},
        {"kind": "whole_shards", "column": "g", "count": 4},
        {
            "kind": "markov",
            "column": "h",
            "steps": 50,
            "transitions": {"labels": ["0", "1"], "matrix": [[0.9, 0.1], [0.3, 0.7]]},
        },
        {"kind": "random_shard", "size": 30, "target": "d", "members": "unseen"},
    ],
    ids=lambda p: p["kind"] + ("_members" if "members" in p else ""),
)
def test_a_file_gives_what_its_columns_give(tmp_path: Path, process: Any, noise: Any, loss: str) -> None:
    rng = np.random.default_rng(1)
    table = plain()
    table |= {"c": rng.lognormal(0, 1, 300), "u": rng.uniform(0.1, 0.9, 300), "g": rng.integers(0, 12, 300)}
    table |= {"h": rng.integers(0, 2, 300), "d": rng.random(300) < 0.4}
    found = predictability({"path": written(tmp_path, table)}, "q", MEANS, process, noise, loss)
    same(found, tasks.predictability(table, "q", MEANS, process, noise, loss))


def test_built_objects_are_what_their_words_are(tmp_path: Path) -> None:
    path = written(tmp_path, plain())
    stack = releases.build("stack", releases=[{"kind": "mean", "columns": ["a"]}, {"kind": "mean", "columns": ["b"]}])
    chain = {"labels": ["0", "1"], "matrix": [[0.9, 0.1], [0.3, 0.7]]}
    markov = processes.build("markov", column="q", steps=9, transitions=chain)
    found = predictability(
        path, {"q": "q"}, stack, markov, noises.build("calibrated", level=1), Measure(loss="log", tau=0.1)
    )
    words = {"kind": "stack", "releases": [{"kind": "mean", "columns": ["a"]}, {"kind": "mean", "columns": ["b"]}]}
    expected = tasks.predictability(
        plain(),
        {"q": "q"},
        words,
        {"kind": "markov", "column": "q", "steps": 9, "transitions": chain},
        {"kind": "calibrated", "level": 1},
        {"loss": "log", "tau": 0.1},
    )
    for name in VALUES:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)
    assert found.sharp.shape == (1,)


def test_columns_in_memory_go_to_the_science() -> None:
    table = plain()
    assert predictability(table, table["q"], MEANS, SHARD).sharp == tasks.predictability(table, "q", MEANS, SHARD).sharp


def test_categories_make_one_query_a_value(tmp_path: Path) -> None:
    table = plain()
    states = np.array(["x", "y", None], dtype=object)[np.arange(300) % 3]
    found = predictability(written(tmp_path, {**table, "s": states}), {"s": {"categories": "s"}}, MEANS, SHARD)
    assert found.queries == ("s = x", "s = y")
    assert (found.rows, found.dropped_rows) == (200, 100)
    kept = {name: column[states != None] for name, column in table.items()}  # noqa: E711 (element by element)
    x = states[states != None] == "x"  # noqa: E711
    assert found.sharp[0] == pytest.approx(tasks.predictability(kept, x, MEANS, SHARD).sharp, rel=1e-12)


def test_null_is_a_query_of_its_own(tmp_path: Path) -> None:
    """``x IS NULL`` misses in no row, so that none is dropped for it."""
    table = plain()
    gaps = np.arange(300) % 4 == 0
    x = pa.array(np.ones(300), mask=gaps)
    path = written(tmp_path, {**table, "x": x})
    found = predictability(path, "x IS NULL", MEANS, SHARD)
    assert (found.rows, found.p) == (300, pytest.approx(gaps.mean()))
    assert found.sharp == pytest.approx(tasks.predictability(table, gaps, MEANS, SHARD).sharp, rel=1e-12)
    assert predictability(path, "x > 0 OR q > 5", MEANS, SHARD).dropped == {"query x > 0 OR q > 5": 75}


# --- files that are not as they should be -----------------------------------------------------------------------------


def text_file(folder: Path, text: str | bytes, name: str = "table.csv") -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def as_csv(columns: dict[str, Any], head: str | None = None) -> str:
    lines = [head or ",".join(columns)]
    lines += [",".join(str(v) for v in row) for row in zip(*columns.values(), strict=True)]
    return "\n".join(lines) + "\n"


def test_padded_headers_latin_1_and_a_semicolon(tmp_path: Path) -> None:
    table = plain()
    expected = tasks.predictability(table, "q", MEANS, SHARD).sharp
    padded = text_file(tmp_path, as_csv(table, " q , a,b "))
    assert predictability(padded, "q", MEANS, SHARD).sharp == pytest.approx(expected, rel=1e-12)
    text = as_csv({**table, "ville": ["Orléans"] * 300}).replace(",", ";").encode("latin-1")
    other = text_file(tmp_path, text, "latin.csv")
    found = predictability(other, {"q": "q", "o": "ville = 'Orléans'"}, MEANS, SHARD)
    assert found.sharp[0] == pytest.approx(expected, rel=1e-12)
    assert found.constant.tolist() == [False, True]
    assert found.flags == ("constant_query",)


def test_identifiers_decimals_booleans_and_quoted_nulls(tmp_path: Path) -> None:
    table = plain()
    ids = [f"{i % 7:03d}" for i in range(300)]
    path = text_file(tmp_path, as_csv({**table, "id": ids}))
    found = predictability(path, "id = '001'", MEANS, SHARD)
    assert found.p == pytest.approx(np.mean([i == "001" for i in ids]), rel=1e-12)
    decimals = [Decimal(int(v)) / 4 for v in table["a"]]
    flags = [None if i < 10 else bool(v) for i, v in enumerate(table["q"])]
    exact = written(tmp_path, {"q": flags, "a": decimals, "b": table["b"].astype(np.int16)})
    kept = {"q": table["q"][10:], "a": table["a"][10:] / 4, "b": table["b"][10:]}
    found = predictability(exact, "q", MEANS, SHARD)
    assert found.dropped == {"query q": 10}
    assert found.sharp == pytest.approx(tasks.predictability(kept, "q", MEANS, SHARD).sharp, rel=1e-12)
    nulls = text_file(tmp_path, as_csv({**table, "s": ['""', "x", '"NA"'] * 100}), "nulls.csv")
    found = predictability(nulls, "s = ''", MEANS, SHARD)
    assert found.p * found.rows == pytest.approx(100)


def test_files_of_a_folder_whose_types_differ_are_widened(tmp_path: Path) -> None:
    table = plain()
    folder = tmp_path / "parts"
    folder.mkdir()
    kinds = {"a": (pa.int32(), pa.float32()), "b": (pa.int8(), pa.int64()), "q": (pa.bool_(), pa.bool_())}
    states = [f"s{i // 50}" for i in range(300)]
    for number, part in enumerate((slice(0, 150), slice(150, 300))):
        columns = {
            name: pa.array(table[name][part].astype(bool if name == "q" else int), kind[number])
            for name, kind in kinds.items()
        }
        columns["s"] = pa.array(states[part]).dictionary_encode()  # other categories in each
        feather.write_feather(pa.table(columns), str(folder / f"{number}.arrow"))
    found = predictability(folder, {"q": "q", "s": "s = 's4'"}, MEANS, SHARD)
    expected = tasks.predictability(table, {"q": "q", "s": np.array(states) == "s4"}, MEANS, SHARD)
    np.testing.assert_allclose(found.sharp, expected.sharp, rtol=1e-12)


def test_small_integers_float32_offsets_and_scales(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.integers(20_000, 30_000, 3000), rng.integers(0, 9, 3000)
    q = (a + 2000 * b > 34_000).astype(np.int8)
    expected = tasks.predictability({"q": q, "a": a, "b": b}, "q", MEANS, SHARD)
    small = written(tmp_path, {"q": q, "a": a.astype(np.int16), "b": b.astype(np.float32)}, "small.parquet")
    squared = {"kind": "mean", "columns": ["a * a", "b"]}  # 9e8 does not fit into 16 bits
    same(predictability(small, "q", MEANS, SHARD), expected)
    by_hand = tasks.predictability(
        {"q": q, "aa": a.astype(float) ** 2, "b": b}, "q", {**MEANS, "columns": ["aa", "b"]}, SHARD
    )
    assert predictability(small, "q", squared, SHARD).sharp == pytest.approx(by_hand.sharp, rel=1e-9)
    moved = {"q": q, "a": a * 2.0**20 + 1e9, "b": (b + 2.0**30) * 2.0**-20}
    found = predictability(written(tmp_path, moved, "moved.parquet"), "q", MEANS, SHARD)
    assert (found.rank, found.rho2) == (2, pytest.approx(expected.rho2, rel=1e-9))


def test_collinear_constant_and_repeated_columns(tmp_path: Path) -> None:
    table = plain()
    path = written(tmp_path, {**table, "c": 3 * table["a"] - table["b"], "one": np.full(300, 0.1)})
    expected = tasks.predictability(table, "q", MEANS, SHARD)
    found = predictability(path, "q", {"kind": "mean", "columns": ["a", "one", "c", "b", "2 * a"]}, SHARD)
    assert (found.rank, found.rho2) == (2, pytest.approx(expected.rho2, rel=1e-9))
    flat = predictability(path, "one > 0", MEANS, SHARD, loss="log")
    assert (flat.sharp, flat.paper, flat.flags) == (0.0, 0.0, ("constant_query",))


def test_the_log_loss_of_a_rare_query(tmp_path: Path) -> None:
    rare = np.arange(300) == 7
    found = predictability(written(tmp_path, {**plain(), "rare": rare}), "rare", MEANS, SHARD, loss="log")
    assert found.sharp == pytest.approx(found.r**2 / 2 * found.K * 300 / 299, rel=1e-12)
    assert math.isfinite(found.paper)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"table": "no.parquet"}, "there is no table at 'no.parquet'"),
    ({"query": "qq"}, "query: expression 'qq': there is no column 'qq'; did you mean 'q'"),
    ({"query": {"x": "q +"}}, "query.x: expression 'q \\+': syntax error"),
    ({"query": "(SELECT max(a) FROM t)"}, "subqueries are not allowed"),
    ({"query": "read_csv('/etc/passwd')"}, "read_csv"),
    ({"query": "a FROM read_csv('/etc/passwd')"}, "query: "),
    ({"query": "q); SELECT (1"}, "query: "),
    ({"query": "random() < 0.5"}, "random"),
    ({"query": "count(*)"}, "query: "),
    ({"query": "word"}, "column 'word' is string, for example 'x'; numbers are needed"),
    ({"query": {}}, "query: empty"),
    ({"query": ["q"]}, "query is list"),
    ({"release": {"kind": "mean", "columns": ["a / 0"]}}, "is .*inf|is NULL|no complete row"),
    ({"release": {"kind": "mean", "columns": ["aa"]}}, r"release.columns\[0\]: expression 'aa': there is no column"),
    ({"release": {"kind": "proportion", "columns": ["a"]}}, "must be 0 or 1 in every row"),
    ({"release": "mean"}, "release = 'mean' must be a table with a kind"),
    ({"release": {"kind": "means", "columns": ["a"]}}, 'unknown kind of release "means"; did you mean "mean"'),
    ({"release": {"kind": "logistic", "target": "q", "features": ["2 * q"]}}, "(?i)separat"),
    (
        {
            "release": {
                "kind": "gradient_descent",
                "loss": "squared",
                "target": "a",
                "features": ["b"],
                "steps": 400,
                "rate": 9.0,
            }
        },
        "(?i)diverge",
    ),
    ({"process": {"kind": "random_shard", "fraction": 0.001}}, "n = 0 of 300 complete rows"),
    ({"process": {"kind": "random_shard", "fraction": 1.5}}, "process.fraction: 1.5 is out of range"),
    ({"process": {"kind": "weighted", "column": "a", "size": 4}}, "weight must be above 0"),
    ({"process": {"kind": "poisson", "column": "a"}}, "inclusion probability must be above 0"),
    ({"process": {"kind": "whole_shards", "column": "q", "count": 5}}, "5"),
    ({"process": {"kind": "whole_shards", "column": "q > 0", "count": 1}}, "q > 0"),
    ({"process": {"kind": "iid", "size": 4, "target": "unseen"}}, "target"),
    ({"process": {**SHARD, "target": "a"}}, "a membership is true, false, 1 or 0"),
    ({"noise": {"kind": "isotropic", "sd": -1}}, "noise.sd: -1 is out of range"),
    ({"noise": {"kind": "rank_one", "gain": 9.0}}, "no noise is needed"),
    ({"loss": "logg"}, 'measure.loss: unknown loss "logg"; did you mean "log"'),
    ({"query": "a", "loss": "log"}, "log loss needs a binary query"),
    ({"loss": {"loss": "log", "tau": 0.5}}, r"tau = 0.5 is above min\(p, 1 − p\)"),
    ({"loss": {"loss": "squared", "tau": 0.1}}, "tau"),
]


@pytest.fixture(scope="module")
def table_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("table"), {**plain(), "word": ["x", "y", "z"] * 100})


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda v: v if isinstance(v, str) else None)
def test_bad_input_is_one_message(table_path: str, change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"table": table_path, "query": "q", "release": MEANS, "process": SHARD, **change}
    with pytest.raises(ValueError, match=message) as caught:
        predictability(**arguments)
    assert isinstance(caught.value, BadInput)
    assert "Traceback" not in str(caught.value)


def test_every_problem_is_said_at_once(table_path: str) -> None:
    with pytest.raises(ValueError, match="2 problems") as caught:
        predictability(table_path, "q", MEANS, {**SHARD, "fraction": 2}, {"kind": "isotropic", "sds": 1})
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["process.fraction", "noise.sds"]


def test_duplicate_headers_and_a_table_without_rows(tmp_path: Path) -> None:
    for text, message in (
        ("q,a,A\n1,2,3\n", "columns 'a' and 'A'; rename one of them"),
        ("q,a,b\n", "no rows|empty"),
        ("q,a,b\n1,,2\n0,,1\n", "no complete row is left"),
    ):
        with pytest.raises(ValueError, match=message):
            predictability(text_file(tmp_path, text), "q", MEANS, SHARD)


def test_large_files_are_read_in_parts(tmp_path: Path) -> None:
    """Several row groups and several blocks, against the columns as one."""
    table = plain(70_000, 5)
    path = tmp_path / "table.csv"
    pa_csv.write_csv(pa.table(table), str(path))
    same(predictability(path, "q", MEANS, SHARD), tasks.predictability(table, "q", MEANS, SHARD), 1e-11)
