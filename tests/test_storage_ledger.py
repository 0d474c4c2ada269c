"""What counts as done: receipts as commits, and what killed or failing workers leave."""

import json
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from predcube.storage import (
    DONE,
    FAILED,
    Axis,
    CubeSchema,
    Receipt,
    StoreError,
    Variable,
    create,
    damage_named,
    errors,
    first_errors,
    open_cube,
    read_schema,
    status_variable,
    tile_states,
    write_tile,
)
from predcube.storage.layout import ERROR_WIDTH, RECEIPT_WIDTH

WORK = Receipt(cpu_seconds=0.5, wall_seconds=0.75, worker="tester")


def schema(rows: int = 3, labels: tuple[str, ...] = ("a", "b")) -> CubeSchema:
    return CubeSchema(
        axes=(
            Axis(name="n", values=np.arange(rows), chunk=1),
            Axis(name="learner", values=np.array(labels), chunk=1),
            Axis(name="trial", values=np.arange(2), chunk=2),
        ),
        variables=(Variable(name="error", dtype="float64"), status_variable("error_status", "how it ended")),
        attributes={},
    )


def fill(url: str, key: tuple[int, ...], error: str | None = None, **change: Any) -> Receipt:
    cube = read_schema(url)
    good = {"error": np.full((1, 1, 2), sum(key) + 0.5), "error_status": np.full((1, 1, 2), DONE, np.uint8)}
    bad = {"error": np.full((1, 1, 2), np.nan), "error_status": np.full((1, 1, 2), FAILED, np.uint8)}
    return write_tile(
        url,
        key,
        coordinates=cube.coordinates(key),
        arrays=bad if error else good,
        receipt=replace(WORK, failed=2 if error else 0, **change),
        error=error,
    )


@pytest.fixture
def url(tmp_path: Path) -> str:
    place = str(tmp_path / "cube.zarr")
    create(place, schema())
    return place


@pytest.mark.parametrize("check", ["listing", "receipts", "digests"])
def test_states(url: str, check: Any) -> None:
    nothing = tile_states(url, check)
    assert (nothing.done, nothing.failed, nothing.total) == ((), (), 6)
    fill(url, (0, 1, 0))
    fill(url, (2, 0, 0), error="cell n=2: it broke")
    states = tile_states(url, check)
    assert states.done == ((0, 1, 0),)
    assert states.failed == ((2, 0, 0),)
    assert states.missing == ((0, 0, 0), (1, 0, 0), (1, 1, 0), (2, 1, 0))
    assert set(states.receipts) == (set() if check == "listing" else {(0, 1, 0), (2, 0, 0)})


def test_a_receipt_says_what_was_done(url: str) -> None:
    returned = fill(url, (1, 1, 0), attempt=3)
    read = tile_states(url).receipts[(1, 1, 0)]
    assert read == returned
    assert (read.key, read.attempt, read.worker, read.failed) == ((1, 1, 0), 3, "tester", 0)
    assert (read.cpu_seconds, read.wall_seconds) == (0.5, 0.75)
    assert read.coordinates == {"n": 1, "learner": "b", "trial": [0, 1]}
    assert len(read.digest) == 64


def test_a_retry_takes_the_place_of_a_failure(url: str) -> None:
    fill(url, (0, 0, 0), error="it broke")
    assert [e.message for e in first_errors(url)] == ["it broke"]
    fill(url, (0, 0, 0), attempt=2)
    for check in ("listing", "receipts", "digests"):
        assert tile_states(url, check).done == ((0, 0, 0),)
        assert tile_states(url, check).failed == ()
    assert first_errors(url) == ()
    assert tile_states(url).receipts[(0, 0, 0)].attempt == 2


def test_first_errors_are_counted_by_kind(url: str) -> None:
    for key in ((2, 1, 0), (0, 1, 0), (1, 0, 0)):
        fill(url, key, error="common")
    fill(url, (0, 0, 0), error="rare 🎲")
    found = [(e.message, e.key, e.count) for e in first_errors(url)]
    assert found == [("common", (0, 1, 0), 3), ("rare 🎲", (0, 0, 0), 1)]
    assert errors(url)[(0, 0, 0)] == "rare 🎲"


def test_an_error_longer_than_its_width_is_cut(url: str) -> None:
    """A status string longer than its declared width fails mid-run."""
    fill(url, (0, 0, 0), error="x" * (ERROR_WIDTH + 5))
    assert errors(url)[(0, 0, 0)] == "x" * ERROR_WIDTH


def test_failures_and_errors_go_together(url: str) -> None:
    labels = read_schema(url).coordinates((0, 0, 0))
    arrays = {"error": np.full((1, 1, 2), 0.5), "error_status": np.full((1, 1, 2), DONE, np.uint8)}
    for receipt, error in ((replace(WORK, failed=1), None), (replace(WORK, failed=1), ""), (WORK, "it broke")):
        with pytest.raises(StoreError, match="both or neither"):
            write_tile(url, (0, 0, 0), coordinates=labels, arrays=arrays, receipt=receipt, error=error)
    assert not tile_states(url, "listing").done


def test_a_receipt_fits_whatever_the_labels(tmp_path: Path) -> None:
    place = str(tmp_path / "cube.zarr")
    create(place, schema(labels=("ж" * 3000, '\\"\n' * 400)))
    for column in (0, 1):
        receipt = fill(place, (0, column, 0), worker="w" * 900)
        assert len(receipt.to_text()) <= RECEIPT_WIDTH
        assert receipt.key == (0, column, 0)
    assert tile_states(place, "digests").done == ((0, 0, 0), (0, 1, 0))


def chunk(url: str, array: str, key: tuple[int, ...]) -> Path:
    return Path(url, array, "c", *map(str, key))


def test_a_torn_receipt_leaves_its_tile_missing(url: str) -> None:
    """A truncated chunk after a kill makes every retry fail."""
    for key in ((0, 0, 0), (1, 1, 0)):
        fill(url, key)
    torn = chunk(url, "ledger/receipt", (0, 0, 0))
    whole = torn.read_bytes()
    for length in range(0, len(whole), 7):
        torn.write_bytes(whole[:length])
        assert tile_states(url).done == ((1, 1, 0),)
    fill(url, (0, 0, 0))
    assert tile_states(url).done == ((0, 0, 0), (1, 1, 0))


@pytest.mark.parametrize("text", ["", "{}", "[1]", "null", "{", '{"key":[0,0,0]}', "NaN", "x" * 1024])
def test_a_receipt_that_does_not_parse(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (JSON's own, or ours)
        Receipt.from_text(text)


def test_a_receipt_of_another_tile_does_not_count(url: str) -> None:
    fill(url, (0, 0, 0))
    other = chunk(url, "ledger/receipt", (1, 0, 0))
    other.parent.mkdir(parents=True)
    other.write_bytes(chunk(url, "ledger/receipt", (0, 0, 0)).read_bytes())
    for array in ("trials/error", "trials/error_status"):
        there = chunk(url, array, (1, 0, 0))
        there.parent.mkdir(parents=True)
        there.write_bytes(chunk(url, array, (0, 0, 0)).read_bytes())
    assert tile_states(url).done == ((0, 0, 0),)


def test_a_deleted_chunk(url: str) -> None:
    """A deleted chunk reads as fill: only its name's absence and the digest see it."""
    fill(url, (0, 0, 0))
    chunk(url, "trials/error", (0, 0, 0)).unlink()
    assert tile_states(url, "listing").done == ((0, 0, 0),)
    assert tile_states(url, "receipts").done == ()
    assert tile_states(url, "digests").done == ()


def test_altered_chunks_are_seen_by_the_digest(url: str) -> None:
    for key in ((0, 0, 0), (1, 0, 0), (2, 0, 0)):
        fill(url, key)
    moved = chunk(url, "trials/error", (1, 0, 0))
    moved.write_bytes(chunk(url, "trials/error", (2, 0, 0)).read_bytes())  # a whole chunk, of another tile
    torn = chunk(url, "trials/error_status", (2, 0, 0))
    torn.write_bytes(torn.read_bytes()[:-1])
    assert tile_states(url, "receipts").done == ((0, 0, 0), (1, 0, 0), (2, 0, 0))
    assert tile_states(url, "digests").done == ((0, 0, 0),)
    assert tile_states(url, "digests").missing == ((0, 1, 0), (1, 0, 0), (1, 1, 0), (2, 0, 0), (2, 1, 0))


def test_damage_is_named_with_its_cure(url: str) -> None:
    for key in ((0, 0, 0), (1, 0, 0)):
        fill(url, key)

    def read() -> None:
        with damage_named(url):
            open_cube(url)["trials/error"].load()

    read()
    torn = chunk(url, "trials/error", (1, 0, 0))
    torn.write_bytes(torn.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"tile \(1, 0, 0\) is damaged .*; delete ledger/receipt/c/1/0/0 in the store"):
        read()
    chunk(url, "ledger/receipt", (1, 0, 0)).unlink()  # the cure
    assert tile_states(url).done == ((0, 0, 0),)
    fill(url, (1, 0, 0))
    read()
    with pytest.raises(ZeroDivisionError), damage_named(url):
        1 / 0  # noqa: B018  (what has another reason keeps it)


def test_a_deleted_array_is_named(url: str) -> None:
    shutil.rmtree(Path(url, "trials", "error"))
    for read in (read_schema, tile_states):
        with pytest.raises(StoreError, match="the array 'error' is gone"):
            read(url)


def test_leftovers_of_killed_writers_do_no_harm(url: str) -> None:
    """Orphan ``.partial`` files stay."""
    fill(url, (0, 0, 0))
    for array in ("ledger/receipt", "ledger/error", "trials/error"):
        folder = chunk(url, array, (1, 0, 0)).parent
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "0.0123abcd.partial").write_bytes(b"x")
        (folder / "stray").write_bytes(b"x")
    for check in ("listing", "receipts", "digests"):
        states = tile_states(url, check)
        assert (states.done, states.failed, len(states.missing)) == (((0, 0, 0),), (), 5)
    assert first_errors(url) == ()


def test_ten_thousand_tiles(tmp_path: Path) -> None:
    """Listing does not read a tile: the chunks here are not even decodable."""
    place = str(tmp_path / "large.zarr")
    create(place, schema(rows=5000))
    for key in product(range(5000), range(2)):
        there = chunk(place, "ledger/receipt", (*key, 0))
        there.parent.mkdir(parents=True)
        there.write_bytes(b"")
    states = tile_states(place, "listing")
    assert (len(states.done), len(states.missing)) == (10_000, 0)


def test_one_torn_receipt_among_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from predcube.storage import ledger

    monkeypatch.setattr(ledger, "_AT_ONCE", 8)
    place = str(tmp_path / "cube.zarr")
    create(place, schema(rows=15))
    keys = tuple(read_schema(place).keys())
    for key in keys:
        fill(place, key, error="odd" if key[0] % 2 else None)
    chunk(place, "ledger/receipt", (7, 1, 0)).write_bytes(b"torn")
    chunk(place, "ledger/error", (9, 0, 0)).write_bytes(b"torn")
    states = tile_states(place)
    assert states.missing == ((7, 1, 0),)
    assert states.done == tuple(k for k in keys if not k[0] % 2)
    assert list(errors(place)) == [k for k in keys if k[0] % 2 and k != (9, 0, 0)]


def test_receipts_are_json_in_the_store(url: str) -> None:
    import xarray

    fill(url, (1, 1, 0))
    ledger = xarray.open_datatree(url, engine="zarr", consolidated=False)["ledger"]
    assert json.loads(str(ledger["receipt"].values[1, 1, 0]))["coordinates"]["learner"] == "b"
    assert str(ledger["receipt"].values[0, 0, 0]) == ""
