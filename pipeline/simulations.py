"""The attacker run on a sweep's tables: in go needs and a cell, out comes a simulation of its breaches and noise.

The complete rows of a table are held in memory, once for all cells that use them. Always true: breaches follow from the
root seed, the process, the number of rows and the trial, so cells that differ in their noise face the same breaches.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from predcube.pipeline.needs import Codes, Needs
from predcube.pipeline.passes import Framed, Reader
from predcube.pipeline.samples import Sample
from predcube.pipeline.spec.schemas import table_of
from predcube.tasks.attackers import Simulation, attack, breach_stream, noise_stream
from predcube.tasks.breaches import Breaches, draw_breaches
from predcube.tasks.frames import Frame
from predcube.tasks.gains import Gains
from predcube.tasks.releases import Fitted

TABLES, BREACHES = 2, 4
"""How many tables, and sets of breaches, a worker keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Collected:
    """Frames in their order."""

    frames: tuple[Frame, ...]

    def add(self, other: Self) -> Self:
        return type(self)(frames=(*self.frames, *other.frames))


def _collected(frame: Frame) -> _Collected:
    return _Collected(frames=(frame,))


def _whole(frames: tuple[Frame, ...]) -> Frame:
    def joined(name: str) -> Any:
        arrays = [getattr(f, name) for f in frames]
        return None if arrays[0] is None else np.concatenate(arrays)

    return Frame(**{name: joined(name) for name in ("queries", "inputs", "column", "target")})


class Simulations:
    """Runs the attacker on cells."""

    def __init__(self, needs: Needs, directory: str) -> None:
        self._needs, self._directory = needs, directory
        self._held: OrderedDict[Any, Any] = OrderedDict()

    def run(self, codes: Codes, trial: int, gains: Gains, fitted: Fitted, sample: Sample) -> Simulation:
        """One trial's draws of a cell. ValueError where a breach leaves nothing to estimate or to predict."""
        needs = self._needs
        _, _, _, p, n, m = codes
        process, noise = needs.processes[p], needs.noises[n]
        draws = int(needs.parts["measure"].values[m]["draws"])
        breaches = self._breaches(codes, trial, draws, fitted, sample)
        rng = noise_stream(needs.sweep.seed, process, noise, sample.rows, trial)
        return attack(breaches, gains, process, noise, measure=needs.measures[m], rng=rng)

    def _breaches(self, codes: Codes, trial: int, draws: int, fitted: Fitted, sample: Sample) -> Breaches:
        t, q, r, p, _, _ = codes
        process = self._needs.processes[p]

        def drawn() -> Breaches:
            frame, moments = self._table(t, q, r, p, fitted, sample)
            rng = breach_stream(self._needs.sweep.seed, process, sample.rows, trial)
            return draw_breaches(frame, moments, process, groups=sample.groups, draws=draws, rng=rng)

        found: Breaches = self._kept(("breaches", t, q, r, p, trial, draws), BREACHES, drawn)
        return found

    def _table(
        self, t: int, q: int, r: int, p: int, fitted: Fitted, sample: Sample
    ) -> tuple[Frame, NDArray[np.float64]]:
        """The complete rows of a cell's sample, and their moments g."""
        leader = self._needs.leaders[p]
        found: tuple[Frame, NDArray[np.float64]] = self._kept(
            ("table", t, q, r, leader), TABLES, partial(self._read, t, q, r, leader, fitted, sample)
        )
        return found

    def _read(
        self, t: int, q: int, r: int, leader: int, fitted: Fitted, sample: Sample
    ) -> tuple[Frame, NDArray[np.float64]]:
        rows = table_of(self._needs.tables[t], self._directory)
        ask = Framed(view=self._needs.view(q, r, leader), request=_collected, groups=sample.groups)
        [found] = Reader(rows=rows, longest=self._needs.longest(t)).read([ask])
        if found.error is not None or found.state is None:
            raise ValueError(found.error or "no complete row is left")
        frame = _whole(found.state.frames)
        return frame, fitted.moments(frame.inputs)

    def _kept(self, key: Any, most: int, make: Callable[[], Any]) -> Any:
        """What was made for a key; of its kind the latest ``most`` are held."""
        if key not in self._held:
            self._held[key] = make()
            alike = [k for k in self._held if k[0] == key[0]]
            for old in alike[: len(alike) - most]:
                del self._held[old]
        self._held.move_to_end(key)
        return self._held[key]
