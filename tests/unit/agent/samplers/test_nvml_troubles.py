"""The NVML sampler when GPUs are lost, calls hang, or the driver goes: it says so, goes on, and recovers by itself."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.control.sample.gpu import (
    NvmlSample,
    Problem,
)
from specctl_agent.samplers.host import HostSampler
from specctl_agent.samplers.nvml import NvmlSampler
from specctl_agent.samplers.runner import Slot
from tests.nvml.standin import GPUS, LIBRARY, Scenario, uuid
from tests.unit.agent.samplers.looks import IMPATIENT, PATIENCE_S, QUICK, child, problem, until, whole

pytestmark = pytest.mark.slow


def test_one_lost_gpu_leaves_the_others(nvml: Scenario, sampler: NvmlSampler) -> None:
    """A GPU that falls off the bus is named with its error, the others go on, and it comes back by itself."""
    assert whole(sampler.sample())
    nvml.write("fault 3 * GPU_IS_LOST")
    sample = sampler.sample()
    assert [gpu.index for gpu in sample.gpus] == [0, 1, 2, 4, 5, 6, 7]
    (lost,) = sample.lost
    assert (lost.index, lost.uuid, lost.trouble.problem) == (3, uuid(3), Problem.GPU_LOST)
    assert lost.trouble.detail == "GPU_IS_LOST"
    assert sampler.sample().lost[0].trouble.since_s == lost.trouble.since_s
    nvml.write()
    assert until(sampler, whole).lost == ()


def test_a_gpu_lost_from_the_start_is_named(nvml: Scenario, sampler: NvmlSampler) -> None:
    """A GPU that never answered has no UUID to be known by, but its index."""
    nvml.write("fault 7 nvmlDeviceGetHandleByIndex_v2 GPU_IS_LOST")
    sample = sampler.sample()
    assert len(sample.gpus) == GPUS - 1
    assert [(lost.index, lost.uuid) for lost in sample.lost] == [(7, None)]
    nvml.write()
    assert until(sampler, whole).gpus[7].uuid == uuid(7)


def test_when_all_gpus_are_lost_it_begins_anew(nvml: Scenario, sampler: NvmlSampler) -> None:
    """With no GPU left the sample says why, and a new process asks again, later each time."""
    assert whole(sampler.sample())
    nvml.write("fault * * UNKNOWN")
    sample = sampler.sample()
    assert sample.gpus == ()
    assert problem(sample) is Problem.NO_ANSWER
    assert len(sample.lost) == GPUS
    nvml.write()
    assert until(sampler, whole).health.starts >= 2


def test_a_hung_call_is_ended_and_its_gpu_left_alone(nvml: Scenario, impatient: NvmlSampler) -> None:
    """A call that hangs is killed with its process and counted; the next one samples the other GPUs and names the one that hung."""
    assert whole(until(impatient, whole))
    nvml.write("hang 5 nvmlDeviceGetPowerUsage")
    waiting = until(impatient, lambda sample: sample.trouble is not None)
    assert problem(waiting) is Problem.NO_ANSWER
    assert waiting.trouble is not None
    assert "nvmlDeviceGetPowerUsage on GPU 5" in waiting.trouble.detail
    sample = until(impatient, lambda sample: len(sample.gpus) == GPUS - 1)
    (lost,) = sample.lost
    assert (lost.index, lost.uuid, lost.trouble.problem) == (5, uuid(5), Problem.HUNG)
    assert lost.trouble.detail.startswith("nvmlDeviceGetPowerUsage did not come back within")
    assert (sample.trouble, sample.health.hangs, sample.health.starts) == (None, 1, 2)
    assert 1.0 <= sample.health.hung_s < PATIENCE_S


def test_a_gpu_that_hung_is_asked_again(nvml: Scenario) -> None:
    """After its time alone a GPU is asked again; if the call works then, it is sampled as before."""
    sampler = NvmlSampler(limits=replace(IMPATIENT, hang_s=0.2, spare_first_s=0.2))
    nvml.write("hang 5 nvmlDeviceGetPowerUsage")
    until(sampler, lambda sample: sample.health.hangs >= 2)
    nvml.write()
    sample = until(sampler, whole)
    sampler.close()
    assert sample.lost == ()


def test_an_event_is_told_before_what_hangs_after_it(nvml: Scenario, impatient: NvmlSampler) -> None:
    """An XID that comes with a hang is not lost with the process that was killed."""
    assert whole(until(impatient, whole))
    nvml.write("xid 5 79", "hang 5 *")
    sample = until(impatient, lambda sample: sample.health.hangs == 1)
    assert [(event.uuid, event.xid) for event in sample.xids] == [(uuid(5), 79)]


def test_each_event_counts_once(nvml: Scenario, sampler: NvmlSampler) -> None:
    """An XID appears once, with a serial of its own, also for a reader who missed the sample that brought it."""
    nvml.write("xid 0 13")
    assert sampler.sample().xids == ()  # what was before the process listened is not told
    nvml.write("xid 0 13", "xid 2 31", "xid 2 31", "xid 4 94")
    sampler.sample()
    sampler.sample()
    sample = sampler.sample()
    assert [(event.serial, event.uuid, event.xid) for event in sample.xids] == [
        (1, uuid(2), 31),
        (2, uuid(2), 31),
        (3, uuid(4), 94),
    ]
    assert [(count.uuid, count.xid, count.count) for count in sample.xid_counts] == [(uuid(2), 31, 2), (uuid(4), 94, 1)]
    assert [event.serial for event in sample.xids_after(2)] == [3]
    child().kill()
    until(sampler, lambda sample: sample.health.starts == 2 and whole(sample))
    nvml.write("xid 0 13", "xid 2 31", "xid 2 31", "xid 4 94", "xid 1 48")
    assert [event.serial for event in until(sampler, lambda sample: len(sample.xids) > 3).xids] == [1, 2, 3, 4]


def test_events_go_on_after_their_queue_failed(nvml: Scenario, sampler: NvmlSampler) -> None:
    """When the queue of events breaks, the look goes on without, and it is set up again."""
    assert whole(sampler.sample())
    nvml.write("fault - nvmlEventSetWait_v2 GPU_IS_LOST")
    assert whole(sampler.sample())
    nvml.write()
    sampler.sample()
    nvml.write("xid 3 63")
    assert [event.xid for event in until(sampler, lambda sample: bool(sample.xids)).xids] == [63]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("LIB_RM_VERSION_MISMATCH", Problem.VERSION_MISMATCH),
        ("DRIVER_NOT_LOADED", Problem.DRIVER_NOT_LOADED),
        ("NO_PERMISSION", Problem.NO_PERMISSION),
        ("UNKNOWN", Problem.NO_ANSWER),
    ],
)
def test_a_driver_that_refuses_is_said_and_tried_again(
    nvml: Scenario, sampler: NvmlSampler, error: str, expected: Problem
) -> None:
    """A driver that cannot be spoken to is named with when it is tried again, and sampled as soon as it can be."""
    nvml.write(f"fault - nvmlInitWithFlags {error}")
    sample = sampler.sample()
    assert sample.gpus == ()
    assert problem(sample) is expected
    assert sample.trouble is not None
    assert sample.trouble.retry_at_s is not None
    assert sample.trouble.detail.startswith(error)
    nvml.write()
    assert whole(until(sampler, lambda sample: sample.trouble is None))


def test_a_driver_that_goes_and_comes_back(nvml: Scenario, sampler: NvmlSampler) -> None:
    """A driver that vanishes under way is said, tried again with back-off, never in a tight loop, and sampled once it is back."""
    assert whole(sampler.sample())
    nvml.write("fault * * DRIVER_NOT_LOADED")
    gone = sampler.sample()
    assert (problem(gone), gone.gpus) == (Problem.DRIVER_NOT_LOADED, ())
    end_s = time.monotonic() + 0.5
    while time.monotonic() < end_s:
        gone = sampler.sample()
    assert gone.health.starts <= 1 + 2 + 0.5 / QUICK.retry_last_s
    assert gone.trouble is not None
    assert gone.trouble.since_s < end_s - 0.3  # one trouble, however often it was tried
    nvml.write()
    assert whole(until(sampler, lambda sample: sample.trouble is None))


def test_without_the_library_it_says_so(nvml: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose library is missing or no library is said to be so, and is sampled once it is there."""
    (tmp_path / LIBRARY).write_text("no library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    sampler = NvmlSampler(limits=QUICK)
    sample = sampler.sample()
    assert problem(sample) is Problem.LIBRARY_MISSING
    monkeypatch.setenv("LD_LIBRARY_PATH", nvml.environment["LD_LIBRARY_PATH"])
    assert whole(until(sampler, lambda sample: sample.trouble is None))
    sampler.close()


def test_a_slow_start_is_said_and_waited_for(nvml: Scenario) -> None:
    """A driver that takes its time to begin is neither hung nor silent: the samples say that it starts."""
    nvml.write("delay - nvmlInitWithFlags 1500")
    sampler = NvmlSampler(limits=IMPATIENT)
    assert problem(sampler.sample()) is Problem.STARTING
    sample = until(sampler, whole)
    sampler.close()
    assert (sample.health.hangs, sample.health.starts) == (0, 1)


def test_a_killed_process_is_replaced(nvml: Scenario, sampler: NvmlSampler) -> None:
    """An NVML process that somebody killed is said, counted, and replaced."""
    assert whole(sampler.sample())
    first = child()
    first.kill()
    sample = until(sampler, lambda sample: sample.trouble is not None)
    assert problem(sample) is Problem.CHILD_DIED
    sample = until(sampler, whole)
    assert (sample.health.deaths, sample.health.starts) == (1, 2)
    assert child().pid != first.pid


def test_closing_ends_the_process(nvml: Scenario) -> None:
    """No NVML process outlives its sampler, not even one that hangs."""
    sampler = NvmlSampler(limits=IMPATIENT)
    until(sampler, whole)
    process = child()
    nvml.write("hang 0 *")
    sampler.sample()
    sampler.close()
    process.wait(PATIENCE_S)
    assert not process.is_running()


def test_a_hung_driver_delays_no_other_sampler(nvml: Scenario, tmp_path: Path) -> None:
    """While a call into the driver hangs, the host is sampled at its own pace, and the GPUs' slot says what is waited for."""
    gpus = Slot(lambda: NvmlSampler(period_s=0.02, limits=replace(IMPATIENT, hang_s=PATIENCE_S)))
    host = Slot(lambda: HostSampler(state_dir=tmp_path, period_s=0.02))
    nvml.write("hang 4 nvmlDeviceGetMemoryInfo_v2")
    gpus.start()
    host.start()
    end_s = time.monotonic() + PATIENCE_S
    while host.read(time.monotonic()).health.successes < 20 or problem_in(gpus) is not Problem.NO_ANSWER:
        assert time.monotonic() < end_s
        threading.Event().wait(0.005)
    reading = host.read(time.monotonic())
    assert (reading.health.failures, reading.health.hung) == (0, False)
    assert reading.health.last_duration_s is not None
    assert reading.health.last_duration_s < 5.0
    assert not gpus.read(time.monotonic()).health.hung
    for slot in (gpus, host):
        slot.stop()
        assert slot.join(PATIENCE_S)


def problem_in(slot: Slot[NvmlSample]) -> Problem | None:
    sample = slot.read(time.monotonic()).value
    return None if sample is None else problem(sample)
