"""The start of the real server: what grows, what stretches, what is printed."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specctl.lab.serve import phases
from tests.labmodels import Folders
from tests.labserver import LabServer, wait_until

pytestmark = pytest.mark.slow


def read_bytes(server: LabServer) -> int:
    """Return how many bytes a server's process has read."""
    assert server.process is not None
    text = Path(f"/proc/{server.process.pid}/io").read_text(encoding="ascii")
    return int(re.findall(r"rchar: (\d+)", text)[0])


def test_shares_are_a_whole() -> None:
    """The phases' shares sum to one, so that --load-seconds means seconds."""
    assert abs(sum(phases.SHARES.values()) - 1) < 1e-9


def test_weights_are_read_while_the_bar_moves(folders: Folders, logs: Path) -> None:
    """Between a quarter and three quarters of the bar about half of the file is read, no more."""
    size = (folders.target / "model.safetensors").stat().st_size
    with LabServer(folders, logs, "--load-seconds", "3") as server:
        wait_until(lambda: " 25% Completed" in server.log(), what="a quarter")
        quarter = read_bytes(server)
        wait_until(lambda: " 75% Completed" in server.log(), what="three quarters")
        assert 0.3 * size < read_bytes(server) - quarter < 0.8 * size


def test_a_stretched_start_takes_its_time(folders: Folders, logs: Path) -> None:
    """--load-seconds stretches the start to about that long, and the timings line tells where the time went."""
    with LabServer(folders, logs, "--load-seconds", "2") as server:
        began = time.monotonic()
        server.ready()
        assert time.monotonic() - began >= 2
        times = server.get("/server_info").json()["startup_time"]
    assert times["load_weight"] >= 0.65 * 2
    assert times["cuda_graph"]["target_verify"] >= 0.15 * 2
    assert (
        times["scheduler_e2e"]
        >= times["load_weight"] + times["kv_cache_allocation"] + times["cuda_graph"]["target_verify"]
    )


def test_without_a_drafter_there_is_one_pair(folders: Folders, logs: Path) -> None:
    """Without a drafter one pair of weight lines and one KV line are printed, with one two of each."""
    counts = []
    for draft in (False, True):
        with LabServer(folders, logs, draft=draft) as server:
            server.ready()
            counts.append(
                [server.log().count(text) for text in ("Load weight begin", "Load weight end", "KV Cache is allocated")]
            )
    assert counts == [[1, 1, 1], [2, 2, 2]]


def test_an_unknown_subcommand() -> None:
    """The lab's command line refuses what it does not know with exit code 2."""
    for argv in ([], ["train-not-here"]):
        ended = subprocess.run(
            [sys.executable, "-m", "specctl.lab", *argv], capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stderr.startswith("usage: python -m specctl.lab serve")) == (2, True)
