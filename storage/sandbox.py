"""DuckDB for questions about rows in memory: in go a statement of ours and Arrow rows, out comes its answer.

Always true: the connection reaches no file, network, extension or setting, whatever is run on it. What strangers write
is checked before (``expressions``); this is the second wall.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa

_SETTINGS = (
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET autoload_known_extensions = false",
    "SET autoinstall_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",
    "SET threads = 1",
    "SET TimeZone = 'UTC'",
    "SET lock_configuration = true",
)


@contextmanager
def leased() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of one's own for a while: it serves one question at a time, and an answer not yet fetched is one."""
    try:
        connection = _idle.pop()
    except IndexError:
        connection = duckdb.connect(":memory:")
        for setting in _SETTINGS:
            connection.execute(setting)
    try:
        yield connection
    finally:
        _idle.append(connection)


_idle: list[duckdb.DuckDBPyConnection] = []  # append and pop are atomic


@contextmanager
def registered(rows: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection on which the rows are the view ``rows_``."""
    with leased() as connection:
        connection.register("rows_", rows)
        try:
            yield connection
        finally:
            connection.unregister("rows_")


def ask(question: str, values: Sequence[str]) -> list[str]:
    """The answers, in order, to a question of ours about x, for each of the values: one is as dear as a hundred."""
    with leased() as connection:
        asked = f"SELECT {question} FROM (SELECT unnest(?::VARCHAR[]) AS x)"
        return [str(answer) for [answer] in connection.execute(asked, [list(values)]).fetchall()]
