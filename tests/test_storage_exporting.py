"""Export: every format against what Xarray reads from the store itself."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray
from pyarrow import feather, parquet

from predcube.storage import (
    DONE,
    FAILED,
    Axis,
    CubeSchema,
    Receipt,
    StoreError,
    Variable,
    create,
    export,
    exporting,
    open_cube,
    read_schema,
    status_variable,
    write_surfaces,
    write_tile,
)

WORK = Receipt(cpu_seconds=0.5, wall_seconds=0.75, worker="tester")
TILES = (2, 2, 2)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Six of eight tiles written, one of them failed; labels with commas, quotes and lines; an infinite value."""
    there = str(tmp_path / "cube.zarr")
    create(
        there,
        CubeSchema(
            axes=(
                Axis(name="n", values=np.array([40, 20]), chunk=1),
                Axis(name="learner", values=np.array(['a, "b"\n', "001"]), chunk=1),
                Axis(name="trial", values=np.arange(4), chunk=2),
            ),
            extra=(Axis(name="delta_epsilon", values=np.array([0.0, 0.1 * 3]), chunk=2),),
            variables=(
                Variable(name="error", dtype="float64", attributes={"units": "1"}),
                Variable(name="delta", dtype="float64", extra=("delta_epsilon",)),
                status_variable("error_status", "how it ended"),
            ),
            attributes={"spec": "name = 'x'", "flag": True, "list": [1, 2]},
        ),
    )
    cube = read_schema(there)
    for i, key in enumerate(list(cube.keys())[:6]):
        failed = i == 5
        arrays: dict[str, Any] = {
            "error": np.full((1, 1, 2), np.nan if failed else [np.inf, 1 / 3][i % 2]),
            "delta": np.random.default_rng(i).random((1, 1, 2, 2)),
            "error_status": np.full((1, 1, 2), FAILED if failed else DONE, np.uint8),
        }
        receipt = replace(WORK, failed=2 if failed else 0)
        error = 'it broke, "badly"' if failed else None
        write_tile(there, key, coordinates=cube.coordinates(key), arrays=arrays, receipt=receipt, error=error)
    n, learner = cube.axes[0].values, cube.axes[1].values
    surfaces = xarray.Dataset(
        {
            "error": (("n", "learner"), np.array([[1 / 3, np.nan], [1e-300, np.inf]]), {"units": "1"}),
            "error_count": (("n", "learner"), np.array([[4, 0], [2**53 + 1, 4]])),
            "reached": (("learner",), np.array([True, False])),
            "delta": (("n", "delta_epsilon"), np.arange(4.0).reshape(2, 2)),
        },
        {"n": n, "learner": learner, "delta_epsilon": cube.extra[0].values},
    )
    write_surfaces(there, surfaces)
    return there


def read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return parquet.read_table(path)
    if path.suffix in (".arrow", ".feather"):
        return feather.read_table(str(path), memory_map=False)
    raise AssertionError(path)


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".feather"])
def test_rows_and_types(url: str, tmp_path: Path, ending: str) -> None:
    written = export(url, tmp_path / f"out{ending}")
    names = ["out", "out.delta_epsilon", "out.trials", "out.trials_delta_epsilon", "out.ledger"]
    assert [p.name for p in written] == [f"{name}{ending}" for name in names]
    surfaces, curves, trials, trial_curves, ledger = map(read, written)
    assert surfaces.to_pydict() == {
        "n": [40, 40, 20, 20],
        "learner": ['a, "b"\n', "001"] * 2,
        "error": [1 / 3, None, 1e-300, np.inf],
        "error_count": [4, 0, 2**53 + 1, 4],
        "reached": [True, False, True, False],
    }
    assert [str(t) for t in surfaces.schema.types] == ["int64", "string", "double", "int64", "bool"]
    assert surfaces.schema.field("error").metadata == {b"units": b"1"}
    assert curves.column_names == ["n", "delta_epsilon", "delta"]
    store = open_cube(url)["trials"].to_dataset().load()
    for table, dims in (
        (trials, ["n", "learner", "trial"]),
        (trial_curves, ["n", "learner", "trial", "delta_epsilon"]),
    ):
        assert table.column_names[: len(dims)] == dims
        for row in table.to_pylist():
            cell = store.sel({d: row[d] for d in dims})
            for name in table.column_names[len(dims) :]:
                value = cell[name].item()
                assert row[name] == value or (row[name] is None and np.isnan(value))
    assert trials.num_rows == 16
    assert trials.schema.field("error_status").type == pa.uint8()
    assert ledger.num_rows == 8
    assert ledger.column("state").to_pylist() == ["done"] * 5 + ["failed"] + ["missing"] * 2
    assert ledger.column("error").to_pylist() == [None] * 5 + ['it broke, "badly"'] + [None] * 2
    assert ledger.column("attempt").to_pylist() == [1] * 6 + [None] * 2
    assert ledger.column("tile_learner").to_pylist() == [0, 0, 1, 1] * 2


def test_csv(url: str, tmp_path: Path) -> None:
    first = export(url, tmp_path / "out.csv")[0]
    frame = pd.read_csv(first, dtype={"learner": str})
    assert frame["learner"].tolist() == ['a, "b"\n', "001"] * 2
    assert frame["error"].tolist()[::2] == [1 / 3, 1e-300]
    assert frame["error"].tolist()[3] == np.inf
    assert np.isnan(frame["error"][1])
    assert frame["error_count"].tolist() == [4, 0, 2**53 + 1, 4]
    assert frame["reached"].dtype == bool


def test_netcdf_is_the_tree(url: str, tmp_path: Path) -> None:
    (path,) = export(url, tmp_path / "out.nc")
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        ours = open_cube(url)
        assert sorted(tree.children) == ["ledger", "surfaces", "trials"]
        for name, child in ours.children.items():
            there = tree[name].to_dataset(inherit=False).load()
            here = child.to_dataset(inherit=False).load()
            for variable in here.variables:
                assert there[variable].dtype.kind.replace("O", "U") == here[variable].dtype.kind
                np.testing.assert_array_equal(
                    there[variable].values.astype(here[variable].dtype), here[variable].values
                )
        assert tree.attrs["spec"] == "name = 'x'"
        assert tree["trials"]["error_status"].attrs["flag_values"].dtype == np.uint8
        assert "_FillValue" not in tree["trials"]["error"].encoding


def test_slabs_are_seamless(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [p.read_bytes() for p in export(url, tmp_path / "whole.csv")]
    monkeypatch.setattr(exporting, "_ROWS", 1)
    assert [p.read_bytes() for p in export(url, tmp_path / "slabs.csv")] == whole


def test_a_file_is_whole_or_not_there(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out.parquet").write_bytes(b"old")
    before = {p.name for p in tmp_path.iterdir()}

    def broken(*a: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "_ledger", broken)
    with pytest.raises(StoreError, match="No space left"):
        export(url, tmp_path / "out.parquet")
    assert (tmp_path / "out.parquet").read_bytes() == b"old"
    assert {p.name for p in tmp_path.iterdir()} == before
    monkeypatch.undo()
    export(url, tmp_path / "out.parquet")
    assert read(tmp_path / "out.parquet").num_rows == 4


def test_a_file_system_that_may_not_be_written_is_one_message(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(exporting, "_ledger", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(StoreError, match="cannot be written: Read-only file system; choose another place"):
        export(url, tmp_path / "out.csv")


def test_refusals(url: str, tmp_path: Path) -> None:
    for name, says in {
        "out.xlsx": "give .parquet",
        "out": "give .parquet",
        "cube.zarr/out.csv": "lies in the store",
        "cube.zarr/../cube.zarr/trials/out.csv": "lies in the store",
        "nowhere/out.csv": "does not exist",
    }.items():
        with pytest.raises(StoreError, match=says):
            export(url, tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(StoreError, match="is a folder"):
        export(url, tmp_path / "folder.csv")
    with pytest.raises(StoreError, match="there is no store"):
        export(str(tmp_path / "no.zarr"), tmp_path / "out.csv")
    assert {p.name for p in tmp_path.iterdir()} == {"cube.zarr", "folder.csv"}


def test_without_surfaces(url: str, tmp_path: Path) -> None:
    import shutil

    shutil.rmtree(Path(url, "surfaces"))
    with pytest.raises(StoreError, match="no surfaces yet"):
        export(url, tmp_path / "out.csv")
    given = xarray.Dataset({"error": ("n", [0.5, 0.25])}, {"n": [20, 40]})
    assert pd.read_csv(export(url, tmp_path / "out.csv", given)[0]).to_dict("list") == {
        "n": [20, 40],
        "error": [0.5, 0.25],
    }
