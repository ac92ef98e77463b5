"""The samplers' memory over many looks, and the whole agent's over many ticks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nvml.standin import Scenario

LOOKS = 100_000
SLACK_BYTES = 1 << 20


@pytest.mark.soak
def test_memory_does_not_grow(nvml: Scenario, tmp_path: Path) -> None:
    """Over 100,000 looks, with GPUs, processes and events that come and go, neither process grows after the first tenth."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("SPECCTL_NVML_CALLS")
    run = subprocess.run(
        [sys.executable, "-m", "tests.nvml.soak", str(tmp_path), str(LOOKS)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    told = [[int(word) for word in line.split()] for line in run.stdout.splitlines()]
    assert told[-1][0] == LOOKS
    assert told[-1][3] == told[0][3], "a process was replaced: its memory says nothing of growth"
    for column in (1, 2):
        assert told[-1][column] <= told[0][column] + SLACK_BYTES, run.stdout


@pytest.mark.soak
def test_the_agent_does_not_grow(nvml: Scenario) -> None:
    """Over 100,000 ticks of the whole agent, beside eight GPUs and an engine, its processes together keep their size once full."""
    benchmark = Path(__file__).parents[4] / "benchmarks" / "agent_footprint.py"
    run = subprocess.run(
        [sys.executable, str(benchmark), "--soak", "--ticks", str(LOOKS), "--speed", "100"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
