"""What a run shows while it runs: in go tiles as they end, out comes a live line in a terminal, or one every few
seconds elsewhere.

Shown are tiles done, failed and left, cells a second and the time that is left, by the plan's seconds (tiles differ).
"""

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@dataclass(slots=True, kw_only=True)
class Tally:
    """How far a run is. ``planned`` seconds are the plan's, ``cells`` count a cell's trials together as one."""

    tiles: int
    done: int
    failed: int
    planned_left: float
    planned_done: float = 0.0
    cells: float = 0.0
    begun: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> int:
        return self.tiles - self.done - self.failed

    def line(self) -> str:
        """The state in words."""
        elapsed = max(time.monotonic() - self.begun, 1e-9)
        parts = [f"{self.done} of {self.tiles} tiles done", f"{self.failed} failed", f"{self.left} left"]
        if self.cells:
            parts.append(f"{self.cells / elapsed:.3g} cells/s")
        if self.planned_done > 0 and self.left:
            parts.append(f"about {_clock(elapsed * self.planned_left / self.planned_done)} to go")
        return ", ".join(parts)


class Display(Protocol):
    """Where progress goes. A context manager around the time it is shown."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def begin(self, tally: Tally) -> None: ...
    def update(self, tally: Tally) -> None: ...
    def say(self, text: str) -> None:
        """One line that stays."""
        ...


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def begin(self, tally: Tally) -> None:
        pass

    def update(self, tally: Tally) -> None:
        pass

    def say(self, text: str) -> None:
        pass


class Lines(Silent):
    """A line on standard error now and then: for logs."""

    def __init__(self, *, every: float = 5.0) -> None:
        self._every = every
        self._next = 0.0

    def begin(self, tally: Tally) -> None:
        self.say(tally.line())
        self._next = time.monotonic() + self._every

    def update(self, tally: Tally) -> None:
        if time.monotonic() >= self._next or not tally.left:
            self.begin(tally)

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class Live(Silent):
    """A bar that is redrawn twice a second: for a terminal."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._progress = Progress(
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            refresh_per_second=2,
        )
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def begin(self, tally: Tally) -> None:
        if self._progress is not None:
            self._task = self._progress.add_task(tally.line(), total=tally.planned_left or None)

    def update(self, tally: Tally) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=tally.planned_done, description=tally.line())

    def say(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False)


def display(*, quiet: bool = False) -> Display:
    """What suits standard error."""
    if quiet:
        return Silent()
    return Live() if sys.stderr.isatty() else Lines()


def _clock(seconds: float) -> str:
    """
    >>> _clock(75), _clock(7300)
    ('1:15', '2:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
