"""What can be wrong with a store or a file that the user named; the message names it and the cure."""


class StoreError(Exception):
    """The store or file cannot be read, written or is not what it was taken for."""

    status = 2


class TableError(StoreError):
    """A user's table cannot be read, or has not what was asked of it."""


class ExpressionError(StoreError):
    """An SQL expression does not parse, is not a per-row expression over known columns, or fails on the data."""
