"""`make demo`, whole: what a stranger runs first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO_LIMIT_S = 180.0


def processes_of(folder: Path) -> list[str]:
    """Return the command line of every process that works in the folder, or names it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode("utf-8", "replace")
            place = str((process / "cwd").readlink())
        except OSError:
            continue
        if str(folder) in words or place.startswith(str(folder)):
            found.append(words.replace("\0", " "))
    return found


@pytest.mark.slow
def test_demo_works_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """The demo deploys, asks, switches and cleans up, exit 0; no process and no file of it is left."""
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPECCTL_", "XDG_"))}

    done = subprocess.run(
        [sys.executable, "-m", "specctl.demo"],
        cwd=home,
        env=kept | {"HOME": str(home), "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEMO_LIMIT_S,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is left behind" in done.stdout
    assert [line.split()[3:5] for line in done.stdout.splitlines() if "  release 1, " in line and "done" in line] == [
        ["1,", "dflash"],
        ["1,", "ddtree"],
    ]
    assert "  switch  live none  done" in done.stdout
    assert processes_of(tmp_path) == []
    assert [*home.iterdir(), *temporary.iterdir()] == []
