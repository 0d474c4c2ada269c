"""A cell that takes long is resumed inside: parts survive a kill, are used once, give the same bits, and go."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

from predcube import storage
from predcube.pipeline import execution, parts, planning, working
from predcube.pipeline.failures import Interrupted
from predcube.pipeline.tiles import Site
from predcube.tasks.hypotheses import build
from predcube.tasks.mixture import evaluate, height, occupancy, subset_mixture, subtree

SPEC = """
name = "one huge cell"
trials = 1
[hypotheses]
kind = "{kind}"
[distribution]
kind = "{law}"
[learner]
kind = "stable"
subset_size = {size}
beta = 0.2
[measure]
quantities = ["error"]
method = "enumerate"
[sweep]
n = [{n}]
"""


def write_spec(path: Path, *, n: int = 22, size: int = 8) -> Path:
    path.write_text(
        SPEC.format(kind="thresholds", law="threshold", size=size, n=n).replace('"threshold"', '"threshold"\nat = 0.4')
    )
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few thousand subsets, and every tile fanned out."""
    monkeypatch.setattr("predcube.tasks.mixture.enumeration.ADDITIVE_BLOCK", 2**12)
    monkeypatch.setattr(planning.Plan, "level", lambda self, key: 2)


@pytest.mark.parametrize("kind", ["thresholds", "intervals", "interval_unions"])
def test_a_part_comes_back_to_the_bit(kind: str, tmp_path: Path) -> None:
    h = build(kind, **({"count": 2} if kind == "interval_unions" else {}))
    x = np.random.default_rng(0).random(9)
    work = subset_mixture(h, occupancy(x, (x > 0.5).astype(int)), subset_size=3, beta=0.3, method="enumerate")
    value = subtree(work, height(work.blocks), 0)
    content = parts.packed(value, {"cpu": 1.5})
    assert content is not None
    again = parts.unpacked(content)
    assert again is not None
    assert again[1] == {"cpu": 1.5}
    assert work.finish(again[0]).expectation(np.arange(len(work.finish(value).representatives))).tobytes() == (
        evaluate(work).expectation(np.arange(len(work.finish(value).representatives))).tobytes()
    )
    assert parts.packed(object(), {}) is None
    assert parts.unpacked(content[:-9]) is None


def test_damaged_parts_are_as_if_they_were_not_there(tmp_path: Path) -> None:
    spec = write_spec(tmp_path / "spec.toml", n=12, size=3)
    url = str(tmp_path / "store")
    execution.run(spec, url, cluster="serial")
    assert storage.put_part(url, "c0_t0", "w0_l2_5", b"abc" * 1000)
    assert storage.get_part(url, "c0_t0", "w0_l2_5") == b"abc" * 1000
    assert storage.parts(url) == {"c0_t0": ("w0_l2_5",)}
    xarray.open_datatree(url, engine="zarr", consolidated=False)  # type: ignore[arg-type]
    assert set(storage.open_cube(url).children) == {"trials", "ledger", "surfaces"}
    chunk = tmp_path / "store" / "partials" / "c0_t0" / "w0_l2_5" / "c" / "0"
    torn = bytearray(chunk.read_bytes())
    torn[len(torn) // 2] ^= 255
    chunk.write_bytes(bytes(torn))
    assert storage.get_part(url, "c0_t0", "w0_l2_5") is None
    chunk.unlink()
    assert storage.get_part(url, "c0_t0", "w0_l2_5") is None
    storage.drop_parts(url)
    assert storage.parts(url) == {}
    assert not (tmp_path / "store" / "partials").exists()


@pytest.mark.usefixtures("small")
def test_a_stopped_cell_goes_on_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = write_spec(tmp_path / "spec.toml")
    whole, url = str(tmp_path / "whole"), str(tmp_path / "store")
    execution.run(spec, whole, cluster="serial")
    computed: list[int] = []
    real = working.subtree

    def counted(workload: Any, level: int, index: int) -> Any:
        if len(computed) == 9 and not resumed:
            raise KeyboardInterrupt
        computed.append(index)
        return real(workload, level, index)

    resumed: list[bool] = []
    monkeypatch.setattr(working, "subtree", counted)
    with pytest.raises((KeyboardInterrupt, Interrupted)):
        execution.run(spec, url, cluster="serial")
    assert {p: len(names) for p, names in storage.parts(url).items()} == {"c0_t0": 9}
    resumed.append(True)
    monkeypatch.setattr(planning.Plan, "level", lambda self, key: 5)  # another calibration, another size of leaf
    working._tag.cache_clear()
    execution.run(spec, url, cluster="serial")
    leaves = -(
        -working.workload_blocks(Site(url=url, generation=storage.generation(url), directory=str(tmp_path)), ((0,), 0))[
            0
        ]
        // 4
    )
    assert sorted(computed) == list(range(leaves))  # none twice
    assert storage.parts(url) == {}
    for name in storage.read_tile(whole, (0, 0)):
        assert storage.read_tile(whole, (0, 0))[name].tobytes() == storage.read_tile(url, (0, 0))[name].tobytes()


PROGRAM = """
import sys
from predcube.pipeline import execution, planning
planning.Plan.level = lambda self, key: 0
if __name__ == "__main__":
    execution.run(sys.argv[1], sys.argv[2], cluster="local", workers=2)
"""


@pytest.mark.long
def test_a_killed_driver_loses_only_what_was_under_way(tmp_path: Path) -> None:
    spec = write_spec(tmp_path / "spec.toml", n=34, size=11)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    whole, url = str(tmp_path / "whole"), str(tmp_path / "store")
    child = subprocess.Popen([sys.executable, str(program), str(spec), url], start_new_session=True)
    limit = time.monotonic() + 90
    while time.monotonic() < limit:
        if Path(url).exists() and sum(map(len, storage.parts(url).values())) >= 8:
            break
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    time.sleep(2)  # its workers leave by themselves
    kept = sum(map(len, storage.parts(url).values()))
    assert kept >= 8
    for store in (url, whole):
        subprocess.run([sys.executable, str(program), str(spec), store], check=True, timeout=120)
    assert storage.parts(url) == {}
    assert storage.tile_states(url).done == ((0, 0),)
    for name, value in storage.read_tile(whole, (0, 0)).items():
        assert value.tobytes() == storage.read_tile(url, (0, 0))[name].tobytes()
