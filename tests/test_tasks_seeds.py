"""Streams: fixed for good by their values, apart from each other, and refused where a value has no one spelling."""

import hashlib
import itertools
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats

from predcube.tasks.seeds import stream, streams


def test_a_stream_never_changes() -> None:
    """Every stored cube hangs on these. NumPy promises the raw words for good, not what is made of them."""
    generator = stream(7, "data", {"kind": "threshold", "at": 4.0, "noise": 0.1}, 20, 0)
    assert generator.bit_generator.random_raw(2).tolist() == [8940957158089346946, 15617822808952936064]


def test_a_stream_is_the_same_in_another_process_and_in_any_order_of_keys() -> None:
    here = stream(7, "data", {"at": 4.0, "noise": 0.1}, 20, 0).integers(2**60, size=3).tolist()
    code = (
        "from predcube.tasks.seeds import stream;"
        "print(stream(7, 'data', {'noise': 0.1, 'at': 4.0}, 20, 0).integers(2**60, size=3).tolist())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert there.stdout.strip() == str(here)


def test_a_stream_is_a_philox_counter_keyed_by_the_hash_of_its_values() -> None:
    """Written apart from the product: what a stored cube hangs on can be had again from NumPy and hashlib alone."""
    text = '[7,"data",{"at":4.0,"noise":0.1},20,3]'
    key = np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], dtype="<u8").astype(np.uint64)
    expected = np.random.Philox(key=key).random_raw(6).tolist()
    assert stream(7, "data", {"noise": 0.1, "at": 4.0}, 20, 3).bit_generator.random_raw(6).tolist() == expected


@pytest.mark.parametrize("trial", [0, 1, 9, 10, 123456789])
def test_the_streams_of_an_identity_are_those_of_each_trial(trial: int) -> None:
    for identity in ((), ({"at": 4.0}, None, 20), ("é",)):
        together, alone = streams(7, "data", *identity), stream(7, "data", *identity, trial)
        assert together(trial).random(3).tolist() == alone.random(3).tolist()
        assert together(trial + 1).random() != together(trial).random()


def test_near_identities_are_apart() -> None:
    identities: list[tuple[Any, ...]] = [
        (7, "data", 0, 1),
        (7, "data", 1, 0),
        (8, "data", 0, 0),
        (7, "data", 0, 0),
        (7, "data", 0),
        (7, "data", "0", 0),
        (7, "data", (0, 0)),
        (7, "data", None, 0),
        (7, "data", 0.0, 0),
        (7, "data", False, 0),
        (7, "subsets", 0, 0),
        (7, "data", {"noise": 0.3}, 0),
        (7, "data", {"noise": 0.1 + 0.2}, 0),
        (-7, "data", 0, 0),
        (2**64 + 7, "data", 0, 0),
    ]
    first = [tuple(stream(*i).integers(2**62, size=2).tolist()) for i in identities]
    assert len(set(first)) == len(identities)


def test_streams_of_neighbouring_trials_are_unrelated() -> None:
    draws = np.array([stream(7, "data", trial).random(64) for trial in range(400)])
    assert stats.kstest(draws.ravel(), "uniform").pvalue > 1e-4
    correlations = [np.corrcoef(draws[i], draws[i + 1])[0, 1] for i in range(399)]
    assert abs(np.mean(correlations)) < 5 / math.sqrt(64 * 399)


@pytest.mark.parametrize("value", [math.nan, math.inf, {1, 2}, np.int64(3), b"x"])
def test_values_without_one_spelling_are_refused(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        stream(7, "data", value)


def test_a_list_and_a_tuple_are_one_identity() -> None:
    pairs: list[Any] = [(1, 2), [1, 2]]
    assert len({stream(7, "data", p).random() for p in itertools.chain(pairs)}) == 1
