"""What a host says of its GPUs: the driver, each GPU, who uses them, and how they reach each other; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from specctl.rollout import reading

# How far two GPUs are from each other, nearest first; NODE is two host bridges of one NUMA node, which NCCL counts as PHB.
DISTANCES = ("NV", "PIX", "PXB", "PHB", "NODE", "SYS")
_NVLINK = re.compile(r"NV\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as the driver names it; memory in bytes, power in watts; None: the driver does not say."""

    index: int
    uuid: str | None = None
    model: str | None = None
    memory_bytes: int | None = None
    used_bytes: int | None = None
    persistence: bool | None = None
    mig: bool | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    temperature_c: float | None = None
    bus_id: str | None = None
    fabric_state: str | None = None
    fabric_status: str | None = None

    @classmethod
    def from_wire(cls, row: Mapping[str, object], fabric: Mapping[str, object]) -> Gpu:
        """Build it from the host's rows of the GPU and of its place in the fabric."""
        return cls(
            index=reading.whole(row.get("index")) or 0,
            uuid=reading.text(row.get("uuid")),
            model=reading.text(row.get("model")),
            memory_bytes=reading.whole(row.get("memory_bytes")),
            used_bytes=reading.whole(row.get("used_bytes")),
            persistence=reading.claim(row.get("persistence")),
            mig=reading.claim(row.get("mig")),
            power_limit_w=reading.number(row.get("power_limit_w")),
            power_default_w=reading.number(row.get("power_default_w")),
            temperature_c=reading.number(row.get("temperature_c")),
            bus_id=reading.text(row.get("bus_id")),
            fabric_state=reading.text(fabric.get("state")),
            fabric_status=reading.text(fabric.get("status")),
        )

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "index": self.index,
            "uuid": self.uuid,
            "model": self.model,
            "memory_bytes": self.memory_bytes,
            "used_bytes": self.used_bytes,
            "persistence": self.persistence,
            "mig": self.mig,
            "power_limit_w": self.power_limit_w,
            "power_default_w": self.power_default_w,
            "temperature_c": self.temperature_c,
            "bus_id": self.bus_id,
            "fabric_state": self.fabric_state,
            "fabric_status": self.fabric_status,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process on a GPU, named without its arguments; `gpu` is the GPU's uuid."""

    pid: int
    name: str
    gpu: str | None = None
    used_bytes: int | None = None

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {"pid": self.pid, "name": self.name, "gpu": self.gpu, "used_bytes": self.used_bytes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Between each two of the GPUs, in order of their index: NV#, PIX, PXB, PHB, NODE, SYS, or None (itself, or not told)."""

    gpus: tuple[int, ...]
    links: tuple[tuple[str | None, ...], ...]

    @classmethod
    def from_wire(cls, value: object) -> Topology | None:
        """Build it from the host's answer; None where it makes no square."""
        fields = reading.mapping(value)
        gpus, lines = reading.wholes(fields.get("gpus")), fields.get("links")
        if not gpus or not isinstance(lines, list) or len(lines) != len(gpus):
            return None
        links = tuple(tuple(reading.text(cell) for cell in line) for line in lines if isinstance(line, list))
        if [len(line) for line in links] != [len(gpus)] * len(gpus):
            return None
        return cls(gpus=gpus, links=links)

    def pairs(self, among: Iterable[int]) -> tuple[tuple[int, int, str], ...]:
        """Return the known links between some GPUs, each pair once: (index, index, link)."""
        named = set(among)
        wanted = [place for place, index in enumerate(self.gpus) if index in named]
        return tuple(
            (self.gpus[one], self.gpus[other], link)
            for one in wanted
            for other in wanted
            if one < other and (link := self.links[one][other]) is not None
        )

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {"gpus": list(self.gpus), "links": [list(line) for line in self.links]}


def distance(link: str) -> int | None:
    """Return how far a link reaches, as a place in DISTANCES; None for what is no link."""
    name = "NV" if _NVLINK.fullmatch(link) else link
    return DISTANCES.index(name) if name in DISTANCES else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphics:
    """All that a host says of its GPUs. `gpus` None: not known; `problem` is what the driver's tool said in place of an answer.

    `iommu_kinds` counts the GPUs by how the IOMMU treats them (identity: their addresses are not translated).
    """

    gpus: tuple[Gpu, ...] | None = None
    problem: str | None = None
    driver: str | None = None
    cuda: str | None = None
    processes: tuple[GpuProcess, ...] | None = None
    topology: Topology | None = None
    nvswitches: int | None = None
    fabric_manager: str | None = None
    iommu_units: int | None = None
    iommu_kinds: Mapping[str, int] = field(default_factory=dict)
    kernel_words: tuple[str, ...] = ()
    acs_bridges: int | None = None
    acs_redirecting: int | None = None

    @classmethod
    def from_wire(cls, answer: Mapping[str, object]) -> Graphics:
        """Build it from what the session answered."""
        gpus, processes = answer.get("gpus"), answer.get("gpu_processes")
        fabric = {reading.whole(row.get("index")): row for row in reading.rows(answer.get("fabric"))}
        iommu, acs = reading.mapping(answer.get("iommu")), reading.mapping(answer.get("acs"))
        kinds = reading.mapping(iommu.get("kinds"))
        return cls(
            gpus=_gpus(gpus, fabric) if isinstance(gpus, list) else None,
            problem=reading.text(answer.get("gpu_problem")),
            driver=reading.text(answer.get("driver_version")),
            cuda=reading.text(answer.get("cuda_version")),
            processes=_processes(processes) if isinstance(processes, list) else None,
            topology=Topology.from_wire(answer.get("topology")),
            nvswitches=reading.whole(answer.get("nvswitches")),
            fabric_manager=_manager(reading.mapping(answer.get("fabric_manager"))),
            iommu_units=reading.whole(iommu.get("units")),
            iommu_kinds={str(kind): count for kind, value in kinds.items() if (count := reading.whole(value))},
            kernel_words=reading.texts(iommu.get("cmdline")),
            acs_bridges=reading.whole(acs.get("bridges")),
            acs_redirecting=reading.whole(acs.get("redirecting")),
        )

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "gpus": None if self.gpus is None else [gpu.as_wire() for gpu in self.gpus],
            "problem": self.problem,
            "driver": self.driver,
            "cuda": self.cuda,
            "processes": None if self.processes is None else [process.as_wire() for process in self.processes],
            "topology": self.topology.as_wire() if self.topology else None,
            "nvswitches": self.nvswitches,
            "fabric_manager": self.fabric_manager,
            "iommu_units": self.iommu_units,
            "iommu_kinds": dict(self.iommu_kinds),
            "kernel_words": list(self.kernel_words),
            "acs_bridges": self.acs_bridges,
            "acs_redirecting": self.acs_redirecting,
        }


def _gpus(value: object, fabric: Mapping[int | None, Mapping[str, object]]) -> tuple[Gpu, ...]:
    rows = reading.rows(value)
    return tuple(Gpu.from_wire(row, fabric.get(reading.whole(row.get("index")), {})) for row in rows)


def _processes(value: object) -> tuple[GpuProcess, ...]:
    found = []
    for row in reading.rows(value):
        pid = reading.whole(row.get("pid"))
        if pid is not None:
            name = reading.text(row.get("name")) or "?"
            used = reading.whole(row.get("used_bytes"))
            found.append(GpuProcess(pid=pid, name=name, gpu=reading.text(row.get("gpu")), used_bytes=used))
    return tuple(found)


def _manager(fields: Mapping[str, object]) -> str | None:
    """Return the fabric manager's state in a word: what systemd calls active, or not-found where there is no such unit."""
    if reading.text(fields.get("loaded")) == "not-found":
        return "not-found"
    return reading.text(fields.get("active"))
