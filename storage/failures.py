"""What can be wrong with a store or a file that the user named; the message names it and the cure."""


class StoreError(Exception):
    """The store or file cannot be read, written or is not what it was taken for."""

    status = 2
