"""What can be wrong with a place where jobs were to run; the message names it and the cure."""


class ClusterError(Exception):
    """The back-end did not come up. Nothing was computed; the same command goes on once it does."""

    status = 2
