"""Jobs on a Dask cluster of processes on this machine, one thread each."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from tempfile import TemporaryDirectory
from typing import Any, Self

import dask.config
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster, WorkerPlugin
from distributed.deploy.spec import SpecCluster
from distributed.system import MEMORY_LIMIT
from distributed.utils import LoopRunner

from predcube.cluster import waves
from predcube.cluster.base import Job, Outcome, Program
from predcube.cluster.failures import ClusterError

# Set before a worker's process starts: libraries and Dask's logging read it when they are imported.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "DASK_LOGGING__DISTRIBUTED": "critical",
}
# The driver shares the cores with its workers: what Dask does for a dashboard nobody looks at is turned down.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.multiprocessing-method": "spawn",
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.memory.monitor-interval": "500ms",
    # How long fetching a result from a worker that just died is tried, while everything else waits.
    "distributed.comm.timeouts.connect": "10s",
    "distributed.comm.retry.count": 0,
    "distributed.scheduler.allowed-failures": 3,
    "distributed.nanny.pre-spawn-environ": ENVIRONMENT,
}
START_SECONDS = 120  # a worker imports for a second; a host under load, or a cold disk, takes longer
LOGGERS = ("distributed", "tornado", "asyncio")


class Initialise(WorkerPlugin):  # type: ignore[misc]
    """Prepares every worker, those that replace a dead one too."""

    name = "predcube-initialise"

    def __init__(self, initialise: Callable[[], None] | None) -> None:
        self._initialise = initialise

    def setup(self, worker: Any) -> None:
        _ignore_interrupts()
        if self._initialise is not None:
            self._initialise()


def _ignore_interrupts() -> None:
    # A terminal's Ctrl-C goes to every process of the group; only the driver answers it. Where a worker does not run
    # in its process's main thread it has no say, and needs none.
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _ready() -> None:
    pass


def usable_cores() -> int:
    """Cores that this process may use (affinity and container limits counted)."""
    return int(CPU_COUNT)


class LocalFanout:
    """``workers`` processes; ``initialise`` (picklable) runs in each before its first task."""

    def __init__(self, *, workers: int | None = None, initialise: Callable[[], None] | None = None) -> None:
        self._workers = usable_cores() if workers is None else workers
        self._initialise = initialise
        self._stack = ExitStack()
        self._client: Client | None = None

    @property
    def workers(self) -> int:
        return self._workers

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(_silence())
            stack.enter_context(dask.config.set(QUIET))
            stack.enter_context(_main_not_imported())
            folder = stack.enter_context(TemporaryDirectory(prefix="predcube-", ignore_cleanup_errors=True))
            loop = stack.enter_context(_loop())
            with _held_back(signal.SIGINT, signal.SIGTERM):  # half a cluster could not be closed
                cluster = LocalCluster(
                    n_workers=0,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",  # None would take port 8787
                    silence_logs=logging.CRITICAL,
                    local_directory=folder,
                    memory_limit=MEMORY_LIMIT // self._workers,
                    loop=loop,
                )
                stack.callback(_stop, cluster)
            self._client = stack.enter_context(Client(cluster))
            self._client.register_plugin(Initialise(self._initialise))
            cluster.scale(self._workers)
            try:
                self._client.wait_for_workers(self._workers, timeout=START_SECONDS)
            except TimeoutError as e:
                raise ClusterError(
                    f"none or too few of {self._workers} workers started within {START_SECONDS} s; "
                    "run with --cluster serial to see what stops them, or take fewer workers"
                ) from e
            self._client.run(_ready)  # answered once a worker is prepared, so that no job pays for it
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._client = None
        self._stack.__exit__(*exception)

    def run(self, program: Program, jobs: Iterable[Job]) -> Generator[Outcome]:
        if self._client is None:
            raise RuntimeError("enter the fan-out first: with connect(…) as fanout")
        return waves.run(self._client, program, jobs, workers=self._workers)


def _stop(cluster: LocalCluster) -> None:
    """Close the cluster without waiting for what its workers still do: a task cannot be stopped, and a worker that is
    asked to leave while it starts prints a traceback. They hold nothing that is not in the store or to be redone."""
    closed = threading.Event()

    def end_workers() -> None:
        while True:  # one that is about to start has no process yet, and closing waits for it
            for nanny in list(cluster._created):  # those that are starting too, which ``workers`` does not hold
                nanny.auto_restart = False
                process = getattr(nanny.process, "process", None)
                if process is not None and process.pid is not None:
                    with suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGKILL)
            if closed.wait(0.05):
                return

    ending = threading.Thread(target=end_workers, name="predcube-end-workers", daemon=True)
    ending.start()
    try:
        cluster.close(timeout=5)
    except Exception:
        # Not to be tried again for ten seconds when the interpreter exits, which ends the processes in any case.
        SpecCluster._instances.discard(cluster)
    finally:
        closed.set()
        ending.join()


@contextmanager
def _loop() -> Iterator[Any]:
    """An event loop in a thread that has SIGINT blocked: its children inherit that, so a worker is deaf to Ctrl-C from
    its first instruction, and not only once its plugin has run."""
    # Started by a worker's start, the tracker would unblock the signal in the thread that starts workers.
    resource_tracker.ensure_running()
    runner = LoopRunner()
    with _held_back(signal.SIGINT):
        runner.start()
    try:
        yield runner.loop
    finally:
        runner.stop()


@contextmanager
def _held_back(*signals: signal.Signals) -> Iterator[None]:
    """Signals that come meanwhile are delivered afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing that Dask says while it starts, loses a worker or stops is for the user."""
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def _main_not_imported() -> Iterator[None]:
    """Spawned processes import the main script again, which would start the sweep anew where a user's script has no
    ``if __name__ == "__main__"``. No task of ours lives there, so workers do not need it."""
    main = sys.modules["__main__"]
    path = main.__dict__.pop("__file__", None) if main.__spec__ is None else None
    try:
        yield
    finally:
        if path is not None:
            main.__file__ = path
