"""Several releases at once: in go their parameters, out comes one release of all their coordinates (P2 A.10)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from predcube.tasks.frames import Frame, Request, State, Total
from predcube.tasks.releases.base import Fitted, Release
from predcube.tasks.releases.whitening import whitened

type Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack(Release):
    """The composition of ``releases``: built ones, or mappings of a kind and its parameters; a stack may hold stacks.

    λ and g are those of the members one after the other. Each member has noise of its own. It predicts nothing itself,
    so it has no utility.
    """

    kind: ClassVar[str] = "stack"
    source: ClassVar[str] = "P2 Appendix A.10"

    releases: tuple[Release, ...]

    def __post_init__(self) -> None:
        if isinstance(self.releases, str | Mapping) or not isinstance(self.releases, list | tuple):
            raise ValueError(f"{self.kind}: releases = {self.releases!r} must be a list of releases")
        if not self.releases:
            raise ValueError(f"{self.kind}: releases is empty: give at least one")
        object.__setattr__(self, "releases", tuple(_built(r, i) for i, r in enumerate(self.releases)))

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for member in self.releases for name in member.inputs))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{i}: {name}" for i, member in enumerate(self.releases, 1) for name in member.names)

    def parameters(self) -> Mapping[str, Any]:
        return {"releases": [{"kind": member.kind, **member.parameters()} for member in self.releases]}

    def fit(self, total: Total) -> Fitted:
        return whitened(self.bare(total), total)

    def bare(self, total: Total) -> Fitted:
        columns, parts = [], []
        position = {name: j for j, name in enumerate(self.inputs)}
        for i, member in enumerate(self.releases):
            own = np.array([position[name] for name in member.inputs])
            try:
                parts.append(member.bare(_Narrowed(total, own)))
            except ValueError as e:
                raise ValueError(f"{self.kind}: releases[{i}]: {e}") from e
            columns.append(own)
        return FittedStack(
            estimate=np.concatenate([part.estimate for part in parts]),
            curvature=block_diag(*(part.curvature for part in parts)),
            units=block_diag(*(part.units for part in parts)),
            released=block_diag(*(part.released for part in parts)),
            fixed=block_diag(*(part.fixed for part in parts)),
            grain=np.concatenate([part.grain for part in parts]),
            stretch=max(part.stretch for part in parts),
            blurred=any(part.blurred for part in parts),
            rank=sum(part.rank for part in parts),
            condition=max(part.condition for part in parts),
            rows=parts[0].rows,
            parts=tuple(parts),
            columns=tuple(columns),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedStack(Fitted):
    """parts: the members. columns: the positions of each member's inputs among the stack's."""

    parts: tuple[Fitted, ...]
    columns: tuple[NDArray[np.int64], ...]

    def moments(self, inputs: Floats, shift: Floats | None = None) -> Floats:
        """Rows (m, d): the members' rows side by side."""
        ends = np.cumsum([part.estimate.size for part in self.parts])
        shifts = [None] * len(ends) if shift is None else np.split(shift, ends[:-1])
        return np.concatenate(
            [part.moments(inputs[:, own], by) for part, own, by in zip(self.parts, self.columns, shifts, strict=True)],
            axis=1,
        )

    def rounding(self, sd: Floats) -> Floats:
        ends = np.cumsum([part.estimate.size for part in self.parts])[:-1]
        return np.concatenate([part.rounding(of) for part, of in zip(self.parts, np.split(sd, ends), strict=True)])

    @property
    def members(self) -> tuple[int, ...]:
        return tuple(size for part in self.parts for size in part.members)


@dataclass(frozen=True, slots=True)
class _Narrowed:
    """A total over some of the inputs."""

    total: Total
    columns: NDArray[np.int64]

    def __call__[S: State](self, request: Request[S], /) -> S:
        return self.total(_NarrowRequest(request, self.columns))


@dataclass(frozen=True, slots=True)
class _NarrowRequest[S: State]:
    request: Request[S]
    columns: NDArray[np.int64]

    def __call__(self, frame: Frame) -> S:
        return self.request(replace(frame, inputs=frame.inputs[:, self.columns]))


def _built(release: Any, index: int) -> Release:
    if isinstance(release, Release):
        return release
    place = f"{Stack.kind}: releases[{index}]"
    if not isinstance(release, Mapping) or "kind" not in release:
        raise ValueError(f"{place} = {release!r} must be a table with a kind and its parameters")
    from predcube.tasks.releases import build  # the registry holds this class

    try:
        return build(**release)
    except ValueError as e:
        raise ValueError(f"{place}: {e}") from e
