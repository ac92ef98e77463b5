"""The NVML sampler against the real binding and a compiled stand-in of the driver's library."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from specctl.control.sample.gpu import (
    DriverFacts,
    GpuFacts,
    GpuLinks,
    GpuProcess,
    GpuSample,
    GpuWear,
    NvmlSample,
    Problem,
    Throttle,
)
from specctl_agent.samplers.host import HostSampler
from specctl_agent.samplers.nvml import NvmlSampler
from specctl_agent.samplers.nvml_keeper import Limits
from specctl_agent.samplers.runner import Slot
from tests.nvml.standin import GPUS, LIBRARY, Scenario, uuid

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


@pytest.fixture
def sampler(nvml: Scenario) -> Iterator[NvmlSampler]:
    made = NvmlSampler(limits=QUICK)
    yield made
    made.close()


@pytest.fixture
def impatient(nvml: Scenario) -> Iterator[NvmlSampler]:
    """Says that an answer is missing instead of waiting for it."""
    made = NvmlSampler(limits=IMPATIENT)
    yield made
    made.close()


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


def test_eight_gpus_are_sampled(nvml: Scenario, sampler: NvmlSampler) -> None:
    """Every field of a healthy GPU arrives, in base units, by UUID; static facts beside it."""
    nvml.write("gpu 2 throttle 0x24", "gpu 2 temperature 91", "gpu 2 ecc_corrected 7", "gpu 2 remap_uncorrected 1")
    until(sampler, lambda sample: bool(sample.gpus))
    nvml.write("gpu 2 throttle 0x24", "gpu 2 temperature 92", "gpu 2 ecc_corrected 7", "gpu 2 remap_uncorrected 1")
    sample = until(sampler, lambda sample: sample.gpus[2].links is not None)
    gpu = sample.gpus[2]
    assert gpu.wear is not None
    assert gpu.links is not None
    assert gpu == GpuSample(
        uuid=uuid(2),
        index=2,
        busy_ratio=0.87,
        memory_busy_ratio=0.61,
        memory_used_bytes=120_259_084_288,
        memory_total_bytes=150_754_820_096,
        power_w=612.345,
        power_limit_w=700.0,
        sm_clock_hz=1_830_000_000,
        memory_clock_hz=3_201_000_000,
        temperature_c=92,
        throttle_bits=0x24,
        mig=False,
        processes=(),
        wear=GpuWear(
            at_s=gpu.wear.at_s,
            ecc_corrected=7,
            ecc_uncorrected=0,
            retired_pages=0,
            retirement_pending=False,
            remapped_rows=1,
            remap_pending=False,
            remap_failed=False,
        ),
        links=GpuLinks(
            at_s=gpu.links.at_s,
            pcie_tx_bytes_per_s=4_000_000,
            pcie_rx_bytes_per_s=9_000_000,
            nvlink_tx_bytes=1_024_000_000,
            nvlink_rx_bytes=2_048_000_000,
        ),
    )
    assert gpu.throttles == (Throttle.SW_POWER_CAP, Throttle.SW_THERMAL)
    assert [each.uuid for each in sample.gpus] == [uuid(index) for index in range(GPUS)]
    assert sample.driver == DriverFacts(driver="580.95.05", nvml="13.580.95.05", cuda="13.0")
    assert sample.facts[2] == GpuFacts(
        uuid=uuid(2),
        index=2,
        name="NVIDIA H200",
        pci="00000000:38:00.0",
        serial="1650000000002",
        power_default_w=700.0,
        sm_clock_max_hz=1_980_000_000,
        compute_capability="9.0",
    )
    assert (sample.lost, sample.trouble, sample.xids) == ((), None, ())


def test_a_host_without_gpus_is_no_trouble(nvml: Scenario, sampler: NvmlSampler) -> None:
    """A driver that counts no GPU is a positive answer."""
    nvml.write("gpus 0")
    sample = sampler.sample()
    assert (sample.trouble, sample.gpus, sample.lost) == (None, (), ())


def test_the_unsupported_is_absent_and_asked_once(nvml: Scenario, sampler: NvmlSampler) -> None:
    """A field that a GPU does not know is None, never 0, and its driver is not asked for it again."""
    nvml.write("fault 2 nvmlDeviceGetPowerUsage NOT_SUPPORTED", "fault * nvmlDeviceGetTotalEccErrors NO_PERMISSION")
    for _ in range(5):
        sample = sampler.sample()
    assert whole(sample)
    assert [gpu.power_w for gpu in sample.gpus] == [612.345, 612.345, None, *[612.345] * 5]
    assert {gpu.wear.ecc_corrected for gpu in sample.gpus if gpu.wear} == {None}
    assert sample.gpus[2].temperature_c == 58
    calls = nvml.calls()
    assert calls[2, "nvmlDeviceGetPowerUsage"] == 1
    assert calls[3, "nvmlDeviceGetPowerUsage"] == 5
    assert calls[4, "nvmlDeviceGetTotalEccErrors"] == 2  # corrected and uncorrected


def test_facts_are_asked_once(nvml: Scenario, sampler: NvmlSampler) -> None:
    """Names and limits do not change while the driver is loaded: one look asks for them, the others do not."""
    for _ in range(4):
        sampler.sample()
    calls = nvml.calls()
    assert calls[1, "nvmlDeviceGetName"] == calls[1, "nvmlDeviceGetUUID"] == 1
    assert calls[1, "nvmlDeviceGetTemperature"] == 4


def test_a_passing_error_costs_one_look(nvml: Scenario, sampler: NvmlSampler) -> None:
    """An error that is neither lasting nor fatal leaves one field out, until the call works again."""
    nvml.write("fault 1 nvmlDeviceGetTemperature UNKNOWN")
    sample = sampler.sample()
    assert whole(sample)
    assert (sample.gpus[1].temperature_c, sample.gpus[1].power_w) == (None, 612.345)
    nvml.write()
    assert sampler.sample().gpus[1].temperature_c == 58


def test_what_is_asked_seldom_loses_no_gpu(nvml: Scenario, sampler: NvmlSampler) -> None:
    """Where every call about wear or links fails, the GPU is still sampled: only its own fast figures say that it is lost."""
    nvml.write(
        "fault * nvmlDeviceGetPcieThroughput UNKNOWN",
        "fault * nvmlDeviceGetFieldValues NOT_SUPPORTED",
        "fault 0 nvmlDeviceGetTotalEccErrors UNKNOWN",
    )
    assert whole(sampler.sample())
    sample = sampler.sample()
    assert whole(sample)
    assert sample.gpus[0].links is not None
    assert sample.gpus[0].links.pcie_tx_bytes_per_s is None
    assert sample.gpus[0].wear is not None
    assert (sample.gpus[0].wear.ecc_corrected, sample.gpus[0].wear.remapped_rows) == (None, 0)


def test_an_older_driver_is_asked_by_older_names(nvml: Scenario, sampler: NvmlSampler) -> None:
    """Where the driver lacks a newer call, the older one gives the field."""
    nvml.write(
        "gpu * throttle 0x40",
        "fault * nvmlDeviceGetCurrentClocksEventReasons FUNCTION_NOT_FOUND",
        "fault * nvmlDeviceGetMemoryInfo_v2 FUNCTION_NOT_FOUND",
    )
    gpu = sampler.sample().gpus[0]
    assert gpu.throttles == (Throttle.HW_THERMAL,)
    assert gpu.memory_used_bytes == 120_259_084_288 + 605_028_352  # this call counts what the driver keeps for itself


def test_mig_has_no_utilisation(nvml: Scenario, sampler: NvmlSampler) -> None:
    """A GPU that is cut into instances says so, and tells no utilisation."""
    nvml.write("gpu 6 mig 1")
    sample = sampler.sample()
    assert (sample.gpus[6].mig, sample.gpus[6].busy_ratio) == (True, None)
    assert (sample.gpus[5].mig, sample.gpus[5].busy_ratio) == (False, 0.87)


def test_processes_are_listed(nvml: Scenario, sampler: NvmlSampler) -> None:
    """Processes come with their memory, None where the driver hides it; no list is None, not an empty one."""
    nvml.write(
        "process 0 4242 1073741824",
        "process 0 4243 0xFFFFFFFFFFFFFFFF",
        "fault 1 nvmlDeviceGetComputeRunningProcesses_v3 NOT_SUPPORTED",
    )
    gpus = sampler.sample().gpus
    assert gpus[0].processes == (
        GpuProcess(pid=4242, memory_bytes=1_073_741_824),
        GpuProcess(pid=4243, memory_bytes=None),
    )
    assert gpus[1].processes is None
    assert gpus[2].processes == ()


def test_links_are_asked_after_the_look(nvml: Scenario, sampler: NvmlSampler) -> None:
    """Link counters block: the look is answered before they are asked, of one GPU at a time."""
    nvml.write("delay * nvmlDeviceGetPcieThroughput 200")
    first = sampler.sample()
    assert whole(first)
    assert {gpu.links for gpu in first.gpus} == {None}
    assert sampler.sample().gpus[0].links is not None  # the second look waits for what the first one left behind
    assert nvml.calls()[0, "nvmlDeviceGetPcieThroughput"] == 2
    assert nvml.calls()[1, "nvmlDeviceGetPcieThroughput"] <= 2
    assert nvml.calls()[2, "nvmlDeviceGetPcieThroughput"] == 0


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
