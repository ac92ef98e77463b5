"""docs/json.md says of facts and preflight what the code prints: the same fields, and null where null can come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from specctl.ops import preflight
from specctl.rollout.facts import CurrentRelease, HostFacts, Lease, ServerFacts
from specctl.rollout.gpu_facts import Gpu, GpuProcess, Graphics, Topology
from specctl.rollout.guarded import Guard
from specctl.rollout.machine_facts import Disk, Machine
from specctl.rollout.model_facts import ModelConfig, ModelFacts
from specctl.rollout.observation import Port, UnitState
from specctl.rollout.preflight.types import Finding, Level, Report
from tests.unit.test_docs_json import ERROR, TEXT, documented, hold

FULL_GPU = Gpu(
    index=0, uuid="GPU-1", model="B300", memory_bytes=1, used_bytes=0, persistence=True, mig=False, power_limit_w=1.0,
    power_default_w=1.0, temperature_c=30.0, bus_id="00", fabric_state="Completed", fabric_status="Success",
)  # fmt: skip
FULL_GRAPHICS = Graphics(
    gpus=(FULL_GPU,), problem="what", driver="580", cuda="13.0", processes=(), nvswitches=4, fabric_manager="active",
    topology=Topology(gpus=(0,), links=((None,),)), iommu_units=0, acs_bridges=1, acs_redirecting=0,
)  # fmt: skip
FULL_MACHINE = Machine(
    cpu_model="EPYC", cpu_count=1, memory_bytes=1, memory_free_bytes=1, hugepages_bytes=0, memlock_bytes=1.0, nofile=1.0, nr_open=1,
    os="Debian", kernel="6", systemd="252", systemd_runs=True, python="3.11", clock_ahead_s=0.1, clock_synchronised=True,
)  # fmt: skip
FULL_CONFIG = ModelConfig(
    hidden_size=1, vocab_size=1, layers=1, max_positions=1, model_type="kimi", quantisation="fp8", block_size=8,
    target_layer_ids=(1,), target_layers=1, mask_token=1,
)  # fmt: skip
MODEL = ModelFacts(path="/m")
FULL_MODEL = ModelFacts(path="/m", there=True, size_bytes=1, files=1, config=FULL_CONFIG)
FULL_SERVER = ServerFacts(
    name="chat", current=CurrentRelease(id="1", algo="none"), unit=UnitState(active="active"), loaded="loaded", port=Port.OWN,
    port_owner="nginx", lease=Lease(owner="ops@here"), python_path="/python", python_runs=True, target=MODEL, draft=MODEL,
    guard=Guard(phase="armed"),
)  # fmt: skip
FINDING = Finding(id="P001", title="t", level=Level.FAIL, reason="r", remedy="m")


def pairs() -> Iterator[tuple[str, Mapping[str, object], Mapping[str, object]]]:
    """Yield each documented object as it is with nothing known and with everything."""
    yield "Gpu", Gpu(index=0).as_wire(), FULL_GPU.as_wire()
    process = GpuProcess(pid=1, name="x")
    yield "GpuProcess", process.as_wire(), replace(process, gpu="GPU-1", used_bytes=1).as_wire()
    yield "Graphics", Graphics().as_wire(), FULL_GRAPHICS.as_wire()
    yield "Machine", Machine().as_wire(), FULL_MACHINE.as_wire()
    disk = Disk(path="/")
    full_disk = replace(disk, free_bytes=1, total_bytes=1, filesystem="ext4", writable=True)
    yield "Disk", disk.as_wire(), full_disk.as_wire()
    yield "ModelConfig", ModelConfig().as_wire(), FULL_CONFIG.as_wire()
    yield "ModelFacts", MODEL.as_wire(), FULL_MODEL.as_wire()
    yield "ServerFacts", ServerFacts(name="chat").as_wire(), FULL_SERVER.as_wire()
    yield "Facts", HostFacts(host="gpu1").as_wire(), HostFacts(host="gpu1").as_wire()
    yield "CheckFinding", FINDING.as_wire(), replace(FINDING, waived="why").as_wire()
    yield "Checks", Report().as_wire(), Report(findings=(FINDING,)).as_wire()
    key = ("gpu1", "chat")
    yield "Preflight", preflight.as_wire({key: Report()})[0], preflight.as_wire({key: ERROR})[0]


@pytest.mark.parametrize(("heading", "bare", "full"), [pytest.param(*row, id=row[0]) for row in pairs()])
def test_an_objects_fields_are_documented(heading: str, bare: Mapping[str, object], full: Mapping[str, object]) -> None:
    """The table has the object's fields, and says `or null` of exactly those that can be null."""
    hold(heading, bare, full)


def test_a_topologys_fields_are_documented() -> None:
    """Its two lists; a link of a GPU to itself is null."""
    assert set(documented("Topology")) == set(Topology(gpus=(0,), links=((None,),)).as_wire())


def test_every_level_is_documented() -> None:
    """A finding's levels are named in its table, those of the counts in theirs."""
    assert all(f"`{level.value}`" in documented_text("CheckFinding") for level in Level)
    counts = Report(findings=tuple(replace(FINDING, level=level) for level in Level)).counts()
    assert all(f"`{word}`" in documented_text("Checks") for word in (*counts, "waived"))


def documented_text(heading: str) -> str:
    """Return the document's part of one heading."""
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
