"""Samples the stand-in NVML and this machine many times while GPUs come and go, and says how memory grew.

Usage: python -m tests.nvml.soak FOLDER LOOKS. Prints a line each tenth: looks so far, bytes of this and of the NVML process, and
how many of those were started. Run by a test.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import psutil

from specctl_agent.samplers.host import HostSampler
from specctl_agent.samplers.nvml import NvmlSampler
from specctl_agent.samplers.nvml_keeper import Limits
from tests.nvml.standin import Scenario

# What is asked seldom is asked each time, and nothing waits.
LIMITS = replace(Limits(), wear_s=0.0, processes_s=0.0, links_s=0.0, retry_first_s=0.01)


def scenario(turn: int) -> list[str]:
    """Return lines that differ from turn to turn: processes come and go, events come, a GPU is lost and back, fields fail."""
    lines = [f"process {gpu} {1000 + turn + gpu} {gpu << 30}" for gpu in range(turn % 8)]
    lines += [f"xid {event % 8} {13 + event % 5}" for event in range(turn)]
    if turn % 3 == 1:
        lines.append(f"fault {turn % 8} * GPU_IS_LOST")
    if turn % 3 == 2:
        lines.append(f"fault {turn % 8} nvmlDeviceGetTemperature UNKNOWN")
    return lines


def main(folder: Path, looks: int) -> None:
    """Take that many looks."""
    told = Scenario(folder)
    nvml, host, this = NvmlSampler(limits=LIMITS), HostSampler(state_dir=folder), psutil.Process()
    for look in range(1, looks + 1):
        if look % 100 == 0:
            told.write(*scenario(look // 100 % 64))
        sample = nvml.sample()
        if look % 10 == 0:
            host.sample()
        if look % (looks // 10) == 0:
            (child,) = this.children()
            print(look, this.memory_info().rss, child.memory_info().rss, sample.health.starts, flush=True)
    nvml.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
