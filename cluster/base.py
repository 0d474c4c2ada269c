"""The fan-out's interface: in go jobs, out come outcomes as they end, in any order.

Always true: what a job computes is a function of its payload alone, so a serial run and a distributed run give the
same bits. Nothing here knows what a job means.
"""

from collections.abc import Callable, Generator, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One unit of output (a tile).

    ``payload`` is plain picklable data below 1 MB. ``leaves`` are the payloads of the pieces that are computed
    first, each group a fixed tree: ``leaves[g]`` are group g's leaf payloads in order. A job without groups is just
    ``finish(payload, ())``.
    """

    key: Hashable
    payload: Any
    leaves: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The three picklable functions (module-level, or ``functools.partial`` of those) that give jobs their meaning.

    ``leaf(leaf_payload) -> partial``; ``combine(left, right) -> partial``, applied pair by pair in a fixed binary
    tree (neighbours of equal height; an odd one out moves up unchanged); ``finish(payload, roots) -> result``, where
    ``roots`` has the combined partial of each group.
    """

    leaf: Callable[[Any], Any]
    combine: Callable[[Any, Any], Any]
    finish: Callable[[Any, tuple[Any, ...]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a job ended: exactly one of ``result`` and ``error`` says so. ``error`` is one line, without traceback;
    ``traceback`` is kept for ``--debug``."""

    key: Hashable
    result: Any = None
    error: str | None = None
    traceback: str | None = None
    leaves_done: int | None = None  # set (with neither result nor error) on a progress report inside a job


class Fanout(Protocol):
    """A place where jobs run. A context manager; leaving it stops what it started and nothing else."""

    @property
    def workers(self) -> int: ...
    def run(self, program: Program, jobs: Iterable[Job]) -> Generator[Outcome]:
        """Yields outcomes as jobs end. Jobs are taken from the iterable in waves, never all at once. Closing the
        generator gives up what is in flight."""
        ...

    def __enter__(self) -> "Fanout": ...
    def __exit__(self, *exception: object) -> None: ...
