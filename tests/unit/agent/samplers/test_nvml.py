"""The NVML sampler against the real binding and a compiled stand-in of the driver's library: what it tells of GPUs that answer."""

from __future__ import annotations

from specctl.control.sample.gpu import (
    DriverFacts,
    GpuFacts,
    GpuLinks,
    GpuProcess,
    GpuSample,
    GpuWear,
    Throttle,
)
from specctl_agent.samplers.nvml import NvmlSampler
from tests.nvml.standin import GPUS, Scenario, uuid
from tests.unit.agent.samplers.looks import until, whole


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
