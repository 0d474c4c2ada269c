"""The ways a command can end that are the user's to mend, each with its exit status.

A message is lower case and names the value, where it stands and the cure. ``main`` prints it once, without traceback.
"""


class UserError(Exception):
    """Base of every error that is shown as a message alone."""

    status = 2


class BadInput(UserError):
    """The input is wrong: nothing was written."""

    status = 2


class OtherSweep(UserError):
    """The store holds another sweep; the message is the difference."""

    status = 3


class OverBudget(UserError):
    """The plan costs more than the budget: nothing was started."""

    status = 4


class Interrupted(UserError):
    """The user stopped the run; it can be resumed with the same command."""

    status = 130
