"""What NVML says of a host's GPUs, as values, and what counts as slowed; pure.

A field that the GPU, the driver or our rights do not give is None, never 0. Units are in the names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Throttle(StrEnum):
    """Why a GPU's clocks are below what it could reach; nvml.h, `nvmlClocksEventReasons`, one bit each."""

    IDLE = "idle"
    APP_CLOCKS = "app_clocks"
    SW_POWER_CAP = "sw_power_cap"
    HW_SLOWDOWN = "hw_slowdown"
    SYNC_BOOST = "sync_boost"
    SW_THERMAL = "sw_thermal"
    HW_THERMAL = "hw_thermal"
    HW_POWER_BRAKE = "hw_power_brake"
    DISPLAY_CLOCKS = "display_clocks"


# In nvml.h's order: the first is bit 0.
_BITS = tuple(Throttle)

# A fault of cooling or supply: the GPU is slower than its own measurements say. The others are how a healthy GPU
# lives: idle, clocks that somebody set (for one GPU, a group or a display), and the power cap, which a full GPU sits
# at all day.
SLOWING = frozenset({Throttle.HW_SLOWDOWN, Throttle.SW_THERMAL, Throttle.HW_THERMAL, Throttle.HW_POWER_BRAKE})


def throttles_of(bits: int) -> tuple[Throttle, ...]:
    """Return the reasons that a driver's bits name, in nvml.h's order; bits that we do not know name none."""
    return tuple(reason for bit, reason in enumerate(_BITS) if bits >> bit & 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """What stays the same of a GPU while its driver is loaded; asked once."""

    uuid: str
    index: int
    name: str | None = None
    pci: str | None = None
    serial: str | None = None
    power_default_w: float | None = None
    sm_clock_max_hz: int | None = None
    compute_capability: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFacts:
    """Versions of what speaks for the GPUs."""

    driver: str | None = None
    nvml: str | None = None
    cuda: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that computes on a GPU; the memory is None where the driver hides it."""

    pid: int
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuWear:
    """Memory errors and what was set aside for them, asked seldom.

    ECC counts are since the driver was loaded. Pages retire before Ampere, rows are remapped since: one of the two
    is None.
    """

    at_s: float
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    retired_pages: int | None = None
    retirement_pending: bool | None = None
    remapped_rows: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLinks:
    """Traffic of a GPU's links, asked of one GPU at a time: NVML measures each PCIe direction while the caller waits.

    PCIe is a rate over those 20 ms; NVLink counts bytes since the driver was loaded.
    """

    at_s: float
    pcie_tx_bytes_per_s: int | None = None
    pcie_rx_bytes_per_s: int | None = None
    nvlink_tx_bytes: int | None = None
    nvlink_rx_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample:
    """One GPU at one moment.

    `busy_ratio` is the share of the last period in which any kernel ran: it says that a GPU works, not how hard. It
    is None under MIG.
    `processes` is None where they cannot be listed, and empty where there are none.
    """

    uuid: str
    index: int
    busy_ratio: float | None = None
    memory_busy_ratio: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_hz: int | None = None
    memory_clock_hz: int | None = None
    temperature_c: int | None = None
    throttle_bits: int | None = None
    mig: bool | None = None
    processes: tuple[GpuProcess, ...] | None = None
    wear: GpuWear | None = None
    links: GpuLinks | None = None

    @property
    def throttles(self) -> tuple[Throttle, ...] | None:
        """Every reason that the driver gives, in nvml.h's order; bits that we do not know stay in `throttle_bits`."""
        return None if self.throttle_bits is None else throttles_of(self.throttle_bits)

    @property
    def slowing(self) -> tuple[Throttle, ...] | None:
        """The reasons that make it slower than it was measured to be: heat, or a fault of supply.

        `hw_slowdown` may show for one moment while the GPU changes its performance state (nvml.h): ask for it twice
        in a row.
        """
        reasons = self.throttles
        return None if reasons is None else tuple(reason for reason in reasons if reason in SLOWING)

    @property
    def power_capped(self) -> bool | None:
        """Whether it runs at its power limit, as a full GPU does."""
        reasons = self.throttles
        return None if reasons is None else Throttle.SW_POWER_CAP in reasons


class Problem(StrEnum):
    """Why there is no whole sample: of all GPUs (`NvmlSample.problem`) or of one (`LostGpu.problem`)."""

    STARTING = "starting"
    LIBRARY_MISSING = "library_missing"
    DRIVER_NOT_LOADED = "driver_not_loaded"
    VERSION_MISMATCH = "version_mismatch"
    NO_PERMISSION = "no_permission"
    GPU_LOST = "gpu_lost"
    NO_ANSWER = "no_answer"
    HUNG = "hung"
    CHILD_DIED = "child_died"
    TOO_MANY_STUCK = "too_many_stuck"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A problem, in words too, since when (monotonic), and when the agent tries again by itself (None: each look)."""

    problem: Problem
    detail: str
    since_s: float
    retry_at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LostGpu:
    """A GPU that gives no sample while others may; `uuid` is None where it never told."""

    index: int
    uuid: str | None
    trouble: Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class XidEvent:
    """One XID, NVIDIA's numbered fault, as the driver reported it.

    `serial` grows by one an event and never repeats while the agent lives: keep the last one seen, and each event
    counts once.
    """

    serial: int
    at_s: float
    uuid: str | None
    xid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class XidCount:
    """How often a GPU reported an XID since the agent started."""

    uuid: str | None
    xid: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlHealth:
    """What watching NVML cost since the agent started.

    `hangs` were calls that outlived their limit, `hung_s` the time spent on them, `stuck` the killed processes that
    the kernel still holds (they end when the driver lets go of them, or with the next boot).
    """

    starts: int = 0
    deaths: int = 0
    hangs: int = 0
    hung_s: float = 0.0
    stuck: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlSample:
    """All GPUs at one moment (`at_s`, monotonic seconds).

    With a `trouble` there is no GPU in it: what was known before is not repeated. `xids` are the newest events,
    oldest first, also of earlier samples, so that no reader misses one.
    """

    at_s: float
    gpus: tuple[GpuSample, ...] = ()
    lost: tuple[LostGpu, ...] = ()
    trouble: Trouble | None = None
    driver: DriverFacts | None = None
    facts: tuple[GpuFacts, ...] = ()
    xids: tuple[XidEvent, ...] = ()
    xid_counts: tuple[XidCount, ...] = ()
    health: NvmlHealth = NvmlHealth()

    def xids_after(self, serial: int) -> tuple[XidEvent, ...]:
        """Return the events that a reader who has seen those up to `serial` has not; begin with 0."""
        return tuple(event for event in self.xids if event.serial > serial)


@dataclass(frozen=True, slots=True, kw_only=True)
class XidLog:
    """The newest XIDs and the count of all, bounded: a storm pushes old events out, but not out of the counts."""

    KEPT = 64

    events: tuple[XidEvent, ...] = ()
    counts: tuple[XidCount, ...] = ()

    def add(self, at_s: float, seen: Iterable[tuple[str | None, int]]) -> XidLog:
        """Return the log with these (UUID, XID), in their order."""
        events, counts = list(self.events), {(count.uuid, count.xid): count.count for count in self.counts}
        for uuid, xid in seen:
            serial = events[-1].serial + 1 if events else 1
            events.append(XidEvent(serial=serial, at_s=at_s, uuid=uuid, xid=xid))
            counts[uuid, xid] = counts.get((uuid, xid), 0) + 1
        return XidLog(
            events=tuple(events[-self.KEPT :]),
            counts=tuple(XidCount(uuid=uuid, xid=xid, count=count) for (uuid, xid), count in counts.items()),
        )
