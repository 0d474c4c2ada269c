"""What a stranger installs: sdist → wheel → another place, with all four rooms and the type marker in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import predcube

REPOSITORY = Path(predcube.__file__).parents[2]


@pytest.mark.long
def test_the_wheel_built_from_the_sdist_holds_every_room(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(REPOSITORY)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    place = tmp_path / "elsewhere"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
    ]
    subprocess.run([*install, "--target", str(place), str(wheel)], check=True, capture_output=True)
    assert (place / "predcube" / "py.typed").exists()
    rooms = "import predcube, predcube.pipeline, predcube.tasks, predcube.storage, predcube.cluster"
    shown = subprocess.run(
        [sys.executable, "-c", f"{rooms}; print(predcube.pipeline.__file__)"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(place)},
    ).stdout.strip()
    assert Path(shown).is_relative_to(place)
