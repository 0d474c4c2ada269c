"""Jobs in this process, one after another: the twin of every distributed back-end, with the same bits."""

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from predcube.cluster.attempts import Stack, attempt, finish, outcome
from predcube.cluster.base import Job, Outcome, Program


class SerialFanout:
    """``initialise`` runs once, here, when the fan-out is entered."""

    workers = 1

    def __init__(self, *, initialise: Callable[[], None] | None = None) -> None:
        self._initialise = initialise
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        # Workers have one BLAS thread each, and a long dot product on two threads has another last bit than on one.
        self._stack.enter_context(threadpool_limits(limits=1, user_api="blas"))
        if self._initialise is not None:
            self._initialise()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def run(self, program: Program, jobs: Iterable[Job]) -> Generator[Outcome]:
        for job in jobs:
            roots: list[Any] = []
            done = 0
            for group in job.leaves:
                stack = Stack(partial(attempt, program.combine))
                for leaf in group:
                    stack.push(attempt(program.leaf, leaf))
                    done += 1
                    yield Outcome(key=job.key, leaves_done=done)
                roots.append(stack.root())
            yield outcome(job, finish(program.finish, job.payload, *roots))
