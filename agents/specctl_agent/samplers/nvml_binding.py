"""The one place that imports nvidia-ml-py: what specctl asks NVML, as rows of integers, and what its errors mean.

Runs in the NVML process alone (nvml_child.py): its import costs 6 MB, and a call of it may never return.
Units are NVML's own; nvml_reply.py turns them into specctl's.
"""

from __future__ import annotations

import sys
from ctypes import addressof

# nvidia-ml-py imports one function from ctypes.util and never calls it; the real module would bring tempfile,
# subprocess and random, 2 MB. An empty one stands there while it is imported, unless somebody needed the real one
# before.
_UNUSED = "ctypes.util"
if _UNUSED in sys.modules:
    import pynvml
else:
    _empty = type(sys)(_UNUSED)
    _empty.find_library = None  # type: ignore[attr-defined]  # the one name that is imported
    sys.modules[_UNUSED] = _empty
    import pynvml

    del sys.modules[_UNUSED]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Handle: TypeAlias = object
    Row: TypeAlias = Sequence[int | None]
    Way: TypeAlias = Callable[[Handle], Row]

NvmlError = pynvml.NVMLError

NAMES: dict[int, str] = {
    value: name.removeprefix("NVML_ERROR_") for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_")
}

# Will not change while this process lives: asked once, then left out.
UNSUPPORTED = frozenset({
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    pynvml.NVML_ERROR_DEPRECATED,
})  # fmt: skip
# All GPUs are out of reach, and only a new process (a new library, a new connection to the driver) can help.
NO_DRIVER = frozenset({
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
})  # fmt: skip
# This GPU is out of reach, its handle included.
LOST = frozenset({
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED,
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_GPU_NOT_FOUND,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
})  # fmt: skip
TIMEOUT: int = pynvml.NVML_ERROR_TIMEOUT


def _utilisation(gpu: Handle) -> Row:
    rates = pynvml.nvmlDeviceGetUtilizationRates(gpu)
    return (rates.gpu, rates.memory)


def _memory(gpu: Handle) -> Row:
    memory = pynvml.nvmlDeviceGetMemoryInfo(gpu, pynvml.nvmlMemory_v2)
    return (memory.used, memory.total)


def _memory_with_reserved(gpu: Handle) -> Row:
    """Before R510 the driver counts what it reserves for itself as used."""
    memory = pynvml.nvmlDeviceGetMemoryInfo(gpu)
    return (memory.used, memory.total)


def _power(gpu: Handle) -> Row:
    return (pynvml.nvmlDeviceGetPowerUsage(gpu),)


def _sm_clock(gpu: Handle) -> Row:
    return (pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM),)


def _memory_clock(gpu: Handle) -> Row:
    return (pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_MEM),)


def _temperature(gpu: Handle) -> Row:
    return (pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU),)


def _event_reasons(gpu: Handle) -> Row:
    return (pynvml.nvmlDeviceGetCurrentClocksEventReasons(gpu),)


def _throttle_reasons(gpu: Handle) -> Row:
    """The same bits under the name that they had before R535."""
    return (pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu),)


def _power_limit(gpu: Handle) -> Row:
    return (pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu),)


def _mig(gpu: Handle) -> Row:
    return (pynvml.nvmlDeviceGetMigMode(gpu)[0],)


def _ecc(kind: int) -> Way:
    return lambda gpu: (pynvml.nvmlDeviceGetTotalEccErrors(gpu, kind, pynvml.NVML_VOLATILE_ECC),)


def _retired(cause: int) -> Way:
    return lambda gpu: (len(pynvml.nvmlDeviceGetRetiredPages(gpu, cause)),)


def _retirement_pending(gpu: Handle) -> Row:
    return (pynvml.nvmlDeviceGetRetiredPagesPendingStatus(gpu),)


def _remapped(gpu: Handle) -> Row:
    corrected, uncorrected, pending, failed = pynvml.nvmlDeviceGetRemappedRows(gpu)
    return (corrected, uncorrected, pending, failed)


def _pcie(counter: int) -> Way:
    return lambda gpu: (pynvml.nvmlDeviceGetPcieThroughput(gpu, counter),)


def _nvlink(gpu: Handle) -> Row:
    ids = (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX)
    every_link = 0xFFFFFFFF
    values = pynvml.nvmlDeviceGetFieldValues(gpu, [(each, every_link) for each in ids])
    return [None if value.nvmlReturn else value.value.ullVal for value in values]


class Question:
    """A call, the ways to ask it (the newest first), and how many columns it fills."""

    __slots__ = ("call", "columns", "ways")

    def __init__(self, call: str, columns: int, *ways: Way) -> None:
        self.call, self.columns, self.ways = call, columns, ways


# In the order of nvml_wire's columns.
FAST = (
    Question("nvmlDeviceGetUtilizationRates", 2, _utilisation),
    Question("nvmlDeviceGetMemoryInfo", 2, _memory, _memory_with_reserved),
    Question("nvmlDeviceGetPowerUsage", 1, _power),
    Question("nvmlDeviceGetClockInfo", 1, _sm_clock),
    Question("nvmlDeviceGetClockInfo", 1, _memory_clock),
    Question("nvmlDeviceGetTemperature", 1, _temperature),
    Question("nvmlDeviceGetCurrentClocksEventReasons", 1, _event_reasons, _throttle_reasons),
)
WEAR = (
    Question("nvmlDeviceGetEnforcedPowerLimit", 1, _power_limit),
    Question("nvmlDeviceGetMigMode", 1, _mig),
    Question("nvmlDeviceGetTotalEccErrors", 1, _ecc(pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED)),
    Question("nvmlDeviceGetTotalEccErrors", 1, _ecc(pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)),
    Question(
        "nvmlDeviceGetRetiredPages", 1, _retired(pynvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS)
    ),
    Question("nvmlDeviceGetRetiredPages", 1, _retired(pynvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)),
    Question("nvmlDeviceGetRetiredPagesPendingStatus", 1, _retirement_pending),
    Question("nvmlDeviceGetRemappedRows", 4, _remapped),
)
LINKS = (
    Question("nvmlDeviceGetPcieThroughput", 1, _pcie(pynvml.NVML_PCIE_UTIL_TX_BYTES)),
    Question("nvmlDeviceGetPcieThroughput", 1, _pcie(pynvml.NVML_PCIE_UTIL_RX_BYTES)),
    Question("nvmlDeviceGetFieldValues", 2, _nvlink),
)


def processes(gpu: Handle) -> list[tuple[int, int | None]]:
    """Return (pid, bytes) of each process that computes on it; raises NvmlError."""
    return [(found.pid, found.usedGpuMemory) for found in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)]


def connect() -> int:
    """Load the library, speak to the driver, and return the number of GPUs; raises NvmlError."""
    pynvml.nvmlInit()
    count: int = pynvml.nvmlDeviceGetCount()
    return count


def driver_facts() -> tuple[str | None, str | None, str | None]:
    """Return the versions of driver, library and CUDA, each None where it is not told."""
    cuda = _told(pynvml.nvmlSystemGetCudaDriverVersion_v2)
    return (
        _text(_told(pynvml.nvmlSystemGetDriverVersion)),
        _text(_told(pynvml.nvmlSystemGetNVMLVersion)),
        f"{cuda // 1000}.{cuda % 1000 // 10}" if isinstance(cuda, int) else None,
    )


def handle_of(index: int) -> tuple[Handle, str]:
    """Return the GPU's handle and UUID; raises NvmlError."""
    gpu: Handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return gpu, str(_text(pynvml.nvmlDeviceGetUUID(gpu)))


def gpu_facts(gpu: Handle) -> tuple[str | int | None, ...]:
    """Return name, PCI address, serial, default power limit in mW, highest SM clock in MHz and compute capability."""
    capability = _told(pynvml.nvmlDeviceGetCudaComputeCapability, gpu)
    pci = _told(pynvml.nvmlDeviceGetPciInfo, gpu)
    power, clock = (
        _told(pynvml.nvmlDeviceGetPowerManagementDefaultLimit, gpu),
        _told(pynvml.nvmlDeviceGetMaxClockInfo, gpu, pynvml.NVML_CLOCK_SM),
    )
    return (
        _text(_told(pynvml.nvmlDeviceGetName, gpu)),
        None if pci is None else _text(pci.busId),  # type: ignore[attr-defined]  # a structure of pynvml's
        _text(_told(pynvml.nvmlDeviceGetSerial, gpu)),
        power if isinstance(power, int) else None,
        clock if isinstance(clock, int) else None,
        ".".join(map(str, capability)) if isinstance(capability, tuple) else None,
    )


class XidEvents:
    """The driver's queue of XIDs of some GPUs, from now on."""

    def __init__(self, gpus: Sequence[tuple[int, Handle]]) -> None:
        self._set = pynvml.nvmlEventSetCreate()
        self._index: dict[int, int] = {}
        for index, gpu in gpus:
            try:
                pynvml.nvmlDeviceRegisterEvents(gpu, pynvml.nvmlEventTypeXidCriticalError, self._set)
            except NvmlError as error:
                if error.value in NO_DRIVER:
                    raise
                continue  # this GPU tells no events: the others' are not lost for it
            self._index[addressof(gpu.contents)] = index  # type: ignore[attr-defined]  # a pointer of ctypes

    def take(self, limit: int) -> list[tuple[int | None, int]]:
        """Return (index, XID) of what has happened since, without waiting, the oldest first; raises NvmlError."""
        found: list[tuple[int | None, int]] = []
        while len(found) < limit:
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, 0)
            except NvmlError as error:
                if error.value == TIMEOUT or found:
                    break  # an error after an event comes again with the next look
                raise
            index = self._index.get(addressof(event.device.contents)) if event.device else None
            found.append((index, event.eventData))
        return found

    def close(self) -> None:
        """Free the queue; one that the driver lost is gone already."""
        try:
            pynvml.nvmlEventSetFree(self._set)
        except NvmlError:
            return


def _told(call: Callable[..., object], *arguments: object) -> object:
    """Return what the call tells, None where it is not told; raises NvmlError where GPU or driver is gone."""
    try:
        return call(*arguments)
    except NvmlError as error:
        if error.value in NO_DRIVER or error.value in LOST:
            raise
        return None


def _text(value: object) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else None if value is None else str(value)
