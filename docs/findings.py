"""Runs the commands of docs/findings.md, puts what they print beside them, and draws its pictures.

    python docs/findings.py [FOLDER]        (docs unless given: where the page and its pictures are written)

The commands run in a folder of their own that holds ``examples`` and ``benchmarks``; what ends in .svg there is copied.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "findings.md"
WIDTH = 112
CLOCK = re.compile(r" in [\d.]+ s of one core")  # what another run would not print again
COMMAND = re.compile(
    r"(<!-- command -->\n```sh\n)(.*?)(```\n)(?:(```text\n)(.*?)(```\n))?(<!-- /command -->)", re.DOTALL
)


def printed(command: str, folder: Path) -> str:
    """What one command of the page prints there."""
    program, *words = shlex.split(command)
    if program == "predcube":
        words = ["-c", "from predcube.pipeline.cli.app import main; main()", *words]
    environment = {**os.environ, "COLUMNS": str(WIDTH)}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stderr}")
    lines = [CLOCK.sub("", line).rstrip() for line in done.stdout.splitlines() if not line.startswith("wrote ")]
    lines = [line if len(line) <= WIDTH else f"{line[: WIDTH - 1].rstrip()}…" for line in lines]
    return "\n".join(lines) + "\n" if lines else ""


def filled(page: str, folder: Path) -> str:
    """The page with the output of its commands."""

    def run(m: re.Match[str]) -> str:
        commands = m[2].replace("\\\n", " ").splitlines()
        text = "".join(printed(c, folder) for c in commands)
        return f"{m[1]}{m[2]}{m[3]}" + (f"```text\n{text}```\n" if text else "") + m[7]

    return COMMAND.sub(run, page)


def main(out: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("examples", "benchmarks"):
            (folder / part).symlink_to(ROOT / part)
        text = filled(PAGE.read_text(encoding="utf-8"), folder)
        (out / "examples").mkdir(parents=True, exist_ok=True)
        for picture in sorted(folder.glob("*.svg")):
            shutil.copy(picture, out / "examples" / picture.name)
        (out / "findings.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs")
