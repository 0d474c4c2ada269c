"""Ctrl-C and SIGTERM as an orderly end: in goes a block of work, out comes ``Interrupted`` where a signal came."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from predcube.pipeline.failures import Interrupted

AGAIN_SECONDS = 0.5


@contextmanager
def stoppable(url: str, *, last: bool = False) -> Iterator[None]:
    """Ctrl-C or SIGTERM ends what is inside; more of them do not disturb the cleaning up.

    ``last``: nothing but the process's end follows an interruption, so signals stay without effect after it. A signal
    that was ignored when the process began stays so, and outside the main thread there is nothing to do.
    """
    main = threading.current_thread() is threading.main_thread()
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)} if main else {}
    before = {s: handler for s, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    over = threading.Event()
    insisting: list[threading.Thread] = []

    def stop(number: int, frame: object) -> None:
        if _cleaning_up():
            return
        if not insisting:
            insisting.append(threading.Thread(target=_insist, args=(number, over), daemon=True))
            insisting[0].start()
        raise KeyboardInterrupt

    try:
        for s in before:
            signal.signal(s, stop)
        yield
    except KeyboardInterrupt as e:
        over.set()
        for thread in insisting:
            thread.join()
        raise Interrupted(f"interrupted; run the same command again to go on with {url!r} where it stopped") from e
    finally:
        over.set()
        ending = last and isinstance(sys.exception(), Interrupted | KeyboardInterrupt)
        for s, handler in before.items():
            signal.signal(s, signal.SIG_IGN if ending else handler)


def _insist(number: int, over: threading.Event) -> None:
    """Send the signal until its exception has arrived: one that is raised inside a finaliser, or a callback of the
    garbage collector, is dropped by the interpreter."""
    while not over.wait(AGAIN_SECONDS):
        signal.pthread_kill(threading.main_thread().ident or 0, number)


def _cleaning_up() -> bool:
    """Whether the interrupted code is itself on the way out after an interrupt."""
    error = sys.exception()
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False
