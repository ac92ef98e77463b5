"""What the GPUs say: clocks held down, a hang that looks like work, a link trained down, memory nearly full, faults."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from specctl.control.sample.gpu import SLOWING
from specctl.doctor import decide, windows
from specctl.doctor.evidence import Evidence, GpuLook
from specctl.doctor.types import Beside, Check, CheckSet, Clear, Hit, Unsure, Verdict
from specctl.lint.types import Severity

BUSY = 0.5
HANGING = 0.99
LOW_POWER = 0.5
"""A hung all-reduce spins at 100 % and 140 of 600 W (engine facts §8); decoding a model over eight GPUs draws more than half."""
LOW_CLOCK = 0.8
FULL = 0.98


def _by_gpu(evidence: Evidence) -> Mapping[int, list[GpuLook]]:
    found: dict[int, list[GpuLook]] = defaultdict(list)
    for look in sorted(evidence.gpus, key=lambda one: one.at_s):
        found[look.index].append(look)
    return found


def _none(evidence: Evidence) -> Verdict | None:
    """Return the verdict on a server without GPUs, or on one whose GPUs were not asked."""
    if evidence.gpus:
        return None
    return Beside() if evidence.no_gpus else Unsure(reason="nothing is known of the GPUs", decide=decide.GPUS)


def _named(indices: Sequence[int]) -> str:
    return f"GPU {indices[0]}" if len(indices) == 1 else f"GPUs {', '.join(str(index) for index in indices)}"


def _clocks(evidence: Evidence) -> Verdict:
    """Find clocks held down by heat or supply in two looks running, a power limit under the default, low clocks while busy."""
    absent = _none(evidence)
    if absent is not None:
        return absent
    found: dict[str, list[int]] = defaultdict(list)
    judged = 0
    for index, looks in _by_gpu(evidence).items():
        judged += any(one.throttles is not None or one.sm_clock_hz is not None for one in looks)
        for word in _held(looks):
            found[word].append(index)
    if found:
        words = [f"{_named(indices)}: {word}" for word, indices in found.items()]
        return Hit(message=words[0], evidence=tuple(words[1:]))
    if not judged:
        return Unsure(reason="clocks and what holds them are not told", decide=decide.GPUS)
    return Clear(note=f"{judged} GPUs")


def _held(looks: Sequence[GpuLook]) -> list[str]:
    slowing = {str(reason) for reason in SLOWING}
    last = looks[-1]
    told = [set(one.throttles) & slowing for one in looks if one.throttles is not None]
    # hw_slowdown shows for a moment while a GPU changes its state (nvml.h): two looks running must agree.
    lasting = told[-1] & told[-2] if len(told) > 1 else set()
    words = [f"clocks held down by {reason}" for reason in sorted(lasting)]
    if last.power_limit_w and last.power_default_w and last.power_limit_w < 0.97 * last.power_default_w:
        words.append(f"power limit {last.power_limit_w:.0f} W, {last.power_default_w:.0f} W by default")
    capped = last.throttles is not None and "sw_power_cap" in last.throttles
    busy = last.busy_ratio is not None and last.busy_ratio >= BUSY
    clock, most = last.sm_clock_hz, last.sm_clock_max_hz
    if busy and not capped and not words and clock and most and clock < LOW_CLOCK * most:
        words.append(f"SM clock {clock / 1e6:.0f} of {most / 1e6:.0f} MHz while busy, and not for power")
    return words


def _hang(evidence: Evidence) -> Verdict:
    """Find the signature of a hung collective: all GPUs at 100 %, low watts, requests running and no token."""
    absent = _none(evidence)
    if absent is not None:
        return absent
    told = [
        one for one in evidence.gpus if one.busy_ratio is not None and one.power_w is not None and one.power_limit_w
    ]
    if not told:
        return Unsure(reason="load and power of the GPUs are not told", decide=decide.GPUS)
    spinning = all(
        (one.busy_ratio or 0) >= HANGING and (one.power_w or 0) < LOW_POWER * (one.power_limit_w or 0) for one in told
    )
    if not spinning:
        return Clear(note=f"{len(told)} looks at GPUs")
    moved = (
        windows.counters_move(evidence.observations[0], evidence.observations[-1]) if evidence.observations else None
    )
    words = (
        f"{len({one.index for one in told})} GPUs at 100 % and {max(one.power_w or 0 for one in told):.0f} W at most"
    )
    if moved is None:
        return Unsure(reason=f"{words}; whether tokens come is not known", decide=decide.ANSWERS, partly=True)
    running = [one.look.load.running for one in evidence.observations if one.look is not None]
    if moved > 0 or not any(running):
        return Clear(note=f"{words}, and {moved:.0f} tokens came")
    span = evidence.observations[-1].at_s - evidence.observations[0].at_s
    stuck = f"{words}, {running[-1]} requests running, and no token in {span:.0f} s"
    return Hit(message=stuck, evidence=(f"{len(told)} looks at GPUs",))


def _link(evidence: Evidence) -> Verdict:
    """Find PCIe links with fewer lanes than possible, or slower while they work (an idle GPU lowers its link)."""
    absent = _none(evidence)
    if absent is not None:
        return absent
    found: list[str] = []
    judged = 0
    for index, looks in _by_gpu(evidence).items():
        last = max(looks, key=lambda one: (one.link_generation or 0, one.link_width or 0))
        judged += last.link_width is not None and last.link_width_max is not None
        if last.link_width and last.link_width_max and last.link_width < last.link_width_max:
            found.append(f"GPU {index}: {last.link_width} of {last.link_width_max} lanes")
        busy = any((one.busy_ratio or 0) >= BUSY for one in looks)
        if (
            busy
            and last.link_generation
            and last.link_generation_max
            and last.link_generation < last.link_generation_max
        ):
            found.append(f"GPU {index}: generation {last.link_generation} of {last.link_generation_max} while it works")
    if found:
        return Hit(message=found[0], evidence=tuple(found[1:]))
    return (
        Clear(note=f"{judged} links") if judged else Unsure(reason="links of the GPUs are not told", decide=decide.GPUS)
    )


def _memory(evidence: Evidence) -> Verdict:
    """Find GPUs whose memory is nearly full: the next allocation ends the engine."""
    absent = _none(evidence)
    if absent is not None:
        return absent
    shares = {
        index: (looks[-1].memory_used_bytes or 0) / (looks[-1].memory_total_bytes or 1)
        for index, looks in _by_gpu(evidence).items()
        if looks[-1].memory_used_bytes is not None and looks[-1].memory_total_bytes
    }
    if not shares:
        return Unsure(reason="memory of the GPUs is not told", decide=decide.GPUS)
    fullest = max(shares.values())
    full = [index for index, share in shares.items() if share >= FULL]
    if not full:
        return Clear(note=f"{fullest * 100:.0f} % at most")
    return Hit(message=f"{_named(full)}: {fullest * 100:.1f} % of memory is used")


def _xids(evidence: Evidence) -> Verdict:
    """Find faults that the driver reported."""
    absent = _none(evidence)
    if absent is not None:
        return absent
    found = {index: sorted({xid for one in looks for xid in one.xids}) for index, looks in _by_gpu(evidence).items()}
    words = [f"GPU {index}: XID {', '.join(str(xid) for xid in xids)}" for index, xids in found.items() if xids]
    if words:
        return Hit(message=words[0], evidence=tuple(words[1:]))
    if not evidence.knows_xids:
        return Unsure(reason="nobody watches for the driver's faults", decide=decide.GPUS)
    return Clear()


CHECKS = CheckSet(
    name="gpus",
    title="The GPUs",
    checks=(
        Check(
            id="S005",
            title="clocks are held down",
            meaning="Heat, supply, a lowered power limit or locked clocks make the GPU slower than it was measured to be.",
            looks_at="throttle reasons in two looks running, power limit, SM clock while busy",
            effect="each step is slower; with tensor parallelism the slowest GPU sets the pace of all",
            remedy="Cool it, mend the supply, or give the limit back (nvidia-smi -pl WATTS; nvidia-smi -rgc).",
            severity=Severity.WARNING,
            judge=_clocks,
        ),
        Check(
            id="S006",
            title="GPUs spin without progress",
            meaning="All GPUs at 100 % with low watts and no token: ranks wait for each other in a collective (NCCL).",
            looks_at="load and power of the GPUs beside running requests and tokens",
            effect="no tokens come",
            remedy="Restart (specctl restart --host H); then check NCCL_P2P_LEVEL, IOMMU and ACS (specctl preflight --host H).",
            severity=Severity.ERROR,
            judge=_hang,
        ),
        Check(
            id="S007",
            title="a PCIe link is trained down",
            meaning="Fewer lanes, or a lower generation while the GPU works: all-reduce over PCIe is slower by as much.",
            looks_at="lanes and generation of each GPU's link, present and possible",
            effect="each step of tensor parallelism is slower",
            remedy="Reseat card or riser; look at dmesg for AER messages; set the slot's generation in the firmware.",
            severity=Severity.WARNING,
            judge=_link,
        ),
        Check(
            id="S008",
            title="GPU memory is nearly full",
            meaning="What is left does not hold a larger batch's buffers: the engine dies of its next allocation.",
            looks_at="used and total memory of each GPU",
            effect="none on tokens until it dies",
            remedy="Lower mem-fraction-static a little, or end what else is on the GPU (specctl preflight --host H names it).",
            severity=Severity.WARNING,
            judge=_memory,
        ),
        Check(
            id="S012",
            title="the driver reported a fault",
            meaning="An XID is NVIDIA's numbered fault; some end the process, some say that a part fails.",
            looks_at="XIDs since the agent started",
            effect="depends on the fault",
            remedy="Look the number up in NVIDIA's XID list; 48, 63, 64, 74, 79, 94 and 95 speak of hardware.",
            severity=Severity.WARNING,
            judge=_xids,
        ),
    ),
)
