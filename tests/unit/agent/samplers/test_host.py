"""The host sampler on this machine."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from specctl_agent.samplers.host import HostSampler


def test_this_machine_is_sampled(tmp_path: Path) -> None:
    """Memory, disk and load of this machine arrive, in bytes, and agree with what the kernel says."""
    sample = HostSampler(state_dir=tmp_path).sample()
    disk = os.statvfs(tmp_path)
    assert sample.cpus == os.cpu_count()
    assert sample.memory_total_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert sample.memory_available_bytes is not None
    assert 0 < sample.memory_available_bytes < sample.memory_total_bytes
    assert sample.disk_total_bytes == disk.f_blocks * disk.f_frsize
    assert sample.disk_free_bytes == pytest.approx(disk.f_bavail * disk.f_frsize, rel=0.2)
    assert sample.load_1m is not None
    assert sample.load_1m >= 0.0
    assert sample.at_s == pytest.approx(time.monotonic(), abs=5.0)
    assert sample.units == ()


def test_the_first_share_of_processors_is_unknown(tmp_path: Path) -> None:
    """A share needs two looks: the first has none, the next ones do, and work shows in them."""
    sampler = HostSampler(state_dir=tmp_path)
    assert sampler.sample().cpu_ratio is None
    ratio = None
    end_s = time.monotonic() + 10.0
    while ratio is None and time.monotonic() < end_s:
        threading.Event().wait(0.02)
        ratio = sampler.sample().cpu_ratio
    assert ratio is not None
    busy_until_s = time.monotonic() + 0.3
    while time.monotonic() < busy_until_s:
        sum(range(1000))
    worked = sampler.sample().cpu_ratio
    assert worked is not None
    assert 0.5 / (os.cpu_count() or 1) < worked <= 1.0


def test_a_missing_disk_costs_its_own_fields(tmp_path: Path) -> None:
    """Where the state folder is gone its disk is unknown, and all else is sampled."""
    sample = HostSampler(state_dir=tmp_path / "gone").sample()
    assert (sample.disk_total_bytes, sample.disk_free_bytes) == (None, None)
    assert sample.memory_total_bytes is not None


def test_a_unit_that_nobody_knows_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a host whose systemd does not answer, a unit has its name and nothing else."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (unit,) = HostSampler(state_dir=tmp_path, units=["specctl-chat.service"]).sample().units
    assert (unit.unit, unit.active, unit.asked_at_s) == ("specctl-chat.service", None, None)
