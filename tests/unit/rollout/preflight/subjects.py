"""Launches on hosts to check: the field's eight PCIe GPUs, and eight behind NVSwitches: whole until a test breaks one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from specctl.fleet.types import Hardware
from specctl.rollout.facts import CurrentRelease, HostFacts, ServerFacts
from specctl.rollout.gpu_facts import Gpu, Graphics, Topology
from specctl.rollout.launch import Launch
from specctl.rollout.machine_facts import Disk, Machine
from specctl.rollout.model_facts import ModelConfig, ModelFacts
from specctl.rollout.observation import Port, UnitState
from specctl.rollout.preflight import catalogue
from specctl.rollout.preflight.subject import Capability, Subject
from specctl.rollout.preflight.types import Finding, Level, Report
from tests import fakes

GIB = 1 << 30
TARGET, DRAFT = "/models/big", "/models/small"
PYTHON = "/opt/venv/bin/python"
PROFILE = replace(fakes.PROFILE, version="0.5.23", packages=("sglang", "torch"), capability={"dflash": "DFLASH"})
SERVER = replace(fakes.SERVER, profile=PROFILE, tp=8, env={}, knobs={"dflash": {"block_size": 8}})
HARDWARE = Hardware(name="pro", gpu_model="RTX PRO 6000", gpu_count=8, gpu_memory_bytes=96 * GIB)
HOST = replace(fakes.HOST, hardware=HARDWARE, servers=(SERVER,))
STATE = "/var/lib/specctl/chat"


def gpu(index: int, **more: object) -> Gpu:
    """Return a GPU of the field."""
    whole = Gpu(
        index=index,
        uuid=f"GPU-{index}",
        model="NVIDIA RTX PRO 6000 Blackwell Server Edition",
        memory_bytes=96 * GIB,
        used_bytes=0,
        persistence=True,
        mig=False,
        power_limit_w=600.0,
        power_default_w=600.0,
        temperature_c=30.0,
    )
    return replace(whole, **more)  # type: ignore[arg-type]  # fields of a GPU


def square(link: Mapping[bool, str], far: str, count: int = 8) -> Topology:
    """Return a topology: pairs of one switch by link[True], of one socket by link[False], of two sockets far."""

    def between(one: int, other: int) -> str | None:
        if one == other:
            return None
        return link[one // 2 == other // 2] if one // 4 == other // 4 else far

    rows = tuple(tuple(between(one, other) for other in range(count)) for one in range(count))
    return Topology(gpus=tuple(range(count)), links=rows)


PCIE = square({True: "PIX", False: "NODE"}, "SYS")
NVLINK = square({True: "NV18", False: "NV18"}, "NV18")
GRAPHICS = Graphics(
    gpus=tuple(gpu(index) for index in range(8)),
    driver="580.95.05",
    cuda="13.0",
    processes=(),
    topology=PCIE,
    nvswitches=0,
    iommu_units=0,
    acs_bridges=4,
    acs_redirecting=0,
)
SWITCHED = replace(
    GRAPHICS,
    gpus=tuple(gpu(index, fabric_state="Completed", fabric_status="Success") for index in range(8)),
    topology=NVLINK,
    nvswitches=4,
    fabric_manager="active",
)
MACHINE = Machine(
    cpu_count=64,
    memory_bytes=1024 * GIB,
    memory_free_bytes=900 * GIB,
    memlock_bytes=8 << 20,
    nofile=1048576,
    systemd="252",
    systemd_runs=True,
    clock_ahead_s=0.4,
    clock_synchronised=True,
    disks=(
        Disk(path=STATE, free_bytes=50 * GIB, writable=True),
        Disk(path="/etc/systemd/system", free_bytes=50 * GIB, writable=True),
        Disk(path=TARGET, free_bytes=GIB, filesystem="xfs", writable=True),
    ),
)
CONFIG = ModelConfig(hidden_size=7168, vocab_size=163840, layers=61)
DRAFT_CONFIG = ModelConfig(
    hidden_size=7168,
    vocab_size=163840,
    layers=5,
    target_layers=61,
    block_size=16,
    target_layer_ids=(1, 60),
    mask_token=9,
)
FACTS = ServerFacts(
    name="chat",
    current=CurrentRelease(id="1", algo="none"),
    unit=UnitState(active="active"),
    loaded="loaded",
    port=Port.OWN,
    packages={"sglang": "0.5.23"},
    python_path=PYTHON,
    python_runs=True,
    own_pids=(4000, 4001),
    target=ModelFacts(path=TARGET, there=True, size_bytes=550 * GIB, files=64, config=CONFIG),
    draft=ModelFacts(path=DRAFT, there=True, size_bytes=8 * GIB, files=1, config=DRAFT_CONFIG),
)
ARGV = (
    *(PYTHON, "-m", "engine", "--model-path", TARGET, "--tp-size", "8", "--mem-fraction-static", "0.85"),
    *("--speculative-draft-model-path", DRAFT),
)
KNOWN = Capability(name="DFLASH", knows=True, version="0.5.23")


def subject(
    *,
    facts: Mapping[str, object] | None = None,
    machine: Mapping[str, object] | None = None,
    graphics: Mapping[str, object] | None = None,
    of: Graphics = GRAPHICS,
    env: Mapping[str, str] | None = None,
    argv: tuple[str, ...] = ARGV,
    **more: object,
) -> Subject:
    """Return the field's launch, these facts changed; `more` are fields of the subject itself."""
    known = replace(FACTS, **facts) if facts else FACTS  # type: ignore[arg-type]  # fields of the facts
    host_facts = HostFacts(
        host="gpu1",
        machine=replace(MACHINE, **machine) if machine else MACHINE,  # type: ignore[arg-type]  # fields of a machine
        graphics=replace(of, **graphics) if graphics else of,  # type: ignore[arg-type]  # fields of the GPUs
        servers={"chat": known},
    )
    launch = Launch(host="gpu1", server="chat", algo="dflash", argv=argv, env=env or {}, knobs={"block_size": 8})
    whole = replace(Subject.of(HOST, SERVER, launch, host_facts), capability=KNOWN)
    return replace(whole, **more)  # type: ignore[arg-type]  # fields of a subject


def report(one: Subject, skipped: Mapping[str, str] | None = None) -> Report:
    """Run every check."""
    return catalogue.run(one, skipped=skipped or {})


def finding(one: Subject, number: str) -> Finding | None:
    """Return what one check says; None where it does not apply."""
    return next((found for found in report(one).findings if found.id == number), None)


def said(one: Subject, number: str) -> tuple[Level, str]:
    """Return level and reason of a check that applies."""
    found = finding(one, number)
    assert found is not None, f"{number} does not apply"
    return found.level, found.reason
