"""Jobs on a Dask client: in go jobs, out come outcomes as they end, with a few tasks per worker in flight.

Always true: a job's tree is the one the serial twin builds, so its bits are too. A task that kills its workers costs
its own job and no other: the tasks that were waiting on the same workers are tried again, each alone.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any

from distributed import Client, Future, KilledWorker

from predcube.cluster.attempts import Failure, Stack, attempt, describe, finish, outcome
from predcube.cluster.base import Job, Outcome, Program

# A wave is sent when LOW tasks per worker are left and fills up to HIGH: a worker never waits for the driver, and the
# scheduler never holds a sweep's worth of tasks.
LOW, HIGH = 2, 4
# Inner nodes and finishes go before leaves, so that partial results do not pile up.
FIRST = 10


@dataclass(slots=True)
class _Attempt:
    """One try at a job. ``lost``: a leaf failed, so its other leaves are not sent. ``ended``: its outcome is known, so
    leaves that still come in say nothing."""

    job: Job
    done: int = 0
    lost: bool = False
    ended: bool = False


class _Run:
    """The tasks of one ``run``. ``_live`` holds every future that is waited for (a job's last one and its leaves) with
    its attempt and whether it is the last."""

    def __init__(self, client: Client, program: Program) -> None:
        self._client = client
        self._program = program
        self._ended: SimpleQueue[Future] = SimpleQueue()
        self._live: dict[str, tuple[Future, _Attempt, bool]] = {}

    def outcomes(self, jobs: Iterable[Job], *, low: int, high: int) -> Iterator[tuple[Job, Outcome, bool]]:
        """Every outcome with its job and whether the job lost its workers (and nothing else)."""
        steps = self._steps(jobs)
        more = True
        while more or self._live:
            while more and len(self._live) <= low:
                more = self._wave(steps, high - len(self._live))
            if not self._live:
                break
            future = self._ended.get()
            if not future.done():  # its worker died with the result before we were here
                future.add_done_callback(self._ended.put)
                continue
            _, tried, last = self._live.pop(future.key)
            value, killed = _value(future)
            if last:
                tried.ended = True
                yield tried.job, outcome(tried.job, value), killed
            elif not tried.ended:
                tried.lost = tried.lost or isinstance(value, Failure)
                tried.done += 1
                yield tried.job, Outcome(key=tried.job.key, leaves_done=tried.done), False

    def cancel(self) -> None:
        futures = [future for future, _, _ in self._live.values()]
        self._live.clear()
        if futures and self._client.status == "running":
            self._client.cancel(futures)

    def _wave(self, steps: "Iterator[_Attempt | Callable[[], None]]", room: int) -> bool:
        """Send up to ``room`` tasks; False when there is nothing more to send."""
        whole: list[_Attempt] = []
        more = False
        for step in steps:
            if isinstance(step, _Attempt):
                whole.append(step)
            else:
                step()
            room -= 1
            if room <= 0:
                more = True
                break
        if whole:
            # One graph for a wave costs a third of one for each task.
            futures = self._client.map(
                partial(finish, self._program.finish), [t.job.payload for t in whole], pure=False, key="tile"
            )
            for tried, future in zip(whole, futures, strict=True):
                self._wait(future, tried, last=True)
        return more

    def _steps(self, jobs: Iterable[Job]) -> "Iterator[_Attempt | Callable[[], None]]":
        """What is to be sent, in order: whole jobs, and the leaves of split ones (the tree over them goes along)."""
        for job in jobs:
            tried = _Attempt(job)
            if not job.leaves:
                yield tried
                continue
            roots: list[Future] = []
            for group in job.leaves:
                stack = Stack(partial(self._submit, attempt, self._program.combine))
                for leaf in group:
                    yield partial(self._leaf, tried, stack, leaf)
                    if tried.lost:
                        break
                roots.append(stack.root())
                if tried.lost:  # one of the roots so far is a failure, which the last step passes on
                    break
            self._wait(self._submit(finish, self._program.finish, job.payload, *roots), tried, last=True)

    def _leaf(self, tried: _Attempt, stack: Stack, leaf: Any) -> None:
        future = self._client.submit(attempt, self._program.leaf, leaf, pure=False)
        self._wait(future, tried, last=False)
        stack.push(future)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        return self._client.submit(function, *arguments, pure=False, priority=FIRST)

    def _wait(self, future: Future, tried: _Attempt, *, last: bool) -> None:
        self._live[future.key] = (future, tried, last)
        future.add_done_callback(self._ended.put)


def _value(future: Future) -> tuple[Any, bool]:
    """What a task gave, and whether it was given up because its workers died."""
    try:
        return future.result(), False
    except KilledWorker as e:
        text = (
            f"the worker died {e.allowed_failures + 1} times while it ran this: out of memory, or a crash in compiled "
            "code; give each worker more memory (--workers 1) or make the cell smaller"
        )
        return Failure(error=text, traceback=text), True
    except Exception as e:
        return Failure(error=describe(e), traceback=describe(e)), False


def run(client: Client, program: Program, jobs: Iterable[Job], *, workers: int) -> Generator[Outcome]:
    """Run jobs on a client with ``workers`` one-thread workers, in waves.

    Closing the generator cancels what is in flight.
    """
    tasks = _Run(client, program)
    suspects: list[Job] = []
    try:
        for job, result, killed in tasks.outcomes(jobs, low=LOW * workers, high=HIGH * workers):
            if killed:
                suspects.append(job)
            else:
                yield result
        # A dying worker takes the blame for all tasks sent to it, not only for the one it ran: alone, a task that dies
        # again is the culprit.
        for suspect in suspects:
            for _, result, _ in tasks.outcomes([suspect], low=0, high=1):
                yield result
    finally:
        tasks.cancel()
