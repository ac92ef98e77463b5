"""Sights for tests: a server of which everything is known, and some in the states that an operator meets."""

from __future__ import annotations

from dataclasses import replace

from specctl.control.mode import Mode
from specctl.control.sample.gpu import Throttle
from specctl.control.sight import (
    AgentSight,
    Decided,
    GpuSight,
    LastAct,
    Loading,
    Sight,
    Source,
    State,
    Told,
    mode_of,
)
from specctl.rollout.facts import Lease
from specctl.rollout.guarded import Guard

TREE: Mode = mode_of("ddtree", {"tree_budget": 7, "topk_cap": 1})
CHAIN: Mode = mode_of("dflash", {"block_size": 8})
ENGINE, AGENT, FACTS = Source.ENGINE, Source.AGENT, Source.FACTS

BARE = Sight(host="ct200", server="k26", state=State.UNKNOWN.value)


def gpus(
    count: int, power_w: float | None, *, age_s: float = 0.3, slowed: tuple[int, ...] = ()
) -> tuple[GpuSight, ...]:
    """Return so many GPUs that all draw so much; those of the indexes `slowed` are too hot."""
    return tuple(
        GpuSight(
            index=index,
            age_s=age_s,
            source=AGENT,
            uuid=f"GPU-{index}",
            model="NVIDIA H200",
            memory_used_bytes=71_000_000_000,
            memory_total_bytes=141_000_000_000,
            power_w=power_w,
            power_limit_w=700.0,
            busy_ratio=0.93,
            temperature_c=64,
            sm_clock_hz=1_755_000_000,
            sm_clock_max_hz=1_980_000_000,
            memory_clock_hz=2_619_000_000,
            throttles=(Throttle.HW_THERMAL,) if index in slowed else (),
            slowing=(Throttle.HW_THERMAL,) if index in slowed else (),
        )
        for index in range(count)
    )


def whole(value: int, age_s: float | None = 0.4) -> Told[int]:
    """Return a count that the agent told."""
    return Told(value=value, age_s=age_s, source=AGENT)


def amount(value: float, age_s: float | None = 0.4) -> Told[float]:
    """Return a figure that the agent told."""
    return Told(value=value, age_s=age_s, source=AGENT)


HOLD = Decided(text="hold", rule="gain", reason="gain 1.2 of 9.6 needed", at="2026-11-29T14:02:11+00:00", for_s=60.0)
READY = Sight(
    host="ct200",
    server="k26",
    state=State.READY.value,
    groups=("k26",),
    desired=TREE,
    deployed=TREE,
    live=TREE,
    release="7",
    proven=True,
    owned=("algo", "tree_budget"),
    ready=True,
    running=whole(3),
    waiting=whole(0),
    tokens_per_s=amount(318.24),
    accept_length=amount(2.314),
    kv_ratio=amount(0.12),
    gpus=gpus(8, 212.0),
    agent=AgentSight(
        conduct="act",
        version="0.1.0",
        decision=HOLD,
    ),
    last=LastAct(act="deploy", at="2026-11-29T10:00:00+00:00", age_s=14_531.0, who="ops@desk", result="done"),
    age_s=0.0,
)
LOADING = replace(
    READY,
    host="ct201",
    state=State.LOADING.value,
    desired=CHAIN,
    deployed=CHAIN,
    live=CHAIN,
    proven=None,
    ready=False,
    running=None,
    waiting=None,
    tokens_per_s=None,
    accept_length=None,
    kv_ratio=None,
    gpus=gpus(8, 140.0),
    agent=None,
    loading=Loading(phase="weights", elapsed_s=292.0, progress=0.7, detail="412 of 590 GB", eta_s=186.0),
    last=LastAct(act="deploy", at="2026-11-29T14:00:00+00:00", age_s=300.0, who="ops@desk", result="started"),
)
PINNED = replace(
    READY,
    host="b300-1",
    desired=CHAIN,
    deployed=CHAIN,
    live=CHAIN,
    proven=False,
    running=whole(21),
    waiting=whole(4),
    tokens_per_s=amount(1204.0),
    accept_length=amount(3.52),
    kv_ratio=amount(0.61),
    gpus=gpus(8, 701.0, slowed=(3,)),
    agent=AgentSight(conduct="act", pinned="dflash (benchmark, ops@desk)", pin_left_s=10_800.0, findings=("M005",)),
)
GONE = replace(
    BARE,
    host="b300-2",
    state=State.UNREACHABLE.value,
    reason="connection timed out",
    hint="ssh -v b300-2",
    desired=CHAIN,
)
FROZEN = replace(
    READY,
    host="ct202",
    state=State.FROZEN.value,
    running=whole(4, 41.0),
    waiting=whole(2, 41.0),
    tokens_per_s=amount(413.0, 41.0),
    accept_length=None,
    kv_ratio=amount(0.4, 41.0),
    gpus=None,
    agent=None,
)
FULL = replace(
    PINNED,
    reason="no answer",
    hint="ssh -v b300-1",
    live_by="agent",
    loading=LOADING.loading and replace(LOADING.loading, fatal="CUDA out of memory"),
    gpu_trouble="driver gone",
    agent=AgentSight(
        conduct="act",
        version="0.1.0",
        decision=HOLD,
        acting="ddtree → dflash",
        pinned="dflash (benchmark, ops@desk)",
        pin_left_s=10.0,
        held="firmware",
        frozen="the gain did not show",
        findings=("M005",),
        troubles={"disk": "full"},
    ),
    agent_trouble="the agent does not answer",
    drift=("the unit file differs from the current release",),
    warnings=("a warning",),
    lease=Lease(owner="ann@desk", reason="upgrade", age_s=9.0, remaining_s=30.0),
    guard=Guard(
        phase="watching",
        act="deploy",
        who="ann@desk",
        aim=("2", "dflash"),
        back=("1", "none"),
        hard_left_s=61.0,
        reason="why",
    ),
)
FLEET = (READY, LOADING, PINNED, FROZEN, GONE)
