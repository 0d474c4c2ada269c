"""One step of a job, kept from ever raising: in go a function and its arguments, out comes its value or a ``Failure``.

Always true: a ``Failure`` among the arguments comes out again unchanged, so it travels up a job's tree to its outcome
and no later step runs on half a result. An exception that cannot be pickled cannot be lost on the way either.
"""

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from predcube.cluster.base import Job, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An exception as text."""

    error: str
    traceback: str


def describe(error: BaseException) -> str:
    """An exception on one line. The class is named unless the message was written for the reader (ValueError)."""
    text = " ".join(str(error).split())
    return text if text and isinstance(error, ValueError) else f"{type(error).__name__}: {text}".removesuffix(": ")


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(*arguments)``, or the ``Failure`` that it or one of the arguments is.

    >>> attempt(int, "x").error
    "invalid literal for int() with base 10: 'x'"
    """
    for argument in arguments:
        if isinstance(argument, Failure):
            return argument
    try:
        return function(*arguments)
    except Exception as e:
        return Failure(error=describe(e), traceback="".join(traceback.format_exception(e)))


def finish(function: Callable[[Any, tuple[Any, ...]], Any], payload: Any, *roots: Any) -> Any:
    """The last step of a job, with its roots as separate arguments (a scheduler looks for them there)."""
    return attempt(_gather, function, payload, *roots)


def _gather(function: Callable[[Any, tuple[Any, ...]], Any], payload: Any, *roots: Any) -> Any:
    return function(payload, roots)


def outcome(job: Job, value: Any) -> Outcome:
    """How a job ended, from what its last step gave."""
    if isinstance(value, Failure):
        return Outcome(key=job.key, error=value.error, traceback=value.traceback)
    return Outcome(key=job.key, result=value)


class Stack:
    """The fixed tree over a group's leaves, built from left to right with a place for each height only.

    ``push`` takes the leaves in order; ``root`` gives the whole. Pairs of equal height are joined as soon as both are
    there, the odd ones at the end from the right: the tree in which neighbours are paired level by level and an odd
    one moves up unchanged.

    >>> tree = Stack(lambda a, b: f"({a}{b})")
    >>> for leaf in "01234":
    ...     tree.push(leaf)
    >>> tree.root()
    '(((01)(23))4)'
    """

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine
        self._nodes: list[tuple[int, Any]] = []

    def push(self, leaf: Any) -> None:
        level, node = 0, leaf
        while self._nodes and self._nodes[-1][0] == level:
            node = self._combine(self._nodes.pop()[1], node)
            level += 1
        self._nodes.append((level, node))

    def root(self) -> Any:
        nodes = [node for _, node in self._nodes]
        if not nodes:
            raise ValueError("a group has no leaves; leave the group out")
        total = nodes.pop()
        while nodes:
            total = self._combine(nodes.pop(), total)
        return total


def tree(combine: Callable[[Any, Any], Any], leaves: Iterable[Any]) -> Any:
    """The whole of a group in one process."""
    stack = Stack(combine)
    for leaf in leaves:
        stack.push(leaf)
    return stack.root()
