"""Surfaces against NumPy, SciPy and plain loops; the same bits for any chunking; answers that are not numbers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats

from predcube.pipeline import searches
from predcube.pipeline.opening import CELL_STATUSES
from predcube.pipeline.reduction import cell_status, statistics, surfaces
from predcube.pipeline.searches import (
    BRACKETED,
    INFEASIBLE,
    MISSED_AT_END,
    NOT_MONOTONE,
    NOT_REACHED,
    PROVISIONAL,
    REACHED,
    UNDECIDED,
)
from predcube.storage import StoreError

FLAGS = {"flag_values": [0, 1, 2, 3], "flag_meanings": "missing done failed infeasible"}
MISSING, DONE, FAILED, OUT = range(4)


def trials_of(
    values: dict[str, NDArray[np.float64]], status: NDArray[np.uint8], axes: dict[str, Sequence[Any]]
) -> xr.Dataset:
    """/trials as a store holds them: NaN wherever the status is not done."""
    dims = (*axes, "trial")
    data: dict[str, Any] = {"status": (dims, status, FLAGS)}
    for name, array in values.items():
        data[name] = (dims, np.where(status == DONE, array, np.nan), {"long_name": name, "units": "1"})
        data[f"{name}_status"] = (dims, status, FLAGS)
    return xr.Dataset(
        data, coords={**{d: np.asarray(v) for d, v in axes.items()}, "trial": np.arange(status.shape[-1])}
    )


def grid(seed: int = 0, trials: int = 24) -> xr.Dataset:
    """Excess error that falls with n, privacy loss with some ∞, cells of every status."""
    rng = np.random.default_rng(seed)
    n = np.array([20, 40, 80, 160])
    shape = (4, 3, trials)
    excess = (3.0 / n)[:, None, None] * rng.gamma(2, 0.5, shape)
    loss = rng.uniform(0.1, 1, shape)
    loss[1, 1, 3] = np.inf
    status = np.full(shape, DONE, dtype=np.uint8)
    status[0, 0] = OUT
    status[1, 0, 7:] = MISSING
    status[2, 2, 4] = FAILED
    status[3, 1] = MISSING
    return trials_of({"excess_error": excess, "privacy_loss": loss}, status, {"n": n, "gamma": [0.05, 0.1, 0.2]})


# --- statistics of one cell -------------------------------------------------------------------------------------------


@given(
    arrays(np.float64, (3, 9), elements=st.floats(-1e3, 1e3, allow_subnormal=False)),
    arrays(np.bool_, (3, 9)),
)
def test_mean_error_and_interval_agree_with_numpy_and_scipy(
    values: NDArray[np.float64], done: NDArray[np.bool_]
) -> None:
    s = statistics(values, done)
    for i in range(3):
        own = values[i, done[i]]
        assert s.count[i] == len(own)
        if len(own):
            assert s.mean[i] == pytest.approx(own.mean(), rel=1e-12, abs=1e-10)
            assert s.maximum[i] == own.max()
        if len(own) >= 2:
            error = own.std(ddof=1) / math.sqrt(len(own))
            assert s.standard_error[i] == pytest.approx(error, rel=1e-9, abs=1e-10)
            if error > 1e-6:
                low, high = stats.t.interval(0.95, len(own) - 1, loc=own.mean(), scale=error)
                assert (s.lower[i], s.upper[i]) == (pytest.approx(low, rel=1e-9), pytest.approx(high, rel=1e-9))
        else:
            assert math.isnan(s.standard_error[i])


def test_equal_trials_have_exactly_their_value_and_no_spread() -> None:
    s = statistics(np.full((1, 10), 0.1), np.ones((1, 10), dtype=bool))
    assert (s.mean[0], s.standard_error[0], s.lower[0], s.upper[0]) == (0.1, 0.0, 0.1, 0.1)


def test_a_large_offset_does_not_cancel_the_spread() -> None:
    values = 1e9 + np.array([[0.0, 1.0, 2.0, 3.0]])
    assert statistics(values, np.ones((1, 4), dtype=bool)).standard_error[0] == pytest.approx(math.sqrt(5 / 3) / 2)


def test_one_infinite_trial_makes_the_mean_and_its_interval_infinite() -> None:
    s = statistics(np.array([[0.5, np.inf, 0.7]]), np.ones((1, 3), dtype=bool))
    assert (s.mean[0], s.lower[0], s.upper[0], s.maximum[0]) == (np.inf,) * 4
    assert math.isnan(s.standard_error[0])
    assert (s.count[0], s.infinite[0]) == (3, 1)


def test_trials_that_are_not_done_do_not_count() -> None:
    s = statistics(np.array([[0.5, np.nan, 9.0]]), np.array([[True, False, False]]))
    assert (s.mean[0], s.count[0], s.maximum[0]) == (0.5, 1, 0.5)
    assert (s.lower[0], s.upper[0]) == (-np.inf, np.inf)


def test_no_trials_leave_a_count_of_zero_and_no_number() -> None:
    s = statistics(np.full((1, 3), np.nan), np.zeros((1, 3), dtype=bool))
    assert s.count[0] == 0
    assert np.isnan([s.mean[0], s.standard_error[0], s.lower[0], s.upper[0], s.maximum[0]]).all()


def test_an_interval_is_cut_to_what_the_quantity_can_be() -> None:
    s = statistics(np.array([[0.0, 0.0, 0.4]]), np.ones((1, 3), dtype=bool), (0.0, 1.0))
    assert s.lower[0] == 0.0 < s.upper[0] < 1.0


@pytest.mark.parametrize(
    ("codes", "word"),
    [
        ([1, 1, 1], "done"),
        ([3, 3, 3], "infeasible"),
        ([0, 0, 0], "missing"),
        ([1, 0, 1], "partial"),
        ([1, 2, 0], "failed"),
        ([1, 2, 1], "failed"),
    ],
)
def test_a_cell_is_called_by_what_its_trials_share(codes: list[int], word: str) -> None:
    assert CELL_STATUSES[cell_status(np.array([codes], dtype=np.uint8))[0]] == word


# --- surfaces ---------------------------------------------------------------------------------------------------------


def test_every_quantity_has_its_surfaces_with_names_units_and_meanings() -> None:
    found = surfaces(grid(), limits={"excess_error": 0.05}, confidence=0.9)
    ends = ("", "_standard_error", "_lower", "_upper", "_count", "_maximum")
    assert {f"{q}{e}" for q in ("excess_error", "privacy_loss") for e in ends} <= set(found.data_vars)
    assert {"excess_error_reached", "excess_error_reached_lower", "privacy_loss_infinite", "smallest_n"} <= set(
        found.data_vars
    )
    for variable in found.data_vars.values():
        assert variable.attrs["long_name"]
        assert variable.attrs["description"]
        assert ("units" in variable.attrs) != ("flag_values" in variable.attrs)
    assert (found.attrs["trials_missing"], found.attrs["trials_failed"], found.attrs["trials_infeasible"]) == (
        41,
        1,
        24,
    )


@pytest.mark.parametrize("block_bytes", [1, 500, 2000, 10**9])
def test_surfaces_have_the_same_bits_for_any_blocks_and_chunks(block_bytes: int) -> None:
    data = grid()
    whole = surfaces(data, limits={"excess_error": 0.05}, confidence=0.9)
    for chunks in [(1, 3, 24), (2, 1, 8), (4, 3, 1)]:
        for variable in data.data_vars.values():
            variable.encoding["chunks"] = chunks
        parts = surfaces(data, limits={"excess_error": 0.05}, confidence=0.9, block_bytes=block_bytes)
        xr.testing.assert_identical(whole, parts)


def test_axes_in_order_of_creation_give_the_surfaces_of_sorted_ones() -> None:
    data = grid()
    appended = data.isel(n=[1, 3, 0, 2], gamma=[2, 0, 1])
    limits = {"excess_error": 0.05}
    xr.testing.assert_identical(
        surfaces(data, limits=limits, confidence=0.9), surfaces(appended, limits=limits, confidence=0.9)
    )


def test_labels_keep_their_order() -> None:
    status = np.ones((2, 3), dtype=np.uint8)
    data = trials_of({"error": np.zeros((2, 3))}, status, {"learner": ["stable", "erm"]})
    assert surfaces(data, limits={}, confidence=0.9)["learner"].values.tolist() == ["stable", "erm"]


def test_a_sweep_without_axes_has_surfaces_of_one_cell() -> None:
    data = trials_of({"error": np.array([0.1, 0.3])}, np.ones(2, dtype=np.uint8), {})
    found = surfaces(data, limits={"error": 0.2}, confidence=0.9)
    assert float(found["error"]) == pytest.approx(0.2)
    assert float(found["error_reached"]) == 0.5
    assert "smallest_n" not in found


def test_codes_of_how_a_cell_was_measured_are_carried_over() -> None:
    data = grid()
    codes = np.where(data["status"].values == DONE, 2, 0).astype(np.uint8)
    data["audit"] = (data["status"].dims, codes, {"flag_values": [0, 1, 2], "flag_meanings": "missing all some"})
    found = surfaces(data, limits={}, confidence=0.9)["audit"]
    assert found.attrs["flag_meanings"] == "missing all some"
    assert found.values[0, 0] == 0
    assert found.values[2, 2] == 2


def test_a_quantity_with_an_axis_of_its_own_keeps_it() -> None:
    rng = np.random.default_rng(1)
    status = np.ones((2, 5), dtype=np.uint8)
    status[1, 3] = MISSING
    data = trials_of({}, status, {"n": [10, 20]})
    values = rng.uniform(size=(2, 5, 3))
    values[1, 3] = np.nan
    data["delta"] = (("n", "trial", "delta_epsilon"), values)
    data["delta_status"] = (("n", "trial"), status)
    found = surfaces(data, limits={}, confidence=0.9)["delta"]
    assert found.dims == ("n", "delta_epsilon")
    np.testing.assert_allclose(found.values, np.nanmean(values, axis=1))


def test_a_nan_that_counts_as_done_is_an_error_with_its_place() -> None:
    data = grid()
    data["privacy_loss"].values[2, 1, 5] = np.nan
    data["privacy_loss"].encoding["chunks"] = (1, 1, 8)
    with pytest.raises(StoreError, match=r"privacy_loss is NaN at n=80, gamma=0.1, trial=5"):
        surfaces(data, limits={}, confidence=0.9, block_bytes=300)


def test_the_share_within_a_limit_has_scipys_exact_interval() -> None:
    data = grid()
    found = surfaces(data, limits={"excess_error": 0.05}, confidence=0.9)
    values = data["excess_error"].values
    for i, j in np.ndindex(4, 3):
        own = values[i, j][data["status"].values[i, j] == DONE]
        if not len(own):
            assert np.isnan(found["excess_error_reached"].values[i, j])
            continue
        hits = int((own <= 0.05).sum())
        exact = stats.binomtest(hits, len(own)).proportion_ci(0.95, method="exact")
        assert found["excess_error_reached"].values[i, j] == hits / len(own)
        assert found["excess_error_reached_lower"].values[i, j] == pytest.approx(exact.low)
        assert found["excess_error_reached_upper"].values[i, j] == pytest.approx(exact.high)


def test_a_trial_at_the_limit_is_within_it() -> None:
    data = trials_of({"error": np.array([0.2, 0.2, 0.3])}, np.ones(3, dtype=np.uint8), {})
    found = surfaces(data, limits={"error": 0.2}, confidence=0.9)
    assert float(found["error_reached"]) == pytest.approx(2 / 3)


# --- the smallest n ---------------------------------------------------------------------------------------------------


def column(shares: Sequence[float | None], trials: int = 100) -> xr.Dataset:
    """One cell for each n = 10, 20, … whose share of trials within 0.5 is given; None: infeasible."""
    n = 10 * (np.arange(len(shares)) + 1)
    values = np.ones((len(shares), trials))
    status = np.ones((len(shares), trials), dtype=np.uint8)
    for i, share in enumerate(shares):
        if share is None:
            status[i] = OUT
        else:
            values[i, : round(share * trials)] = 0.0
    return trials_of({"excess_error": values}, status, {"n": n})


@pytest.mark.parametrize(
    ("shares", "n", "status"),
    [
        ([0.1, 0.5, 0.95, 1.0], 30, REACHED),
        ([0.1, 0.5, 0.6, 0.7], None, NOT_REACHED),
        ([0.9, 1.0, 1.0, 1.0], 10, REACHED),
        ([None, None, 0.95, 1.0], 30, REACHED),
        ([None, None, None, None], None, INFEASIBLE),
        ([None, 0.2, 0.3, 0.3], None, NOT_REACHED),
        ([0.93, 0.2, 0.3, 1.0], 40, REACHED),  # one lucky small n is not taken
    ],
)
def test_the_smallest_n_is_a_number_only_where_it_is_reached(
    shares: list[float | None], n: int | None, status: int
) -> None:
    found = surfaces(column(shares), limits={"excess_error": 0.5}, confidence=0.9)
    assert int(found["smallest_n_status"]) == status
    assert (float(found["smallest_n"]) == n) if n is not None else math.isnan(float(found["smallest_n"]))


def test_missing_cells_make_an_answer_provisional_or_leave_it_open() -> None:
    data = column([0.1, 0.5, 0.95, 1.0])
    for name in ("status", "excess_error_status"):
        data[name].values[1] = MISSING
    found = surfaces(data, limits={"excess_error": 0.5}, confidence=0.9)
    assert (float(found["smallest_n"]), int(found["smallest_n_status"])) == (30.0, PROVISIONAL)
    data = column([0.1, 0.5, 0.95, 1.0])
    for name in ("status", "excess_error_status"):
        data[name].values[0] = MISSING  # a miss at 20 speaks for 10
    found = surfaces(data, limits={"excess_error": 0.5}, confidence=0.9)
    assert (float(found["smallest_n"]), int(found["smallest_n_status"])) == (30.0, BRACKETED)
    data = column([0.1, 0.5, 0.6, 0.7])
    for name in ("status", "excess_error_status"):
        data[name].values[3] = MISSING
    found = surfaces(data, limits={"excess_error": 0.5}, confidence=0.9)
    assert math.isnan(float(found["smallest_n"]))
    assert int(found["smallest_n_status"]) == UNDECIDED


def test_an_audit_is_within_its_target_where_no_trial_exceeds_it() -> None:
    data = column([0.0, 0.95, 1.0, 1.0])
    loss = np.full((4, 100), 0.2)
    loss[1, 17] = 0.4
    data["stability"] = (("n", "trial"), loss)
    data["stability_status"] = data["status"]
    found = surfaces(data, limits={"excess_error": 0.5, "stability": 0.3}, confidence=0.9)
    assert float(found["smallest_n"]) == 30.0
    assert "no trial's stability > 0.3" in found["smallest_n"].attrs["goal"]


def test_the_interval_of_the_smallest_n_covers_at_its_level() -> None:
    n = np.array([10, 20, 40, 80, 160])
    truth = np.array([0.5, 0.75, 0.89, 0.92, 0.97])  # 80 is the smallest n with at least 0.9
    rng = np.random.default_rng(5)
    draws, trials = 400, 60
    hits = rng.uniform(size=(5, draws, trials)) < truth[:, None, None]
    status = np.ones(hits.shape, dtype=np.uint8)
    data = trials_of({"excess_error": np.where(hits, 0.0, 1.0)}, status, {"n": n, "draw": np.arange(draws)})
    found = surfaces(data, limits={"excess_error": 0.5}, confidence=0.9)
    lower, upper = found["smallest_n_lower"].values, found["smallest_n_upper"].values
    covered = (np.nan_to_num(lower, nan=np.inf) <= 80) & (np.nan_to_num(upper, nan=np.inf) >= 80)
    assert covered.mean() >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / draws)
    assert (lower < upper).mean() < 1.0
    point, there = found["smallest_n"].values, found["smallest_n_status"].values == REACHED
    assert (lower[there] <= point[there]).all()
    assert (np.nan_to_num(upper, nan=np.inf)[there] >= point[there]).all()


# --- the search itself ------------------------------------------------------------------------------------------------


def by_hand(holds: list[bool], known: list[bool], out: list[bool]) -> tuple[int, int]:
    """Position and status of one row by a plain loop."""
    places = range(len(holds))
    first = next((i for i in places if holds[i] and known[i] and not out[i]), None)
    if first is None:
        if all(out):
            return -1, INFEASIBLE
        if not any(not known[i] and not out[i] for i in places):
            return -1, NOT_REACHED
        return -1, MISSED_AT_END if known[[i for i in places if not out[i]][-1]] else UNDECIDED
    later = any(known[i] and not out[i] and not holds[i] for i in range(first + 1, len(holds)))
    if any(not known[i] and not out[i] for i in range(first)):
        return first, BRACKETED if known[[i for i in range(first) if not out[i]][-1]] and not later else PROVISIONAL
    if any(known[i] and not out[i] and not holds[i] for i in range(first + 1, len(holds))):
        return first, NOT_MONOTONE
    return first, REACHED


row = arrays(np.bool_, (4, 5))


@given(row, row, row)
@settings(max_examples=200)
def test_a_search_agrees_with_a_plain_loop(
    holds: NDArray[np.bool_], known: NDArray[np.bool_], out: NDArray[np.bool_]
) -> None:
    found = searches.smallest(holds, known, out)
    for i in range(4):
        expected = by_hand(holds[i].tolist(), known[i].tolist(), out[i].tolist())
        assert (int(found.position[i]), int(found.status[i])) == expected


@given(row, row, row)
def test_a_search_for_good_ends_where_nothing_is_missed_any_more(
    holds: NDArray[np.bool_], known: NDArray[np.bool_], out: NDArray[np.bool_]
) -> None:
    found = searches.smallest_for_good(holds, known, out)
    for i in range(4):
        p = int(found.position[i])
        looked = known[i] & ~out[i]
        if p >= 0:
            assert holds[i, p]
            assert not (looked & ~holds[i])[p:].any()
            assert int(found.status[i]) in searches.HAS_VALUE
        elif looked.any():
            assert not holds[i, np.flatnonzero(looked)[-1]]


def test_nothing_reached_is_never_the_first_value_of_the_grid() -> None:
    no, yes = np.zeros((1, 3), dtype=bool), np.ones((1, 3), dtype=bool)
    found = searches.smallest(no, yes, no)
    assert found.position[0] == -1
    assert np.isnan(found.values(np.array([20, 40, 80]))).all()
    assert found.status[0] == NOT_REACHED
