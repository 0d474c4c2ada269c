"""Signals end a block of work once, in order, wherever they fall."""

# ruff: noqa: PT012  (what stands inside the block is what is tested)

import os
import signal
import threading
import time

import pytest

from predcube.pipeline.failures import Interrupted
from predcube.pipeline.stopping import stoppable

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def send(number: signal.Signals = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def rest(seconds: float) -> None:
    """Sleeps that end with the interrupt."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_becomes_an_interruption_and_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match=r"run the same command again to go on with 'a\.zarr'"), stoppable("a.zarr"):
        send(number)
        rest(2)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_more_signals_do_not_disturb_the_cleaning_up() -> None:
    cleaned = []
    with pytest.raises(Interrupted), stoppable("x"):
        try:
            send()
            rest(2)
        finally:
            send()
            rest(0.8)  # longer than it takes to insist
            try:
                raise TimeoutError
            except TimeoutError:
                send(signal.SIGTERM)
                rest(0.05)
            cleaned.append(True)
    assert cleaned == [True]


def test_an_interrupt_that_the_interpreter_drops_comes_again() -> None:
    class Finalised:
        def __del__(self) -> None:
            send()
            rest(0.1)

    begun = time.monotonic()
    with pytest.raises(Interrupted), stoppable("x"):
        thing = Finalised()
        del thing  # the exception is raised in here, and ignored
        rest(5)
    assert time.monotonic() - begun < 3


def test_nested_blocks_and_other_threads() -> None:
    with pytest.raises(Interrupted, match="inner"), stoppable("outer"), stoppable("inner"):
        send()
        rest(2)
    seen: list[str] = []

    def work() -> None:
        with stoppable("x"):
            seen.append("ran")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["ran"]


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stoppable("x"):
            send()
            rest(0.05)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_after_the_last_block_signals_have_no_effect() -> None:
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        with stoppable("x", last=True):
            pass
        assert {s: signal.getsignal(s) for s in before} == before
        with pytest.raises(Interrupted), stoppable("x", last=True), stoppable("y"):
            send()
            rest(2)
        assert {signal.getsignal(s) for s in before} == {signal.SIG_IGN}
        send()
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
