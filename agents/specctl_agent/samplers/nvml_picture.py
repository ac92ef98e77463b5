"""What the NVML process has told so far, in specctl's units; each message changes the picture."""

from __future__ import annotations

from specctl.control.sample.gpu import (
    DriverFacts,
    GpuFacts,
    GpuLinks,
    GpuProcess,
    GpuSample,
    GpuWear,
    LostGpu,
    Problem,
    Trouble,
    XidLog,
)
from specctl_agent.samplers import nvml_wire as wire

_PROBLEMS = {
    "LIBRARY_NOT_FOUND": Problem.LIBRARY_MISSING,
    "DRIVER_NOT_LOADED": Problem.DRIVER_NOT_LOADED,
    "UNINITIALIZED": Problem.DRIVER_NOT_LOADED,
    "LIB_RM_VERSION_MISMATCH": Problem.VERSION_MISMATCH,
    "NO_PERMISSION": Problem.NO_PERMISSION,
    "GPU_IS_LOST": Problem.GPU_LOST,
    "RESET_REQUIRED": Problem.GPU_LOST,
    "NOT_FOUND": Problem.GPU_LOST,
    "GPU_NOT_FOUND": Problem.GPU_LOST,
    "INVALID_ARGUMENT": Problem.GPU_LOST,
}


class MessageError(Exception):
    """The NVML process said what its side of the protocol does not know."""


def problem_of(error: str) -> Problem:
    """Return what an error of NVML's, by its name, means for all GPUs or for one."""
    return _PROBLEMS.get(error, Problem.NO_ANSWER)


class Picture:
    """The latest of everything; what one process told is forgotten with it, but for facts and XIDs."""

    def __init__(self) -> None:
        self.driver: DriverFacts | None = None
        self.xids = XidLog()
        self.gpus: tuple[GpuSample, ...] = ()
        self._facts: dict[int, GpuFacts] = {}
        self._limits_w: dict[int, float | None] = {}
        self._mig: dict[int, bool | None] = {}
        self._wear: dict[int, GpuWear] = {}
        self._links: dict[int, GpuLinks] = {}
        self._processes: dict[int, tuple[GpuProcess, ...] | None] = {}
        self._lost: dict[int, Trouble] = {}

    @property
    def facts(self) -> tuple[GpuFacts, ...]:
        """The facts of each GPU that ever answered, by index."""
        return tuple(self._facts[index] for index in sorted(self._facts))

    @property
    def lost(self) -> tuple[LostGpu, ...]:
        """The GPUs that the process asks in vain."""
        return tuple(self.named(index, trouble) for index, trouble in sorted(self._lost.items()))

    def named(self, index: int, trouble: Trouble) -> LostGpu:
        """Return a GPU in trouble, by its UUID where it ever told it."""
        known = self._facts.get(index)
        return LostGpu(index=index, uuid=None if known is None else known.uuid, trouble=trouble)

    def forget(self) -> None:
        """Forget what may have changed by the time the next process tells it."""
        self.gpus = ()
        for known in (self._limits_w, self._mig, self._wear, self._links, self._processes, self._lost):
            known.clear()

    def fold(self, message: wire.Message, now_s: float) -> bool:
        """Take in one message; returns whether it ends the answer to a request. Raises MessageError."""
        match message:
            case (wire.SAMPLE, [*fast], [*wear], [*processes], [*lost]):
                self._fold_lost(dict(lost), now_s)
                for index, row in wear:
                    self._fold_wear(index, row, now_s)
                for index, found in processes:
                    self._processes[index] = _processes(found)
                self.gpus = tuple([self._gpu(index, row) for index, row in fast])
                return True
            case (wire.LINKED, int(index), [pcie_tx, pcie_rx, nvlink_tx, nvlink_rx]):
                self._links[index] = GpuLinks(
                    at_s=now_s,
                    pcie_tx_bytes_per_s=_times(pcie_tx, 1000),
                    pcie_rx_bytes_per_s=_times(pcie_rx, 1000),
                    nvlink_tx_bytes=_times(nvlink_tx, 1024),
                    nvlink_rx_bytes=_times(nvlink_rx, 1024),
                )
            case (wire.XIDS, [*events]):
                self.xids = self.xids.add(now_s, [(self._uuid(index), xid) for index, xid in events])
            case (wire.HELLO, (driver, nvml, cuda), [*facts]):
                self.driver = DriverFacts(driver=driver, nvml=nvml, cuda=cuda)
                self._facts.update({fact[0]: _facts(*fact) for fact in facts})
            case _:
                raise MessageError(f"the NVML process said {message!r:.200}")
        return False

    def _uuid(self, index: int | None) -> str | None:
        known = None if index is None else self._facts.get(index)
        return None if known is None else known.uuid

    def _fold_lost(self, lost: dict[int, str], now_s: float) -> None:
        troubles = {}
        for index, error in lost.items():
            before = self._lost.get(index)
            since_s = now_s if before is None else before.since_s
            troubles[index] = Trouble(problem=problem_of(error), detail=error, since_s=since_s)
        self._lost = troubles

    def _fold_wear(self, index: int, row: list[int | None], now_s: float) -> None:
        (
            limit,
            mig,
            corrected,
            uncorrected,
            single,
            double,
            retiring,
            remapped,
            remapped_uncorrected,
            pending,
            failed,
        ) = row
        self._limits_w[index] = _watts(limit)
        self._mig[index] = _flag(mig)
        self._wear[index] = GpuWear(
            at_s=now_s,
            ecc_corrected=corrected,
            ecc_uncorrected=uncorrected,
            retired_pages=_sum(single, double),
            retirement_pending=_flag(retiring),
            remapped_rows=_sum(remapped, remapped_uncorrected),
            remap_pending=_flag(pending),
            remap_failed=_flag(failed),
        )

    def _gpu(self, index: int, row: list[int | None]) -> GpuSample:
        busy, memory_busy, used, total, power, sm_clock, memory_clock, temperature, throttle = row
        return GpuSample(
            uuid=self._facts[index].uuid,
            index=index,
            busy_ratio=None if busy is None else busy / 100,
            memory_busy_ratio=None if memory_busy is None else memory_busy / 100,
            memory_used_bytes=used,
            memory_total_bytes=total,
            power_w=_watts(power),
            power_limit_w=self._limits_w.get(index),
            sm_clock_hz=_times(sm_clock, 1_000_000),
            memory_clock_hz=_times(memory_clock, 1_000_000),
            temperature_c=temperature,
            throttle_bits=throttle,
            mig=self._mig.get(index),
            processes=self._processes.get(index),
            wear=self._wear.get(index),
            links=self._links.get(index),
        )


def _facts(
    index: int,
    uuid: str,
    name: str | None,
    pci: str | None,
    serial: str | None,
    power_mw: int | None,
    clock_mhz: int | None,
    capability: str | None,
) -> GpuFacts:
    return GpuFacts(
        uuid=uuid,
        index=index,
        name=name,
        pci=pci,
        serial=serial,
        power_default_w=_watts(power_mw),
        sm_clock_max_hz=_times(clock_mhz, 1_000_000),
        compute_capability=capability,
    )


def _processes(found: list[tuple[int, int | None]] | None) -> tuple[GpuProcess, ...] | None:
    return None if found is None else tuple(GpuProcess(pid=pid, memory_bytes=memory) for pid, memory in found)


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _times(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _sum(*values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
