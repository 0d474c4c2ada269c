"""Back-ends by name: in goes a name, out comes a fan-out that is not started yet."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from predcube.cluster.base import Fanout


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A back-end. ``open(workers, initialise)`` makes its fan-out; ``unavailable()`` says why it cannot run here, or
    None."""

    name: str
    description: str
    open: Callable[[int | None, Callable[[], None] | None], Fanout]
    unavailable: Callable[[], str | None] = lambda: None


def _serial(workers: int | None, initialise: Callable[[], None] | None) -> Fanout:
    from predcube.cluster.serial import SerialFanout

    if workers not in (None, 1):
        raise ValueError(f"--workers {workers}: the serial back-end is one process; leave it out, or --cluster local")
    return SerialFanout(initialise=initialise)


def _local(workers: int | None, initialise: Callable[[], None] | None) -> Fanout:
    # distributed takes a quarter of a second to import, which the serial back-end and the listing need not pay.
    from predcube.cluster.local import LocalFanout

    return LocalFanout(workers=workers, initialise=initialise)


def _no_distributed() -> str | None:
    from importlib.util import find_spec

    return None if find_spec("distributed") else "the package distributed is not installed"


PROFILES: dict[str, Profile] = {
    "local": Profile(
        name="local",
        description="a Dask cluster of processes on this machine, one thread each (default)",
        open=_local,
        unavailable=_no_distributed,
    ),
    "serial": Profile(name="serial", description="this process alone, one tile after another", open=_serial),
}


def connect(name: str = "local", *, workers: int | None = None, initialise: Callable[[], None] | None = None) -> Fanout:
    """The fan-out called ``name`` with ``workers`` workers (default: the cores this process may use).

    ``initialise`` (picklable) prepares each worker process before its first job. Raises ValueError for a name that is
    not built in, a number of workers that cannot be, and a back-end that cannot run here.
    """
    profile = PROFILES.get(name)
    if profile is None:
        near = get_close_matches(name, PROFILES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(PROFILES)}"
        raise ValueError(f"--cluster {name}: no such back-end; {hint}")
    reason = profile.unavailable()
    if reason is not None:
        raise ValueError(f"--cluster {name}: {reason}; predcube clusters lists what can run here")
    if workers is not None and workers < 1:
        raise ValueError(f"--workers {workers}: must be at least 1")
    return profile.open(workers, initialise)
