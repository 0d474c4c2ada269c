"""Several fits of one table side by side: in go fits that each ask for passes one after another, out come their results
from as few passes as the one that asks for most.

Each fit runs in a thread and waits where it asks; when all of them wait or have ended, what they ask is added up in one
pass. Always true: what a fit is answered does not depend on the others, so neither does its result.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from predcube.pipeline.passes import Sum
from predcube.tasks.frames import Frame, State

TOGETHER = 64
"""Fits that run at a time."""

type Fit = Callable[[Callable[[Any], Any]], Any]
"""Takes a total (a request in, its sum out) and gives a result."""

type Requests = Mapping[str, Callable[[Frame], State]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """How a fit ended: its result, or the one-line ``error``."""

    result: Any = None
    error: str | None = None


@dataclass(slots=True, kw_only=True)
class _Run:
    """What the threads and the one that reads share."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    asked: dict[str, Callable[[Frame], State]] = field(default_factory=dict)
    answers: dict[str, Sum] = field(default_factory=dict)
    ended: dict[str, Fate | BaseException] = field(default_factory=dict)
    given_up: bool = False


class _GivenUp(BaseException):
    """Ends the threads of a run that was interrupted."""


def side_by_side(fits: Mapping[str, Fit], read: Callable[[Requests], Mapping[str, Sum]]) -> dict[str, Fate]:
    """Runs every fit. ``read`` answers what some of them ask, in the calling thread.

    A ValueError of a fit is its fate; anything else that is raised ends the run.
    """
    fates: dict[str, Fate] = {}
    names = list(fits)
    for start in range(0, len(names), TOGETHER):
        fates |= _together({name: fits[name] for name in names[start : start + TOGETHER]}, read)
    return fates


def _together(fits: Mapping[str, Fit], read: Callable[[Requests], Mapping[str, Sum]]) -> dict[str, Fate]:
    run = _Run()
    threads = [threading.Thread(target=_fit, args=(run, name, fit), daemon=True) for name, fit in fits.items()]
    for thread in threads:
        thread.start()
    try:
        while True:
            with run.changed:
                run.changed.wait_for(lambda: len(run.asked) + len(run.ended) == len(fits))
                asked = {name: run.asked[name] for name in fits if name in run.asked}
            if not asked:
                break
            answers = read(asked)
            with run.changed:
                run.asked.clear()
                run.answers.update(answers)
                run.changed.notify_all()
    finally:
        with run.changed:
            run.given_up = True
            run.changed.notify_all()
        for thread in threads:
            thread.join()
    fates = {}
    for name, fate in run.ended.items():
        if isinstance(fate, BaseException):
            raise fate
        fates[name] = fate
    return {name: fates[name] for name in fits}


def _fit(run: _Run, name: str, fit: Fit) -> None:
    def total(request: Callable[[Frame], State]) -> Any:
        with run.changed:
            run.asked[name] = request
            run.changed.notify_all()
            run.changed.wait_for(lambda: name in run.answers or run.given_up)
            if name not in run.answers:
                raise _GivenUp
            answer = run.answers.pop(name)
        if answer.error is not None:
            raise ValueError(answer.error)
        if answer.state is None:
            raise ValueError("no complete row is left: every row lacks a value that is used")
        return answer.state

    ended: Fate | BaseException
    try:
        ended = Fate(result=fit(total))
    except ValueError as e:
        ended = Fate(error=str(e))
    except BaseException as e:  # handed to the thread that reads
        ended = e
    with run.changed:
        run.ended[name] = ended
        run.changed.notify_all()
