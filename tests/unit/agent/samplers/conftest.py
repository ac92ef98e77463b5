"""The stand-in NVML for the tests of what samples GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nvml import standin


@pytest.fixture
def nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> standin.Scenario:
    """Return a scenario of eight healthy GPUs; every NVML process that is started from now on obeys it."""
    if standin.compiler() is None:
        pytest.skip("no C compiler for the stand-in NVML (Debian's package gcc with libc6-dev)")
    scenario = standin.Scenario(tmp_path)
    for name, value in scenario.environment.items():
        monkeypatch.setenv(name, value)
    return scenario
