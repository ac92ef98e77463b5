"""The stand-in NVML for the tests of what samples GPUs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from specctl_agent.samplers.nvml import NvmlSampler
from tests.nvml import standin
from tests.unit.agent.samplers.looks import IMPATIENT, QUICK


@pytest.fixture
def nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> standin.Scenario:
    """Return a scenario of eight healthy GPUs; every NVML process that is started from now on obeys it."""
    if standin.compiler() is None:
        reason = "no C compiler for the stand-in NVML (Debian's package gcc with libc6-dev)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    scenario = standin.Scenario(tmp_path)
    for name, value in scenario.environment.items():
        monkeypatch.setenv(name, value)
    return scenario


@pytest.fixture
def sampler(nvml: standin.Scenario) -> Iterator[NvmlSampler]:
    """Give a sampler on the scenario."""
    made = NvmlSampler(limits=QUICK)
    yield made
    made.close()


@pytest.fixture
def impatient(nvml: standin.Scenario) -> Iterator[NvmlSampler]:
    """Says that an answer is missing instead of waiting for it."""
    made = NvmlSampler(limits=IMPATIENT)
    yield made
    made.close()
