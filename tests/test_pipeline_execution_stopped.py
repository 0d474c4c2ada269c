"""Runs that are stopped, seen from outside: through a process of their own, as a user starts them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from predcube import storage
from predcube.storage import TileStates

# Some seconds of work in many tiles: audits of samples too large to be quick, cut at one trial of one cell.
SPEC = """
name = "slow"
kind = "prediction"
seed = 7
trials = {trials}
[hypotheses]
kind = "thresholds"
points = 12
[distribution]
kind = "threshold"
at = 6
noise = 0.1
[learner]
kind = "stable"
gamma = 0.1
[measure]
quantities = ["error", "stability", "privacy_loss"]
[sweep]
n = [{sizes}]
"learner.gamma" = [0.05, 0.1]
"""
MAIN = "from predcube.pipeline.cli import running; from predcube.pipeline.cli.app import main; main()"


def written(folder: Path, *, trials: int = 16, sizes: str = "100, 200, 300") -> Path:
    path = folder / "slow.toml"
    path.write_text(SPEC.format(trials=trials, sizes=sizes))
    return path


started: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """A test that fails leaves no process of its own."""
    yield
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    started.clear()


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a group of its own, so that a Ctrl-C can be sent to all of it, as a terminal does
        **options,
    )
    started.append(process)
    return process


def command(*arguments: str | Path) -> tuple[int, str, str]:
    process = start(*arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def wait_for(url: Path, count: int, process: subprocess.Popen[str]) -> TileStates:
    """Until so many tiles are done."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"ended too early: {process.communicate()}")
        if (url / "zarr.json").exists() and storage.exists(str(url)):
            states = storage.tile_states(str(url), "listing")
            if len(states.done) >= min(count, states.total):
                return states
        time.sleep(0.02)
    raise AssertionError("nothing happened")


def contents(url: Path) -> dict[str, bytes]:
    tree = storage.open_cube(str(url))
    return {
        f"{group}/{name}": array.values.tobytes()
        for group in ("trials", "surfaces")
        for name, array in tree[group].to_dataset(inherit=False).variables.items()
    }


def workers_of(pid: int) -> list[int]:
    """The processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == pid and fields[0] != "Z" and int(folder.name) != pid:
            found.append(int(folder.name))
    return found


def left_behind(pid: int) -> list[int]:
    """Workers that outlive their driver by seconds; a moment they may take."""
    deadline = time.monotonic() + 5
    while workers_of(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return workers_of(pid)


@pytest.mark.long
@pytest.mark.parametrize("cluster", ["local", "serial"])
def test_after_a_kill_only_what_is_missing_is_computed(cluster: str, tmp_path: Path) -> None:
    spec = written(tmp_path)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    arguments = ["run", spec, "--cluster", cluster, *(("--workers", "2") if cluster == "local" else ())]
    assert command(*arguments, "--store", whole)[0] == 0
    process = start(*arguments, "--store", cut)
    half = storage.tile_states(str(whole)).total // 2
    wait_for(cut, half, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not left_behind(process.pid)
    before = storage.tile_states(str(cut))
    assert before.done
    assert before.missing
    code, out, err = command(*arguments, "--store", cut)
    assert code == 0, err
    assert f"{len(before.missing)} of {len(before.missing) + len(before.done)} tiles computed" in out
    after = storage.tile_states(str(cut), "digests")
    assert not after.missing
    assert all(after.receipts[key] == receipt for key, receipt in before.receipts.items())
    assert contents(cut) == contents(whole)


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_ends_at_once_and_says_how_to_go_on(how: signal.Signals, tmp_path: Path) -> None:
    url = tmp_path / "cube"
    process = start(
        "run", written(tmp_path, trials=64, sizes="100, 200, 300, 400, 500"), "--store", url, "--workers", "2"
    )
    wait_for(url, 1, process)
    begun = time.monotonic()
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does, to workers too
        time.sleep(0.1)
        if process.poll() is None:
            os.killpg(process.pid, how)  # an impatient second one changes nothing
    else:
        os.kill(process.pid, how)
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - begun < 10  # half a second on an idle machine
    assert process.returncode == 130
    assert "Traceback" not in err + out
    assert "Error" not in err + out
    assert re.search(r"predcube: interrupted; run the same command again", err.splitlines()[-1])
    assert not left_behind(process.pid)
    assert storage.tile_states(str(url)).missing


@pytest.mark.long
@pytest.mark.parametrize("after", [0.0, 0.3, 1.0])
def test_a_run_that_is_stopped_while_it_starts_ends_cleanly_too(after: float, tmp_path: Path) -> None:
    process = start("run", written(tmp_path, trials=64), "--store", tmp_path / "cube", "--workers", "2")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("slow: ")  # planned; the cluster starts now
    time.sleep(after)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "Traceback" not in err + out
    assert not left_behind(process.pid)


@pytest.mark.long
def test_status_and_exit_statuses(tmp_path: Path) -> None:
    spec, url = written(tmp_path, trials=4, sizes="4, 100"), tmp_path / "cube"
    code, out, err = command("run", spec, "--store", url, "--budget", "1e-9")
    assert (code, out) == (4, "")
    assert not url.exists()
    code, out, err = command("status", url)
    assert code == 2
    assert "there is no store" in err
    code, out, err = command("run", spec, "--store", url, "--cluster", "serial")
    assert (code, "Traceback" in err) == (0, False)
    assert re.search(r"slow: 4 cells x 4 trials in \d+ tiles, about .* of one core, 1 worker\n", out)
    code, out, err = command("status", url, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["done"] == found["tiles"] > 0
    assert (found["failed"], found["missing"], found["errors"]) == (0, 0, [])
    code, out, err = command("run", written(tmp_path, trials=8, sizes="4, 100"), "--store", url)
    assert code == 3
    assert "trials" in err
    code, out, err = command("clusters")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["local", "serial"]
    code, out, err = command("run", spec, "--store", "/proc/nowhere/cube", "--cluster", "serial")
    assert (code, "Traceback" in err) == (2, False)
