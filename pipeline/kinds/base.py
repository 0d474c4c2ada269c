"""What a kind of sweep is to the rest of the pipeline: its words, its work, its variables, what stands beside them.

Planning, execution, working, reduction and reports serve every kind through this interface alone; what is the science's
own stands behind it. Always true: method, feasibility and operations follow from counts, never from a clock.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from predcube.cluster import Fanout
from predcube.pipeline.opening import INFEASIBLE
from predcube.pipeline.spec.grammar import GRAMMARS, Grammar
from predcube.pipeline.spec.mistakes import Mistakes
from predcube.pipeline.spec.sweep import Sweep
from predcube.pipeline.tiles import Blank, Part, Place, Site
from predcube.storage.schema import Axis
from predcube.tasks.mixture.base import Workload

type Counts = Mapping[str, float]
"""Elementary operations by kernel."""


class Work(Protocol):
    """One trial of a cell, to whoever plans it."""

    def infeasible(self) -> str | None:
        """Why no trial can run, or None. Nothing below may be asked where there is a reason."""
        ...

    def inapplicable(self) -> Mapping[str, str]:
        """Why each quantity that is not measured in this cell is not; what is below is of the others."""
        ...

    def method(self) -> str: ...
    def operations(self) -> Counts: ...
    def shared(self) -> Counts:
        """Those operations that can be fanned out; empty where none can."""
        ...

    def memory(self) -> int:
        """Bytes at the peak of one worker, beyond the interpreter."""
        ...

    def blocks(self) -> int:
        """Into how many blocks one trial can be cut."""
        ...

    def measure(self, trial: int) -> object:
        """A whole trial, to time it."""
        ...

    def longest(self) -> tuple[Callable[[int], object], int] | None:
        """The largest of what can be fanned out, block by block, and its number of blocks, to time one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Cells that are alike in all that method, feasibility and cost depend on: ``works``, one a group, and each cell's
    group (the sweep's shape)."""

    works: tuple[Work, ...]
    which: NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A variable of small integers that says how a value was obtained: ``meanings`` → integer, 0 being missing."""

    name: str
    meanings: Mapping[str, int]
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why cells, or quantities of them, are infeasible, how many cells there are, and one of them in words."""

    reason: str
    cells: int
    example: str


type Say = Callable[[str], None]
"""Says one line to whoever waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What is known of a sweep's data when it is planned: ``lines`` in words; core-``seconds`` and ``passes`` over its
    tables that are left to do before the first tile; ``memory``: bytes of a worker that reads them."""

    lines: tuple[str, ...]
    seconds: float
    passes: int
    memory: int


class Bench(Protocol):
    """A worker's place at one sweep; what it has built it keeps."""

    def inapplicable(self, index: tuple[int, ...]) -> Mapping[str, str]:
        """Why each quantity that cannot be measured in a cell cannot be, all of them where the cell cannot run; empty
        also where that cannot be told."""
        ...

    def workloads(self, place: Place) -> Sequence[Workload]:
        """What of one trial can be fanned out. Raises what stops the trial."""
        ...

    def fill(
        self, blank: Blank, places: Iterable[Place], parts: Mapping[Place, Mapping[int, Part]]
    ) -> Iterator[tuple[Place, str]]:
        """Puts a value or a status at every place; yields what went wrong and where. ``parts``: workloads that were
        fanned out."""
        ...


class Kind(ABC):
    """One kind of sweep."""

    name: str
    leading: tuple[str, ...] = ()
    """The quantities that it is about: what headlines and figures show. All of them where none is named."""

    @property
    def grammar(self) -> Grammar:
        return GRAMMARS[self.name]

    @abstractmethod
    def check(self, sweep: Sweep, mistakes: Mistakes, notes: list[str]) -> Sweep:
        """The sweep with what its sections name read, or mistakes."""

    def prepare(self, sweep: Sweep, url: str | None, say: Say) -> Preparation | None:
        """Whatever has to be looked at before a sweep can be planned; ``url``: of the store, where there is one. Writes
        nothing."""
        return None

    @abstractmethod
    def groups(self, sweep: Sweep, preparation: Preparation | None) -> Groups: ...

    def before(
        self, sweep: Sweep, site: Site, preparation: Preparation | None, fanout: Fanout, say: Say, *, retry: bool
    ) -> None:
        """Whatever the driver has to compute, and keep in the store, before the first tile. ``fanout`` is entered;
        ``retry``: what failed is tried again."""
        return

    @abstractmethod
    def bench(self, site: Site, sweep: Sweep) -> Bench: ...

    def measured(self, sweep: Sweep) -> tuple[str, ...]:
        """The quantities that stand in /trials."""
        return tuple(q for q in sweep.quantities if self.grammar.quantities[q].per_trial)

    @abstractmethod
    def codes(self, sweep: Sweep) -> tuple[Code, ...]:
        """What stands in /trials beside the quantities."""

    @abstractmethod
    def dimensions(self, sweep: Sweep) -> Mapping[str, tuple[str, ...]]:
        """The dimensions that measured quantities and codes have after the trial; nothing of those that have none."""

    @abstractmethod
    def extra_axes(self, sweep: Sweep) -> tuple[Axis, ...]:
        """Those dimensions."""

    def facts(self, sweep: Sweep, store: str) -> tuple[tuple[str, str], ...]:
        """What a report says of the data: each a name and words."""
        return ()

    @abstractmethod
    def beside(self, surfaces: xr.Dataset, sweep: Sweep) -> xr.Dataset:
        """The surfaces with what theory says beside them."""

    @abstractmethod
    def reasons(self, sweep: Sweep, surfaces: xr.Dataset, store: str) -> tuple[Reason, ...]:
        """Why the cells, and the quantities of others, that the surfaces call infeasible are; the most frequent reason
        first."""


def infeasible_places(sweep: Sweep, surfaces: xr.Dataset) -> tuple[NDArray[np.bool_], Mapping[str, NDArray[np.bool_]]]:
    """Where surfaces call a cell infeasible as a whole, and where a quantity of another cell (the sweep's shape)."""
    dims = tuple(a.name for a in sweep.axes)
    axes = {a.name: a.coordinate() for a in sweep.axes}

    def marked(name: str) -> NDArray[np.bool_]:
        status = surfaces[name].reindex(axes, fill_value=np.uint8(0)).transpose(*dims).values
        return np.asarray(status == INFEASIBLE)

    own = {q: marked(f"{q}_status") for q in sweep.quantities if f"{q}_status" in surfaces}
    if not own:
        return marked("status"), {}
    whole = np.logical_and.reduce(list(own.values()))
    return whole, {q: here & ~whole for q, here in own.items()}


def worded(quantity: str, reason: str) -> str:
    """A reason that says of which quantity it is."""
    return reason if quantity in reason else f"{quantity}: {reason}"


def sorted_reasons(sweep: Sweep, found: Mapping[str, NDArray[np.bool_]]) -> tuple[Reason, ...]:
    """Reasons by where they hold (the sweep's shape), the most frequent first."""
    places = {reason: tuple(int(i) for i in np.argwhere(here)[0]) for reason, here in found.items()}
    return tuple(
        Reason(
            reason=reason,
            cells=int(here.sum()),
            example=", ".join(f"{a.name} = {a.values[i]}" for a, i in zip(sweep.axes, places[reason], strict=True)),
        )
        for reason, here in sorted(found.items(), key=lambda item: -int(item[1].sum()))
    )
