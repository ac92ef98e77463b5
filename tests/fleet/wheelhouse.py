"""The locked wheels of the agent in a folder, fetched as an operator with internet does, for hosts that have none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.fleet.site import ROOT


def fetch(folder: Path) -> Path:
    """Fetch them and return the folder."""
    words = ["--quiet", "--require-hashes", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check"]
    lock = ROOT / "requirements" / "agent.lock"
    argv = [sys.executable, "-m", "pip", "download", *words, "--dest", str(folder), "--requirement", str(lock)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder
