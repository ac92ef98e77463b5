"""Listings in a pipe: nobody's terminal is there to be narrow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specctl.cli.printed import PIPE_WIDTH, is_folded, listing

SPECCTL = (sys.executable, "-m", "specctl")


def test_a_pipe_is_wide_unless_columns_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal lines have room; whoever sets COLUMNS gets what was asked for."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert (is_folded(), listing().width) == (False, PIPE_WIDTH)
    monkeypatch.setenv("COLUMNS", "72")
    assert (is_folded(), listing().width) == (True, 72)
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_status_in_a_pipe_folds_no_line(tmp_path: Path) -> None:
    """What goes to grep stands on one line: the host, and what to try, are never parted."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPECCTL_", "XDG_", "COLUMNS"))}
    env |= {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    subprocess.run([*SPECCTL, "init", "--lab"], cwd=tmp_path, env=env, capture_output=True, check=True)
    path = tmp_path / "inventory.yaml"
    name = "a-host-with-a-name-as-long-as-clouds-make-them"
    local = path.read_text().replace("  local:", f"  {name}:")
    path.write_text(local.replace("{via: local}", "{address: 127.0.0.1, port: 1, user: ops}"))
    done = subprocess.run(
        [*SPECCTL, "status", "--all"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert all(line.startswith(("HOST ", f"{name} ")) for line in lines), done.stdout
    assert any(line.startswith(f"{name}  try: ") and len(line) > 80 for line in lines), done.stdout
