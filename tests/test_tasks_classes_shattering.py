"""VC dimension and growth of a finite class by search, against every set of columns."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predcube.tasks import hypotheses
from predcube.tasks.hypotheses import shattering

matrices = st.integers(1, 6).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 1), min_size=k, max_size=k), min_size=1, max_size=14)
)


def labelings(rows: list[list[int]], columns: tuple[int, ...]) -> int:
    return len({tuple(row[c] for c in columns) for row in rows})


@settings(deadline=None)
@given(matrices)
def test_a_largest_shattered_set(rows: list[list[int]]) -> None:
    found = shattering.largest_shattered(np.array(rows, dtype=np.uint8))
    assert found is not None
    assert labelings(rows, found) == 2 ** len(found)
    for size in range(len(found) + 1, len(rows[0]) + 1):
        assert all(labelings(rows, c) < 2**size for c in itertools.combinations(range(len(rows[0])), size))


@settings(deadline=None)
@given(matrices)
def test_growth(rows: list[list[int]]) -> None:
    h = hypotheses.build("table", matrix=rows)
    for m in range(len(rows[0]) + 2):
        sets = itertools.combinations(range(len(rows[0])), min(m, len(rows[0])))
        assert h.growth(m) == max(labelings(rows, c) for c in sets)


def test_growth_of_classes_with_a_closed_form() -> None:
    for kind, parameters in [
        ("intervals", {"points": 7}),
        ("interval_unions", {"points": 7, "count": 2}),
        ("gf_lines", {"q": 3}),
    ]:
        h = hypotheses.build(kind, **parameters)
        assert h.domain is not None
        table = hypotheses.build("table", matrix=h.labelings(h.domain))
        assert [table.growth(m) for m in range(8)] == [min(h.growth(m) or 0, table.growth(9) or 0) for m in range(8)]


def test_a_search_that_takes_too_long_gives_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shattering, "SEARCH_STEPS", 100)
    rows = np.random.default_rng(0).integers(0, 2, (40, 20)).astype(np.uint8)
    assert shattering.largest_shattered(rows) is None
    assert shattering.most_labelings(rows, 5) == (32, False)
    assert shattering.most_labelings(rows, 6, 3) == (1 + 6 + 15 + 20 - 2, False)
    assert shattering.most_labelings(rows, 20) == (40, True)
