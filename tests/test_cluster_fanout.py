"""The fan-out's laws: every back-end gives the serial bits, failures stay with their job, dead workers are replaced."""

import math
import operator
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predcube.cluster.attempts import Failure, attempt, describe, tree
from predcube.cluster.base import Fanout, Job, Outcome, Program
from predcube.cluster.local import LocalFanout
from predcube.cluster.profiles import PROFILES, connect
from predcube.cluster.serial import SerialFanout


def leaf(payload: float) -> float:
    if payload < 0:
        raise ValueError(f"no leaf {payload}")
    return math.sin(payload)


def finish(payload: Any, roots: tuple[float, ...]) -> Any:
    if payload == "bad":
        raise RuntimeError("two\nlines")
    return payload, roots


def die(folder: Path, payload: Any, roots: tuple[Any, ...]) -> Any:
    """Notes every start; the payload "poison" kills its process, "once" only the first time."""
    starts = folder / str(payload)
    with starts.open("a") as f:
        f.write(f"{os.getpid()}\n")
    if payload == "poison" or (payload == "once" and len(starts.read_text().split()) == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02)
    return payload


def environment(payload: Any, roots: tuple[Any, ...]) -> tuple[str | None, bool, str | None]:
    deaf = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set())
    return os.environ.get("PREDCUBE_PREPARED"), deaf, os.environ.get("OPENBLAS_NUM_THREADS")


def prepare() -> None:
    os.environ["PREDCUBE_PREPARED"] = "yes"


SUMS = Program(leaf=leaf, combine=operator.add, finish=finish)


@pytest.fixture(scope="module")
def local() -> Iterator[Fanout]:
    with LocalFanout(workers=2, initialise=prepare) as fanout:
        yield fanout


def ends(outcomes: Iterator[Outcome]) -> dict[Any, Outcome]:
    return {o.key: o for o in outcomes if o.leaves_done is None}


def level_by_level(leaves: list[str]) -> str:
    while len(leaves) > 1:
        leaves = ["".join(("(", *pair, ")")) if len(pair) == 2 else pair[0] for pair in _pairs(leaves)]
    return leaves[0]


def _pairs(leaves: list[str]) -> list[list[str]]:
    return [leaves[i : i + 2] for i in range(0, len(leaves), 2)]


@given(st.integers(1, 200))
def test_the_tree_pairs_neighbours_level_by_level(count: int) -> None:
    leaves = [f"<{i}>" for i in range(count)]
    assert tree(lambda a, b: f"({a}{b})", leaves) == level_by_level(leaves)


@given(st.integers(1, 300), st.integers(0, 6))
def test_leaves_that_are_whole_subtrees_give_the_same_bits(count: int, level: int) -> None:
    values = [math.sin(i) * 10.0 ** (i % 13) for i in range(count)]
    step = 2**level
    subtrees = [tree(operator.add, values[i : i + step]) for i in range(0, count, step)]
    assert tree(operator.add, subtrees) == tree(operator.add, values)


def test_a_group_without_leaves_is_refused() -> None:
    with pytest.raises(ValueError, match="no leaves"):
        tree(operator.add, [])


def test_local_gives_the_serial_bits(local: Fanout) -> None:
    jobs = [Job(key=i, payload=i) for i in range(7)]
    jobs += [Job(key=f"split {k}", payload=k, leaves=(tuple(map(float, range(k))), (0.5,))) for k in (1, 2, 3, 11, 40)]
    with SerialFanout() as serial:
        alone = ends(serial.run(SUMS, jobs))
    assert ends(local.run(SUMS, iter(jobs))) == alone
    assert alone["split 11"].result == (11, (tree(operator.add, map(math.sin, range(11))), math.sin(0.5)))


def test_a_failing_job_is_an_outcome_and_the_rest_goes_on(local: Fanout) -> None:
    jobs = [
        Job(key=0, payload="bad"),
        Job(key=1, payload="good"),
        Job(key=2, payload="leaf", leaves=((1.0, -1.0, *map(float, range(30))), (2.0,))),
        Job(key=3, payload="last", leaves=((1.0, 2.0),)),
    ]
    with SerialFanout() as serial:
        for fanout in (serial, local):
            found = ends(fanout.run(SUMS, jobs))
            assert found[0].error == "RuntimeError: two lines"
            assert "Traceback" in (found[0].traceback or "")
            assert found[1].result == ("good", ())
            assert found[2].error == "no leaf -1.0"
            assert found[3].error is None
            assert len(found) == 4


def test_progress_inside_a_split_job_counts_its_leaves(local: Fanout) -> None:
    job = Job(key=0, payload=0, leaves=((1.0, 2.0, 3.0), (4.0,)))
    with SerialFanout() as serial:
        for fanout in (serial, local):
            outcomes = list(fanout.run(SUMS, [job]))
            assert [o.leaves_done for o in outcomes] == [1, 2, 3, 4, None]


def test_equal_payloads_run_each(local: Fanout, tmp_path: Path) -> None:
    program = Program(leaf=leaf, combine=operator.add, finish=partial(die, tmp_path))
    assert len(ends(local.run(program, [Job(key=i, payload="same") for i in range(9)]))) == 9
    assert len((tmp_path / "same").read_text().split()) == 9


def test_jobs_are_taken_in_waves(local: Fanout) -> None:
    taken: list[int] = []

    def jobs() -> Iterator[Job]:
        for i in range(200):
            taken.append(i)
            yield Job(key=i, payload=i)

    outcomes = local.run(SUMS, jobs())
    next(outcomes)
    assert len(taken) < 20
    assert len(ends(outcomes)) == 199


def test_a_stopped_run_leaves_the_fan_out_usable(local: Fanout) -> None:
    outcomes = local.run(SUMS, [Job(key=i, payload=i) for i in range(50)])
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    assert ends(local.run(SUMS, [Job(key=0, payload=0)]))[0].result == (0, ())


def test_workers_are_prepared_deaf_and_single_threaded(local: Fanout) -> None:
    program = Program(leaf=leaf, combine=operator.add, finish=environment)
    assert ends(local.run(program, [Job(key=0, payload=0)]))[0].result == ("yes", True, "1")


@pytest.mark.long
def test_a_poison_job_fails_and_a_dead_worker_is_replaced(local: Fanout, tmp_path: Path) -> None:
    program = Program(leaf=leaf, combine=operator.add, finish=partial(die, tmp_path))
    payloads = ["a", "poison", "once", *map(str, range(12))]
    found = ends(local.run(program, [Job(key=p, payload=p) for p in payloads]))
    assert set(found) == set(payloads)
    assert "the worker died 4 times" in (found.pop("poison").error or "")
    assert {key: o.error or o.result for key, o in found.items()} == {key: key for key in found}
    # A worker that replaced a dead one is prepared like the first.
    prepared = Program(leaf=leaf, combine=operator.add, finish=environment)
    again = ends(local.run(prepared, [Job(key=i, payload=i) for i in range(8)]))
    assert {o.result for o in again.values()} == {("yes", True, "1")}


def test_an_error_is_one_line() -> None:
    assert describe(ValueError("a\n b")) == "a b"
    assert describe(KeyError("x")) == "KeyError: 'x'"
    assert describe(ValueError()) == "ValueError"
    failed = attempt(operator.truediv, 1, 0)
    assert isinstance(failed, Failure)
    assert attempt(operator.add, 1, failed) is failed


def test_an_unknown_back_end_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="--cluster locl: no such back-end; did you mean 'local'"):
        connect("locl")
    with pytest.raises(ValueError, match="known: local, serial"):
        connect("zzz")
    with pytest.raises(ValueError, match="--workers 0: must be at least 1"):
        connect("local", workers=0)
    with pytest.raises(ValueError, match="serial back-end is one process"):
        connect("serial", workers=2)
    assert all(profile.unavailable() is None for profile in PROFILES.values())
    assert connect("serial").workers == 1
