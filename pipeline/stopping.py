"""Ctrl-C and SIGTERM as an orderly end: in goes a block of work, out comes ``Interrupted`` where a signal came."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from predcube.pipeline.failures import Interrupted


@contextmanager
def stoppable(url: str) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM ends what is inside; a second one does not disturb the cleaning up.

    A signal that was ignored when the process began stays so, and outside the main thread there is nothing to do.
    """
    main = threading.current_thread() is threading.main_thread()
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)} if main else {}
    before = {s: handler for s, handler in before.items() if handler not in (signal.SIG_IGN, None)}

    def stop(number: int, frame: object) -> None:
        for s in before:
            signal.signal(s, signal.SIG_IGN)
        raise KeyboardInterrupt

    try:
        for s in before:
            signal.signal(s, stop)
        yield
    except KeyboardInterrupt as e:
        raise Interrupted(f"interrupted; run the same command again to go on with {url!r} where it stopped") from e
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
