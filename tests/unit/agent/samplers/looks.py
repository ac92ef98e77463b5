"""What the tests of the NVML sampler share: limits for a test's patience, and looks until something holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import psutil

from specctl.control.sample.gpu import NvmlSample, Problem
from specctl_agent.samplers.nvml import NvmlSampler
from specctl_agent.samplers.nvml_keeper import Limits
from tests.nvml.standin import GPUS

PATIENCE_S = 20.0
# As in production, but for the waiting: what is asked seldom is asked each time.
QUICK = Limits(
    patience_s=5.0,
    hang_s=1.0,
    start_s=PATIENCE_S,
    retry_first_s=0.02,
    retry_last_s=0.1,
    spare_first_s=60.0,
    wear_s=0.0,
    processes_s=0.0,
    links_s=0.0,
)
IMPATIENT = replace(QUICK, patience_s=0.05)


def until(sampler: NvmlSampler, claim: Callable[[NvmlSample], bool]) -> NvmlSample:
    """Sample until it holds, and return that sample."""
    end = time.monotonic() + PATIENCE_S
    while not claim(sample := sampler.sample()):
        assert time.monotonic() < end, f"never came true: {sample}"
        threading.Event().wait(0.005)
    return sample


def problem(sample: NvmlSample) -> Problem | None:
    return None if sample.trouble is None else sample.trouble.problem


def whole(sample: NvmlSample) -> bool:
    return sample.trouble is None and len(sample.gpus) == GPUS


def child() -> psutil.Process:
    """The NVML process of this test."""
    (found,) = [each for each in psutil.Process().children() if "nvml_child" in " ".join(each.cmdline())]
    return found
