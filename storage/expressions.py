"""SQL scalar expressions: in go a text and an Arrow table, out comes one value per row.

The text is a stranger's. DuckDB parses it; every node of what it parsed must be of a kind listed here, every function
one of those listed here, every column one of the table's; and only the text that DuckDB writes back from that tree is
ever run, on a connection that reaches no file, network, extension or setting. Always true: the value of a row depends
on that row alone.
"""

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from predcube.storage.failures import ExpressionError
from predcube.storage.sandbox import ask, registered

LONGEST = 2000  # characters
WILDCARDS = 4  # in a LIKE pattern: matching backtracks, so many of them take for ever

OPERATORS = frozenset({"+", "-", "*", "/", "//", "%", "**", "^", "||", "~~", "!~~", "~~*", "!~~*"})
_LIKE = frozenset({"~~", "!~~", "~~*", "!~~*"})

# Each looks at one row, ends at once and gives no more text than it was given: no lists, repeat, pad, replace, format,
# regular expressions, clock, random numbers, settings.
# fmt: off
FUNCTIONS = frozenset({
    "abs", "ceil", "ceiling", "floor", "round", "trunc", "sign", "sqrt", "cbrt", "exp", "ln", "log", "log2", "log10",
    "pow", "power", "mod", "sin", "cos", "tan", "greatest", "least", "if", "nullif", "isnan", "isinf", "isfinite",
    "lower", "upper", "length", "trim", "substring", "left", "right", "contains", "starts_with", "ends_with",
    "year", "month", "day",
})
# fmt: on

_COMPARISONS = frozenset(
    {
        "COMPARE_EQUAL",
        "COMPARE_NOTEQUAL",
        "COMPARE_LESSTHAN",
        "COMPARE_GREATERTHAN",
        "COMPARE_LESSTHANOREQUALTO",
        "COMPARE_GREATERTHANOREQUALTO",
        "COMPARE_DISTINCT_FROM",
        "COMPARE_NOT_DISTINCT_FROM",
    }
)
_CONJUNCTIONS = frozenset({"CONJUNCTION_AND", "CONJUNCTION_OR"})
_OPERATIONS = frozenset(
    {"OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE", "COMPARE_IN", "COMPARE_NOT_IN"}
)
_LITERALS = frozenset({"INTEGER", "NUMERIC", "STRING", "BOOLEAN", "NULL_LITERAL"})
_CASTS = frozenset(
    {"BOOLEAN", "BIGINT", "INTEGER", "SMALLINT", "TINYINT", "DOUBLE", "FLOAT", "REAL", "VARCHAR", "DATE"}
)
_COMMON = frozenset({"class", "type", "alias", "query_location", "query_location_length"})

type Node = Mapping[str, Any]


def canonical(expression: str) -> str:
    """The expression as DuckDB writes it back after reading it: what is run, and what is to be hashed.

    >>> canonical("death=1   and wt71 >= 70 -- heavy")
    '((death = 1) AND (wt71 >= 70))'
    """
    return _parse(expression)[0]


def columns_of(expression: str) -> tuple[str, ...]:
    """The columns that an expression uses, as it spells them, each once.

    >>> columns_of("death = 1 and wt71 >= 70 and death is not null")
    ('death', 'wt71')
    """
    return _parse(expression)[1]


def columns_of_each(expressions: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The same of many, read together: a tenth of the time of one after the other."""
    return tuple(used for _, used in _parse_all(tuple(expressions)))


def evaluate(expression: str, table: pa.Table) -> "pa.ChunkedArray[Any]":
    """The value of ``expression`` at every row of ``table``, in order.

    Integers are BIGINT, floats and decimals DOUBLE, NaN is NULL (SQL puts it above every number); decimals in the
    result become floats, and NaN there is NULL again. Column names are taken without regard to case. Raises
    ExpressionError where the text is not a per-row expression, names a column that is not there, or fails on the
    data.
    """
    text = canonical(expression)
    try:
        with registered(_seen_by_sql((expression,), table)) as connection:
            result: pa.ChunkedArray[Any] = connection.sql(f"SELECT {text} FROM rows_").to_arrow_table().column(0)
    except duckdb.Error as e:
        raise ExpressionError(f"{_shown(expression)}: {_reason(str(e))}") from e
    if pa.types.is_decimal(result.type):
        result = result.cast(pa.float64())
    return _without_nan(result) if pa.types.is_floating(result.type) else result


def evaluate_all(expressions: Sequence[str], table: pa.Table, longest: int) -> Generator[pa.RecordBatch]:
    """The values of all the expressions as DOUBLE, a column each, in pieces of about ``longest`` rows (whole vectors of
    2048), from one question: truth values are 0 and 1; a missing value is NULL or NaN.

    Raises ExpressionError as ``evaluate`` does, and where a value is no number (text, a date).
    """
    names = tuple(expressions)
    rows = _seen_by_sql(names, table)
    try:
        with registered(rows) as connection:
            question = _question(names, tuple((f.name, str(f.type)) for f in rows.schema), connection)
            yield from connection.sql(question).to_arrow_reader(longest)
    except duckdb.Error as e:
        for expression in names:
            evaluate(expression, table)  # says which of them it is
        raise ExpressionError(f"{len(names)} expressions together: {_reason(str(e))}") from e


def _question(
    expressions: tuple[str, ...], schema: tuple[tuple[str, str], ...], connection: duckdb.DuckDBPyConnection
) -> Any:
    """The statement that asks for all the expressions, parsed; ExpressionError where one of them is no number."""
    key = (expressions, schema)
    if key not in _questions:
        texts = [text for text, _ in _parse_all(expressions)]
        asked = connection.sql(f"SELECT {', '.join(texts)} FROM rows_")
        for expression, kind in zip(expressions, asked.types, strict=True):
            if not str(kind).startswith(_NUMERIC):
                raise ExpressionError(f"{_shown(expression)}: it is {kind}, not a number; compare it with something")
        columns = ", ".join(f'CAST({text} AS DOUBLE) AS "{i}"' for i, text in enumerate(texts))
        while len(_questions) >= QUESTIONS:
            _questions.pop(next(iter(_questions)))
        [_questions[key]] = connection.extract_statements(f"SELECT {columns} FROM rows_")
    return _questions[key]


QUESTIONS = 16  # sets of expressions whose statements a process keeps
_questions: dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], Any] = {}
_NUMERIC = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", '"NULL"', "NULL",
)  # fmt: skip


def _seen_by_sql(expressions: tuple[str, ...], table: pa.Table) -> pa.Table:
    """The columns that the expressions use, in the few types that SQL sees."""
    owners: dict[str, tuple[str, str]] = {}  # SQL's own view of which names are one
    for expression, (_, used) in zip(expressions, _parse_all(expressions), strict=True):
        for name in used:
            owners.setdefault(name.casefold(), (expression, name))
    columns = [_column(expression, table, name) for expression, name in owners.values()]
    # A condition without columns still has one value per row: the column that no text can name.
    nothing = pa.chunked_array([pa.nulls(table.num_rows)])
    return pa.Table.from_arrays([nothing, *columns], names=["", *(name for _, name in owners.values())])


def _parse(expression: str) -> tuple[str, tuple[str, ...]]:
    """The text to run and the columns it uses. Raises ExpressionError."""
    found = _parsed.get(expression)
    return _parse_all((expression,))[0] if found is None else found


PARSED = 8192  # expressions that a process keeps as they were read
_parsed: dict[str, tuple[str, tuple[str, ...]]] = {}


@lru_cache(maxsize=64)
def _parse_all(expressions: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The same of many at once. Raises ExpressionError with the first one at fault."""
    for expression in expressions:
        if not expression.strip():
            raise ExpressionError("the expression is empty; write a column or a condition such as death = 1")
        if len(expression) > LONGEST:
            raise ExpressionError(f"the expression has {len(expression)} characters; at most {LONGEST} are read")
    try:
        trees, columns = [], []
        serialized = ask("json_serialize_sql(x)", [f"SELECT {form}" for e in expressions for form in _forms(e)])
        for expression, inside, outside in zip(expressions, serialized[::2], serialized[1::2], strict=True):
            tree = _tree(expression, inside)
            _tree(expression, outside)
            # Whatever stands around the one expression must be what stands around a bare constant.
            if _around(tree) != _bare() or len(tree["statements"][0]["node"]["select_list"]) != 1:
                raise ExpressionError(f"{_shown(expression)}: it is more than one expression; give a single one")
            [top] = tree["statements"][0]["node"]["select_list"]
            used: dict[str, None] = {}
            _check(top, expression, used)
            trees.append(json.dumps(tree))
            columns.append(tuple(used))
        texts = ask("json_deserialize_sql(x::JSON)", trees)
    except RecursionError as e:
        if len(expressions) == 1:
            raise ExpressionError(f"{_shown(expressions[0])}: it is nested too deeply") from e
    except duckdb.Error as e:
        if len(expressions) == 1:
            raise ExpressionError(f"{_shown(expressions[0])}: {_reason(str(e))}") from e
    else:
        texts = [text.removeprefix("SELECT ").strip() for text in texts]
        found = tuple(zip(texts, columns, strict=True))
        if len(_parsed) + len(found) > PARSED:
            _parsed.clear()
        _parsed.update(zip(expressions, found, strict=True))
        return found
    return tuple(_parse(expression) for expression in expressions)  # one of them will say what is wrong


def _forms(expression: str) -> tuple[str, str]:
    """What must parse: the line's end closes a comment that would swallow the parenthesis; and by itself it must parse
    too, for "a < 1) or (1 = 1" closes a parenthesis that is not its own."""
    return f"({expression}\n)", f"{expression}\n"


def _tree(expression: str, serialized: str) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(serialized)
    if tree.get("error", True):
        raise ExpressionError(f"{_shown(expression)}: {_reason(str(tree.get('error_message')))}")
    return tree


@lru_cache(maxsize=1)
def _bare() -> Any:
    return _around(json.loads(ask("json_serialize_sql(x)", ["SELECT (1\n)"])[0]))


def _around(tree: Node) -> Any:
    statements = [dict(s) for s in tree["statements"]]
    for statement in statements:
        statement["node"] = {k: v for k, v in statement["node"].items() if k != "select_list"}
    return {k: v for k, v in tree.items() if k != "statements"}, statements


def _check(node: Node, expression: str, columns: dict[str, None]) -> None:
    """Raises ExpressionError unless the node and all below it are of the kinds allowed; collects columns."""
    for child in _children(node, expression, columns):
        _check(child, expression, columns)


def _children(node: Node, expression: str, columns: dict[str, None]) -> Iterator[Node]:
    def refuse(what: str) -> ExpressionError:
        return ExpressionError(f"{_shown(expression)}: {what}")

    def expect(fields: str, neutral: Mapping[str, Any] | None = None) -> None:
        neutral = neutral or {}
        if node.keys() - _COMMON - set(fields.split()) - neutral.keys() or node["alias"]:
            raise refuse("it has a part that is not understood; write it plainer")
        if any(node.get(name, value) != value for name, value in neutral.items()):
            raise refuse("FILTER, ORDER BY, DISTINCT and names with dots are not allowed")

    kind = str(node["type"])
    match node["class"]:
        case "COMPARISON" if kind in _COMPARISONS:
            expect("left right")
            yield from (node["left"], node["right"])
        case "CONJUNCTION" if kind in _CONJUNCTIONS:
            expect("children")
            yield from node["children"]
        case "OPERATOR" if kind in _OPERATIONS:
            expect("children")
            yield from node["children"]
        case "BETWEEN":
            expect("input lower upper")
            yield from (node["input"], node["lower"], node["upper"])
        case "CASE":
            expect("case_checks else_expr")
            for check in node["case_checks"]:
                if check.keys() != {"when_expr", "then_expr"}:
                    raise refuse("its CASE is not understood")
                yield from check.values()
            yield node["else_expr"]
        case "CAST":
            expect("child try_cast type_expr")
            target = node["type_expr"]
            name = str(target.get("type_name")).upper()
            wanted: dict[str, Any] = {"class": "TYPE", "schema": "", "catalog": "", "children": []}
            wanted["qualified_name"] = {"path": [target.get("type_name")]}
            if name not in _CASTS or any(target.get(k, v) != v for k, v in wanted.items()):
                raise refuse(f"a cast to {name} is not allowed; use one of {', '.join(sorted(_CASTS))}")
            yield node["child"]
        case "CONSTANT" if node.get("literal", {}).get("kind") in _LITERALS:
            expect("literal")
        case "COLUMN_REF":
            expect("column_names")
            if len(node["column_names"]) != 1:
                dotted = ".".join(node["column_names"])
                raise refuse(f'{dotted!r} has dots; name a column by itself, in "double quotes" if dots belong to it')
            columns[str(node["column_names"][0])] = None
        case "FUNCTION":
            yield from _arguments(node, refuse, expect)
        case "SUBQUERY":
            raise refuse("subqueries are not allowed")
        case other:
            raise refuse(f"{str(other).lower().replace('_', ' ')} ({kind.lower()}) is not allowed in it")


def _arguments(node: Node, refuse: Any, expect: Any) -> Iterator[Node]:
    name = str(node["function_name"])
    if node["is_operator"] and name not in OPERATORS:
        raise refuse(f"the operator {name} is not allowed; use one of {' '.join(sorted(OPERATORS))}")
    if not node["is_operator"] and name not in FUNCTIONS:
        near = get_close_matches(name, FUNCTIONS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(FUNCTIONS))}"
        raise refuse(f"the function {name} is not allowed; {hint}")
    neutral = {
        "schema": "",
        "catalog": "",
        "filter": None,
        "order_bys": {"type": "ORDER_MODIFIER", "orders": []},
        "distinct": False,
        "export_state": False,
        "qualified_name": {"path": [name]},
        "is_legacy_function_call": False,
    }
    expect("function_name is_operator arguments", neutral)
    arguments = node["arguments"]
    if any(a.keys() != {"name", "expression"} or a["name"] for a in arguments):
        raise refuse(f"the function {name} takes no named arguments")
    if name in _LIKE:
        pattern = arguments[1]["expression"]
        if pattern["class"] != "CONSTANT" or pattern["literal"]["text"].count("%") > WILDCARDS:
            raise refuse(f"a LIKE pattern is a text in quotes with at most {WILDCARDS} %")
    for argument in arguments:
        yield argument["expression"]


def _column(expression: str, table: pa.Table, name: str) -> "pa.ChunkedArray[Any]":
    """A column of the table in one of the few types that SQL sees."""
    known = {column.casefold(): column for column in table.column_names}
    actual = name if name in table.column_names else known.get(name.casefold())
    if actual is None:
        near = get_close_matches(name.casefold(), known, 1)
        hint = f"did you mean {known[near[0]]!r}?" if near else f"there are {', '.join(table.column_names)}"
        raise ExpressionError(f"{_shown(expression)}: there is no column {name!r}; {hint}")
    column = table.column(actual)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_boolean(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return column
    try:
        if pa.types.is_integer(kind):
            return column.cast(pa.int64())
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
            return _without_nan(column.cast(pa.float64(), safe=False))
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return column.cast(pa.string())
    except pa.ArrowInvalid as e:
        raise ExpressionError(f"{_shown(expression)}: column {actual!r} does not fit 64 bits ({e})") from e
    raise ExpressionError(f"{_shown(expression)}: column {actual!r} is {kind}; numbers, text, dates and booleans work")


def _without_nan(numbers: "pa.ChunkedArray[Any]") -> "pa.ChunkedArray[Any]":
    if not pc.any(pc.is_nan(numbers)).as_py():
        return numbers
    clean: pa.ChunkedArray[Any] = pc.if_else(pc.is_nan(numbers), pa.scalar(None, numbers.type), numbers)
    return clean


def _shown(expression: str) -> str:
    return f"expression {expression!r}" if len(expression) <= 120 else f"expression {expression[:120]!r}…"


def _reason(message: str) -> str:
    """The first line of what DuckDB says, in our case and without its pointers into a text the user never saw."""
    first = message.strip().splitlines()[0] if message.strip() else "it does not parse"
    first = re.sub(r"^(\w+ )+Error: ", "", first)
    if first.startswith("Overflow in"):
        first = f"{first.rstrip('!')}; multiply by 1.0 first, to reckon with real numbers"
    return first[:1].lower() + first[1:300]
