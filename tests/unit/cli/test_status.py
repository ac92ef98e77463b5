"""`specctl status` on this machine by the real command line, of a server that was never deployed: no SSH, no root, no engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SPECCTL = (sys.executable, "-m", "specctl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with an inventory of this machine and a state folder of its own."""
    made = subprocess.run(
        [*SPECCTL, "init", "--lab"], cwd=tmp_path, env=_env(tmp_path), capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return tmp_path


def _env(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPECCTL_", "XDG_"))}
    return {**kept, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "NO_COLOR": "1", "COLUMNS": "100"}


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start the command."""
    return subprocess.Popen(
        [*SPECCTL, "status", "--all", *words],
        cwd=folder,
        env=_env(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_one_look(folder: Path) -> None:
    """A server that was never deployed is a row, in text and in JSON, and no failure."""
    table = started(folder)
    shown, errors = table.communicate(timeout=60)
    assert (table.returncode, errors) == (0, "")
    cells = shown.splitlines()[1].split()
    assert (cells[:5], set(cells[5:])) == (["local", "lab", "—", "not", "deployed"], {"—"})
    listed = started(folder, "--json")
    (row,) = json.loads(listed.communicate(timeout=60)[0])["servers"]
    assert (listed.returncode, row["state"], row["running"], row["figures"]) == (0, "not deployed", None, {})


@pytest.mark.parametrize(("words", "begin"), [((), "HOST"), (("--json",), '{"servers": [')])
def test_ctrl_c_ends_a_watch_well(folder: Path, words: tuple[str, ...], begin: str) -> None:
    """A watch prints what it sees at once, and Ctrl-C ends it with 0 and without a word."""
    watch = started(folder, "--watch", "--interval", "0.5", *words)
    assert watch.stdout is not None
    assert watch.stdout.readline().startswith(begin)
    watch.send_signal(signal.SIGINT)
    _, errors = watch.communicate(timeout=60)
    assert (watch.returncode, errors) == (0, "")


def test_an_interval_of_nothing(folder: Path) -> None:
    """An interval without a watch would do nothing, and is refused."""
    done = started(folder, "--interval", "5")
    _, errors = done.communicate(timeout=60)
    assert (done.returncode, errors.splitlines()[0]) == (2, "error: --interval has no meaning without --watch")


def test_an_interval_that_is_none(folder: Path) -> None:
    """An interval that nobody could read at is refused in one sentence."""
    done = started(folder, "--watch", "--interval", "0")
    _, errors = done.communicate(timeout=60)
    assert (done.returncode, errors.startswith("error: ")) == (2, True)
