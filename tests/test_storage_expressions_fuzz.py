"""Random SQL: whatever is written, nothing runs but per-row expressions of what is allowed, and nothing breaks.

The oracle reads the text that is run with a tokenizer of its own, and asks every row alone for its value.
"""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from predcube.storage import ExpressionError, sandbox
from predcube.storage.expressions import canonical, columns_of, evaluate

TABLE = pa.table(
    {
        "a": pa.array([1, -2, None], pa.int32()),
        "b": [0.5, None, 1e9],
        "s": ["x", "it's", None],
        "sum": [1, 2, 3],
        "from": [True, False, None],
    }
)


def words(text: str, by: str = " ") -> list[str]:
    return " ".join(text.split()).split(by)


ALLOWED = words(
    "abs ceil ceiling floor round trunc sign sqrt cbrt exp ln log log2 log10 pow power mod sin cos tan greatest least "
    "if nullif isnan isinf isfinite lower upper length trim substring left right contains starts_with ends_with year "
    "month day coalesce cast try_cast"
)
WORDS = words(
    "and or not in is null between case when then else end as true false distinct like ilike boolean bigint integer "
    "smallint tinyint double float real varchar date int32 int64"
)
OPERATORS = words("+ - * / // % ^ ** || = != <> < <= > >= ~~ !~~ ~~* !~~*")

HOSTILE = words(
    """
    (select 1) ¦ (select count(*) from rows_) ¦ exists (select 1) ¦ (from rows_ select a) ¦ (table rows_) ¦ sum(a) ¦
    read_csv('SENTINEL') ¦ (select x from read_csv('SENTINEL')) ¦ read_text('SENTINEL') ¦ glob('*') ¦ count(*) ¦ * ¦
    query('select 1') ¦ query_table('rows_') ¦ getenv('HOME') ¦ current_setting('threads') ¦ version() ¦
    sleep_ms(50) ¦ pg_sleep(1) ¦ random() ¦ now() ¦ uuid() ¦ setseed(.5) ¦ unnest([1, 2]) ¦ range(9) ¦ [1, 2] ¦ #1 ¦
    generate_series(1, 9) ¦ [x for x in [1]] ¦ {'a': 1} ¦ row(1, 2) ¦ map {'a': 1} ¦ (1, 2) ¦ x -> x ¦ lambda x: x ¦
    columns(*) ¦ $1 ¦ ? ¦ :x ¦ getvariable('x') ¦ sum(a) over () ¦ lag(a) over (order by a) ¦ nextval('q') ¦
    error('boom') ¦ txid_current() ¦ repeat('x', 99) ¦ regexp_matches(s, 'x') ¦ current_user ¦ default ¦ main.lower(s) ¦
    enum_code(a) ¦ list_value(1) ¦ struct_pack(x := 1) ¦ s.lower() ¦ s[1] ¦ pragma_version() ¦
    list_sum(range(9)) ¦ rowid ¦ set_config('threads', '8')
    """,
    " ¦ ",
)
STATEMENTS = words(
    """
    copy (select 1) to 'PLACE/out.csv' ¦ copy rows_ from 'SENTINEL' ¦ attach 'PLACE/x.db' ¦ install httpfs ¦
    load httpfs ¦ pragma version ¦ pragma threads = 8 ¦ set threads = 8 ¦ reset threads ¦ call pragma_version() ¦
    set variable x = 1 ¦ create table t (a int) ¦ create macro lower(x) as 1 ¦ insert into rows_ values (1) ¦
    drop view rows_ ¦ begin ¦ export database 'PLACE' ¦ checkpoint ¦ vacuum ¦ prepare p as select 1 ¦ execute p ¦
    use memory ¦ explain select 1 ¦ describe rows_ ¦ select 1 ¦ values (1) ¦ from rows_ ¦ with t as (select 1)
    """,
    " ¦ ",
)
TAILS = words(
    "¦¦¦¦¦ -- end¦ /* open¦ /* shut */¦;¦; ¦ as z¦ from rows_¦ from read_csv('SENTINEL')¦) or (1 = 1¦), (1¦ limit 1¦"
    " union select 1¦ order by 1¦ where 1 = 1¦ group by 1¦ having true¦ filter (where true)¦ over ()¦ using sample 1¦"
    " window w as ()¦ qualify true¦)¦(¦'¦\"¦\0",
    "¦",
)

atoms = st.one_of(
    st.sampled_from(
        words('a b s A a b s \'x\' 1 0.5 "a" "from" "sum" c sum rows_ rows_.a a.b.c null true \'%x%\' $$x$$')
    ),
    st.sampled_from(["date '2020-01-01'", "timestamp '2020-01-01'", "interval 1 day"]),
    st.integers(-3, 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(max_size=4).map(lambda t: "'" + t.replace("'", "''") + "'"),
    st.sampled_from(HOSTILE),
)
functions = st.sampled_from([*ALLOWED, *words("sum repeat unnest sleep_ms hash try concat list_value")])
operators = st.sampled_from(
    words("+ - * / // % ^ ** || = == <> != < <= > >= and or like ilike in ~ << >> & | -> ->> := :: , glob collate")
    + words("not like, is distinct from, similar to, not in, is not, at time zone", ", ")
)
types = st.sampled_from(words("double, int, varchar, boolean, date, json, blob, int[], decimal(9), time", ", "))


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, operators, inner).map(" ".join),
        st.tuples(functions, st.lists(inner, max_size=3)).map(lambda t: f"{t[0]}({', '.join(t[1])})"),
        inner.map(lambda e: f"({e})"),
        st.tuples(st.sampled_from(["not", "-", "+", "distinct", "all", "any"]), inner).map(" ".join),
        st.tuples(inner, types).map(lambda t: f"{t[0]}::{t[1]}"),
        st.tuples(st.sampled_from(["cast", "try_cast"]), inner, types).map(lambda t: f"{t[0]}({t[1]} as {t[2]})"),
        two.map(lambda t: f"case when {t[0]} then {t[1]} end"),
        two.map(lambda t: f"case {t[0]} when {t[1]} then 1 else a end"),
        two.map(lambda t: f"{t[0]} between 1 and {t[1]}"),
        st.tuples(inner, st.lists(inner, min_size=1, max_size=3)).map(lambda t: f"{t[0]} in ({', '.join(t[1])})"),
        two.map(lambda t: f"{t[0]} in (select {t[1]})"),
        st.tuples(inner, st.sampled_from(["is null", "is not null", "isnull", "is true", "!"])).map(" ".join),
    )


expressions = st.recursive(atoms, grown, max_leaves=6)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """An expression, or one with a statement beside it, a tail, or a few characters changed."""
    text = draw(expressions) + draw(st.sampled_from(TAILS))
    match draw(st.integers(0, 9)):
        case 0:
            text = draw(st.sampled_from(STATEMENTS))
        case 1:
            text = f"{text}; {draw(st.sampled_from(STATEMENTS))}"
        case 2:
            text = f"{text}); {draw(st.sampled_from(STATEMENTS))}; select (1"
        case 3 | 4:
            place = draw(st.integers(0, len(text)))
            text = (
                text[:place]
                + draw(st.text(alphabet="()'\"-*/;,.=<>[]{}$?#:@\\ \n\tae0\0é", max_size=2))
                + text[place + 1 :]
            )
    return text


def tokens(text: str) -> list[str]:
    """The words and signs of a text that is run, without what stands in quotes."""
    bare = re.sub(r"'(?:[^']|'')*'", " '' ", text)
    bare = re.sub(r'"(?:[^"]|"")*"', ' "" ', bare)
    return re.findall(
        r"[A-Za-z_][A-Za-z_0-9]*|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|''|\"\"|[-+*/%^|~!=<>]+|\S", bare
    )


def only_what_is_allowed(text: str) -> bool:
    found = [t.lower() for t in tokens(text)]
    columns = {name.lower() for name in TABLE.column_names}
    for before, token, after in zip(["", *found], found, [*found[1:], ""], strict=False):
        if re.match(r"[a-z_]", token):
            function = after == "(" and token in ALLOWED
            distinct = token == "from" and before == "distinct"
            column = after != "(" and token in columns - {"from"}
            if not (function or distinct or column or token in WORDS):
                return False
        elif token in ("''", '""', "(", ")", ",") or token[-1].isdigit() or token[:-1].isdigit():
            continue
        elif token not in OPERATORS:
            return False
    return True


def settings_now() -> list[object]:
    with sandbox.leased() as connection:
        return connection.execute("SELECT name, value FROM duckdb_settings() ORDER BY name").fetchall()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "sentinel.csv").write_text("x\n12345678\n")
    return folder


@settings(max_examples=200, deadline=4000)
@example("a::double + b")
@example("s like '%t%'")
@example("read_csv('SENTINEL')")
@example("a in (1, 2) or b is distinct from 1")
@given(texts())
def test_random_sql(place: Path, text: str) -> None:
    text = text.replace("SENTINEL", str(place / "sentinel.csv")).replace("PLACE", str(place))
    before = settings_now()
    found = refusal = None
    try:
        found = evaluate(text, TABLE)
    except ExpressionError as e:
        refusal = str(e)
    if refusal is not None:
        assert len(refusal) < 1100
        assert "12345678" not in refusal
    if found is not None:
        run = canonical(text)
        assert only_what_is_allowed(run), run
        assert canonical(run) == run
        assert {name.lower() for name in columns_of(run)} <= set(TABLE.column_names)
        assert len(found) == 3
        alone = [evaluate(text, TABLE.slice(i, 1)).to_pylist() for i in range(3)]
        assert str(alone) == str([[value] for value in found.to_pylist()])
    assert settings_now() == before
    assert [p.name for p in place.iterdir()] == ["sentinel.csv"]


def test_the_oracle_sees_what_must_not_run() -> None:
    for text in (
        "a + sum(a)", "(SELECT 1)", "read_csv('x')", "a[1]", "a; b", "a FROM t", "sleep_ms(1)", "a.b", "x -> x", "$1",
        "{'a': 1}", "CAST(a AS JSON)", "count(*)", "random()", "lower (s) OVER ()", "'a' || repeat('x', 9)",
    ):  # fmt: skip
        assert not only_what_is_allowed(text), text
    for text in ("((a = 1) AND (b > 2))", "lower('select ''')", '"from" IS NOT NULL', "(a IS DISTINCT FROM 1)"):
        assert only_what_is_allowed(text), text


@pytest.mark.parametrize("frame", ["{}", "a + {}", "coalesce({}, 1)", "case when {} is null then 1 end", "({}) = a"])
def test_none_of_the_hostile_parts_runs_anywhere(place: Path, frame: str) -> None:
    for part in [*HOSTILE, *STATEMENTS]:
        text = frame.format(part.replace("SENTINEL", str(place / "sentinel.csv")).replace("PLACE", str(place)))
        with pytest.raises(ExpressionError):
            evaluate(text, TABLE)
    assert [p.name for p in place.iterdir()] == ["sentinel.csv"]
