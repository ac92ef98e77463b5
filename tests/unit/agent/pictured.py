"""A picture with something of everything in it, and one with nothing known, for tests of what is made of pictures."""

from __future__ import annotations

from specctl.control.mode import mode
from specctl.control.sample.engine import Activity, DecodeSums, EngineInfo, EngineLoad, EngineSample
from specctl.control.sample.gpu import (
    GpuFacts,
    GpuLinks,
    GpuProcess,
    GpuSample,
    GpuWear,
    LostGpu,
    NvmlHealth,
    NvmlSample,
    Problem,
    Trouble,
    XidCount,
    XidEvent,
)
from specctl.control.sample.host import HostSample, UnitSample
from specctl.control.window import Figures
from specctl.fleet.types import AgentMode
from specctl_agent.pictures import Decided, Picture, ServerPicture, SwitchCount
from specctl_agent.samplers.runner import Health

TREE, CHAIN = mode("ddtree", {"tree_budget": 16}), mode("dflash")
WELL = Health(successes=100, last_duration_s=0.002, total_duration_s=0.2)
ILL = Health(
    successes=3, failures=2, consecutive_failures=2, hangs=1, last_duration_s=2.0, error="NoAnswerError: refused"
)
GPU = GpuSample(
    uuid="GPU-1",
    index=0,
    busy_ratio=0.87,
    memory_used_bytes=70 << 30,
    memory_total_bytes=80 << 30,
    power_w=612.5,
    power_limit_w=700.0,
    sm_clock_hz=1_755_000_000,
    memory_clock_hz=2_619_000_000,
    temperature_c=71,
    throttle_bits=0x44,
    processes=(GpuProcess(pid=4711, memory_bytes=69 << 30),),
    wear=GpuWear(at_s=1.0, ecc_corrected=3, ecc_uncorrected=0, remapped_rows=1),
    links=GpuLinks(
        at_s=1.0, pcie_tx_bytes_per_s=1_000_000, pcie_rx_bytes_per_s=2_000_000, nvlink_tx_bytes=5, nvlink_rx_bytes=6
    ),
)
NVML = NvmlSample(
    at_s=999.0,
    gpus=(GPU, GpuSample(uuid="GPU-2", index=1)),
    lost=(LostGpu(index=2, uuid="GPU-3", trouble=Trouble(problem=Problem.GPU_LOST, detail="lost", since_s=900.0)),),
    facts=(GpuFacts(uuid="GPU-1", index=0, name="NVIDIA H200", pci="00000000:01:00.0"),),
    xids=(XidEvent(serial=1, at_s=950.0, uuid="GPU-1", xid=63),),
    xid_counts=(XidCount(uuid="GPU-1", xid=63, count=2),),
    health=NvmlHealth(starts=2, hangs=1, hung_s=3.5, stuck=1),
)
HOST = HostSample(
    at_s=999.0,
    cpus=64,
    cpu_ratio=0.25,
    load_1m=12.5,
    memory_total_bytes=512 << 30,
    memory_available_bytes=300 << 30,
    swap_total_bytes=0,
    swap_used_bytes=0,
    disk_total_bytes=100 << 30,
    disk_free_bytes=40 << 30,
    units=(
        UnitSample(
            unit="specctl-k26.service",
            asked_at_s=999.0,
            active="active",
            restarts=1,
            memory_bytes=200 << 30,
            limit_bytes=400 << 30,
            oom_kills=0,
        ),
    ),
)
SAMPLE = EngineSample(at_s=999.5, span_s=1.0, activity=Activity.ACTIVE, running=7, waiting=2, mode=TREE)
SUMS = DecodeSums(steps=1000.0, requests=7000.0, busy_s=60.0, request_busy_s=420.0, tokens=30_000.0)
SERVER = ServerPicture(
    server="k26",
    conduct=AgentMode.ACT,
    modes=(CHAIN, TREE),
    mode=TREE,
    told_at="2026-11-29T14:02:11+00:00",
    table="from 1 ddtree:tree_budget=16, from 4 dflash",
    sample=SAMPLE,
    sample_age_s=0.5,
    figures=Figures(span_s=300.0, known_s=300.0, concurrency=9.0, decoded=SUMS),
    load=EngineLoad(running=7, waiting=2, used_tokens=1000, pool_tokens=8000, age_s=0.25, lifetime_accept_length=3.1),
    now=Figures(span_s=10.0, known_s=10.0, concurrency=9.0, decoded=SUMS),
    info=EngineInfo(version="0.5.23"),
    decided=Decided(
        text="switch dflash",
        rule="gain",
        reason="9 requests: dflash serves 1.31 of ddtree",
        since_s=990.0,
        at="2026-11-29T14:02:11+00:00",
        target=CHAIN,
    ),
    grounds={"server": "k26", "decision": "switch dflash", "rule": "gain"},
    acting="ddtree:tree_budget=16 → dflash",
    held="firmware",
    pinned="dflash (a demo, ops@desk)",
    pin_left_s=3600.0,
    frozen="the gain did not show",
    findings=("M005",),
    gain_ratio=0.31,
    mode_s={"dflash": 7200.0, "ddtree:tree_budget=16": 1800.5},
    switches=(SwitchCount(old="dflash", new="ddtree:tree_budget=16", means="restart", result="done", count=2),),
    lost_s=961.25,
    history=((7, 2, 512.0, 2.3), (None, None, None, None)),
)
FULL = Picture(
    at_s=1000.0,
    version="0.1.0-3d6ff78cde80",
    ticks=1000,
    late_ticks=1,
    tick_s=0.0015,
    started_wall_s=1_795_994_000.0,
    nvml=NVML,
    nvml_age_s=1.0,
    host=HOST,
    host_age_s=1.0,
    collectors={"nvml": (WELL, 1.0), "host": (WELL, 1.0), "k26/engine_loads": (ILL, 30.0)},
    servers=(SERVER,),
    troubles={"decisions.jsonl": "cannot be written: no space left on device"},
    turned_away=3,
    decisions=12,
)
BLIND = Picture(
    at_s=1000.0,
    version="0.1.0",
    ticks=1,
    nvml=NvmlSample(at_s=1.0, trouble=Trouble(problem=Problem.HUNG, detail="no answer", since_s=1.0)),
    nvml_age_s=0.5,
    collectors={"nvml": (WELL, 0.5), "k26/engine_loads": (Health(), None)},
    servers=(ServerPicture(server="k26", conduct=AgentMode.OBSERVE),),
)
