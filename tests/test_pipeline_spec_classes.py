"""A class read from a file for a spec: formats, repeated rows, entries that are no labels."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from predcube.pipeline.failures import BadInput
from predcube.pipeline.spec import load_spec
from predcube.tasks import hypotheses

ROWS = [[0, 1, 1], [1, 0, 0], [0, 1, 1], [0, 0, 0], [0, 1, 1]]


def spec(path: Path) -> dict[str, object]:
    return {
        "kind": "prediction",
        "n": 4,
        "trials": 2,
        "hypotheses": {"kind": "table", "path": str(path)},
        "distribution": {"kind": "concept", "hypothesis": 0},
        "learner": {"kind": "erm"},
        "measure": {"quantities": ["error"]},
    }


@pytest.mark.parametrize("name", ["class.npy", "class.csv", "bare.csv", "class.parquet"])
def test_repeated_rows_of_a_file_are_merged_counted_and_said(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "class.npy":
        np.save(path, np.array(ROWS))
    elif name == "class.parquet":
        pd.DataFrame(ROWS, columns=list("abc")).to_parquet(path)
    else:
        pd.DataFrame(ROWS, columns=list("abc")).to_csv(path, index=False, header=name == "class.csv")
    sweep = load_spec(spec(path))
    assert sweep.sections["hypotheses"] == {"kind": "table", "matrix": ((0, 1, 1), (1, 0, 0), (0, 0, 0))}
    assert any("2 of 5 rows of" in note and "were merged; 3 functions are left" in note for note in sweep.notes)
    assert len(hypotheses.build("table", matrix=ROWS).members()) == 5  # written out, they count


def test_an_entry_that_is_no_label_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "class.csv"
    path.write_text("a,b\n0,1\n1,7\n")
    with pytest.raises(BadInput, match=r"has 7\.0 in row 1, column 1 .*every entry must be 0 or 1"):
        load_spec(spec(path))
