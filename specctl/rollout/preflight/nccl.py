"""Checks of how the GPUs reach each other: fabric, NCCL's environment against the topology, IOMMU and ACS."""

from __future__ import annotations

from collections.abc import Mapping

from specctl.rollout.gpu_facts import DISTANCES, distance
from specctl.rollout.preflight.subject import Subject
from specctl.rollout.preflight.types import Check, Level, Verdict, failed, passed, unknown, warned

LEVEL = "NCCL_P2P_LEVEL"
DISABLE = "NCCL_P2P_DISABLE"
ALGORITHM = "NCCL_ALGO"
# NCCL's names, and the old numbers that it still reads; what is larger than the last counts as SYS.
NUMBERS = ("LOC", "PIX", "PXB", "PHB", "SYS")
# How far P2P is used with each level, as a place in DISTANCES; -1: never.
REACH: Mapping[str, int] = {
    "LOC": -1,
    "NVL": DISTANCES.index("NV"),
    "PIX": DISTANCES.index("PIX"),
    "PXB": DISTANCES.index("PXB"),
    "PXN": DISTANCES.index("PXB"),
    "PHB": DISTANCES.index("NODE"),
    "SYS": DISTANCES.index("SYS"),
}
TRANSLATING = frozenset(("DMA", "DMA-FQ"))


def level_name(value: str) -> str | None:
    """Return NCCL's name of a level, of an old number too; None for what it would not understand."""
    text = value.strip().upper()
    if text.isdecimal() and len(text) < 6:
        return NUMBERS[min(int(text), len(NUMBERS) - 1)]
    return text if text in REACH else None


def _spoken(value: str) -> str:
    """Return a level as it is set, an old number explained."""
    name = level_name(value)
    return f"{LEVEL}={value} (the old number of {name})" if value.strip().isdecimal() and name else f"{LEVEL}={value}"


def _farthest(subject: Subject) -> tuple[int, int, str] | None:
    known = [pair for pair in subject.links() if distance(pair[2]) is not None]
    return max(known, key=lambda pair: distance(pair[2]) or 0) if known else None


def _disabled(subject: Subject) -> bool:
    return subject.env.get(DISABLE, "0").strip() == "1" or level_name(subject.env.get(LEVEL, "")) == "LOC"


def _switched(subject: Subject) -> bool:
    """Claim that the GPUs are joined by NVSwitches."""
    return bool(subject.graphics.nvswitches) or any(gpu.fabric_state for gpu in subject.gpus or ())


def _over_pcie(subject: Subject) -> bool:
    """Claim that some of the GPUs reach each other over PCIe."""
    return any((distance(link) or 0) > DISTANCES.index("NV") for _, _, link in subject.links())


def fabric(subject: Subject) -> Verdict | None:
    """Look whether GPUs behind NVSwitches are registered with their fabric; without it CUDA does not even start."""
    if not _switched(subject):
        return None
    gpus = [gpu for gpu in subject.gpus or () if gpu.fabric_state]
    service = subject.graphics.fabric_manager
    said = f"nvidia-fabricmanager is {service or 'of unknown state'}"
    undone = [gpu for gpu in gpus if (gpu.fabric_state or "").casefold() != "completed"]
    ill = [gpu for gpu in gpus if gpu.fabric_status is not None and gpu.fabric_status.casefold() != "success"]
    if undone and (undone[0].fabric_state or "").casefold() == "in progress":
        return warned(f"GPU {undone[0].index} is still being registered with the fabric; {said}")
    if undone:
        return failed(f"GPU {undone[0].index} is not registered with the fabric ({undone[0].fabric_state}); {said}")
    if ill:
        return failed(f"GPU {ill[0].index} was refused by the fabric ({ill[0].fabric_status}); {said}")
    if service in ("failed", "inactive"):
        return (warned if gpus else failed)(f"the GPUs are joined by NVSwitches, and {said}")
    if gpus or service == "active":
        return passed(f"the fabric is up; {said}")
    return unknown(f"whether the NVSwitch fabric is up is not known; {said}")


def p2p_level(subject: Subject) -> Verdict | None:
    """Compare NCCL_P2P_LEVEL with how far the GPUs are apart."""
    value = subject.env.get(LEVEL)
    if subject.tp < 2 or value is None or _disabled(subject):
        return None
    name, far = level_name(value), _farthest(subject)
    if name is None:
        return warned(f"NCCL does not understand {LEVEL}={value}", "one of LOC, NVL, PIX, PXB, PHB, SYS")
    if far is None:
        return unknown(f"{_spoken(value)}; how far the GPUs are apart is not known")
    one, other, link = far
    if REACH[name] < (distance(link) or 0):
        return warned(
            f"{_spoken(value)} is narrower than the distance of GPU {one} and GPU {other} ({link}): "
            "their traffic takes the way through host memory"
        )
    return passed(f"{_spoken(value)} reaches all GPUs (the farthest are {link} apart)")


def p2p_disabled(subject: Subject) -> Verdict | None:
    """Look whether P2P is off although the topology allows it."""
    if subject.tp < 2 or not _disabled(subject):
        return None
    how = f"{DISABLE}=1" if subject.env.get(DISABLE, "").strip() == "1" else _spoken(subject.env.get(LEVEL, ""))
    links = [link for _, _, link in subject.links()]
    near = [link for link in links if (distance(link) or 0) < DISTANCES.index("SYS")]
    if not links:
        return unknown(f"{how}; how far the GPUs are apart is not known")
    if near:
        return warned(
            f"{how}, and the topology allows P2P ({near[0]} between some GPUs): all traffic goes through host memory"
        )
    return passed(f"{how}; all GPUs are SYS apart, where that can be right")


def algorithm(subject: Subject) -> Verdict | None:
    """Look whether NCCL_ALGO forbids what NVSwitches are good at."""
    value = subject.env.get(ALGORITHM)
    if subject.tp < 2 or value is None or not _switched(subject):
        return None
    names = {part.strip().casefold() for part in value.split(",")}
    if names == {"ring"}:
        return warned(
            f"{ALGORITHM}={value} on GPUs joined by NVSwitches: Tree and NVLS are faster for the small messages of decoding"
        )
    return passed(f"{ALGORITHM}={value}")


def iommu(subject: Subject) -> Verdict | None:
    """Look whether the IOMMU translates the addresses of GPUs that reach each other over PCIe."""
    if subject.tp < 2 or not _over_pcie(subject) or _disabled(subject):
        return None
    kinds, units = subject.graphics.iommu_kinds, subject.graphics.iommu_units
    words = " ".join(subject.graphics.kernel_words)
    spoken = f" (kernel: {words})" if words else ""
    translated = sum(count for kind, count in kinds.items() if kind in TRANSLATING)
    if translated:
        return warned(f"the IOMMU translates for {translated} GPUs, and P2P over PCIe is on{spoken}")
    if kinds or units == 0:
        return passed(("the IOMMU lets the GPUs through" if kinds else "no IOMMU is on") + spoken)
    return unknown(f"what the IOMMU does for the GPUs is not known{spoken}")


def acs(subject: Subject) -> Verdict | None:
    """Look whether PCIe bridges send P2P traffic up to the root."""
    if subject.tp < 2 or not _over_pcie(subject) or _disabled(subject):
        return None
    redirecting, bridges = subject.graphics.acs_redirecting, subject.graphics.acs_bridges
    if redirecting is None or bridges is None:
        return unknown("the bridges' ACS can be read by root alone")
    if redirecting:
        return warned(f"{redirecting} of {bridges} PCIe bridges with ACS redirect P2P traffic")
    return passed(f"{bridges} bridges have ACS")


CHECKS = (
    Check(
        id="P040",
        title="the NVSwitch fabric is up",
        worst=Level.FAIL,
        remedy="specctl exec --host {host} -- systemctl restart nvidia-fabricmanager, of the driver's own version",
        why="On a board with NVSwitches CUDA does not start before the fabric manager has joined the GPUs.",
        look=fabric,
    ),
    Check(
        id="P041",
        title="NCCL_P2P_LEVEL reaches all GPUs",
        worst=Level.WARN,
        remedy="leave NCCL_P2P_LEVEL out, or set it to SYS (a name, not a number); waive P041 where it was measured",
        why="Names: LOC, NVL, PIX, PXB, PHB, SYS. Old numbers: 0 LOC, 1 PIX, 2 PXB, 3 PHB, 4 and more SYS; NVIDIA discourages "
        "them, since their meaning has changed.",
        look=p2p_level,
        measures=frozenset(("W051", "W052")),
    ),
    Check(
        id="P042",
        title="P2P is on where the topology allows it",
        worst=Level.WARN,
        remedy="take NCCL_P2P_DISABLE out of env:, or waive P042 where a hang or a measurement is the reason",
        why="Some boards hang with P2P until IOMMU and ACS are off, and some prefill faster without; then say so in a waiver.",
        look=p2p_disabled,
        measures=frozenset(("W054",)),
    ),
    Check(
        id="P043",
        title="NCCL_ALGO leaves NVSwitches their algorithms",
        worst=Level.WARN,
        remedy="take NCCL_ALGO out of env: on hosts with NVSwitches (it belongs to a PCIe host's hardware layer)",
        why="Ring alone costs latency in every verify step.",
        look=algorithm,
        measures=frozenset(("W053",)),
    ),
    Check(
        id="P044",
        title="the IOMMU does not stand between the GPUs",
        worst=Level.WARN,
        remedy="boot with iommu=pt (or iommu=off), or set NCCL_P2P_DISABLE=1",
        why="With a translating IOMMU, P2P over PCIe hangs or is slow on many boards.",
        look=iommu,
    ),
    Check(
        id="P045",
        title="no PCIe bridge redirects P2P traffic",
        worst=Level.WARN,
        remedy="switch ACS off in the firmware, or for the bridges with setpci",
        why="ACS sends traffic between two GPUs of one switch up to the root and down again.",
        look=acs,
    ),
)
